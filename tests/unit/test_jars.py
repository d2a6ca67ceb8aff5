"""Fetching jars: what a program in place of Java's sees."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dbt_afterimage.dbt_spark.jars import fetched

IVY = """\
#!{python}
import os, sys, time
from pathlib import Path

alone = Path({folder!r}) / "at_work"
os.close(os.open(alone, os.O_CREAT | os.O_EXCL))  # fails where another one is at work
time.sleep(0.2)
Path(sys.argv[sys.argv.index("-cachepath") + 1]).write_text("/one.jar:/other.jar")
alone.unlink()
"""


def test_one_at_a_time_is_at_ivys_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(IVY.format(python=sys.executable, folder=str(tmp_path)), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with ThreadPoolExecutor() as threads:
        paths = list(threads.map(fetched, [[("org", "name", "1")]] * 3))
    assert paths == [[Path("/one.jar"), Path("/other.jar")]] * 3
