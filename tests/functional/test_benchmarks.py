"""The benchmark runs: a few rows through each step and each baseline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.both_formats

ROOT = Path(__file__).parents[2]


def test_a_tiny_benchmark_measures_each_step(table_format: str, tmp_path: Path) -> None:
    sizes = [
        "--keys",
        "300",
        "--changes",
        "60",
        "--columns",
        "5",
        "--repeats",
        "1",
    ]
    options = ["--table-format", table_format, *sizes, "--no-snapshot", "--results", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *options],
        cwd=ROOT,
        # most of a tiny run is code that runs a few times
        env={**os.environ, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    text = (tmp_path / f"{table_format}.md").read_text(encoding="utf-8")
    for step in ("staging", "items_changes", "items_history", "items_current"):
        assert f"| {step} |" in text, text
    assert json.loads((tmp_path / f"{table_format}.json").read_text(encoding="utf-8"))
