"""Java writes an archive of its classes when a session ends; the next session starts from it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from dbt_afterimage.spark.class_archive import FOLDER, OPTIONS

SESSION = f"""\
import sys
from pathlib import Path

from dbt_afterimage.spark.session import start

folder = Path(sys.argv[1])
parameters = {{
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.warehouse.dir": str(folder / "warehouse"),
    "{OPTIONS}": f"-XX:TieredStopAtLevel=1 -Xlog:class+load:file={{folder}}/{{sys.argv[2]}}.log",
}}
session = start(parameters, folder / "spark.log", "pyspark-shell")
print("rows:", session.range(3).count())
"""
SHARED = "org.apache.spark.sql.classic.SparkSession source: shared objects file (top)"


def loaded_by_session(folder: Path, name: str) -> str:
    """Java's log of the classes that a session in a new process loads."""
    done = subprocess.run(
        [sys.executable, "-c", SESSION, str(folder), name],
        env={**os.environ, FOLDER: str(folder / "archives")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    # Java's remarks on classes that cannot be archived are kept from the user
    assert done.stdout == "rows: 3\n"
    return (folder / f"{name}.log").read_text(encoding="utf-8")


def test_the_second_session_loads_the_classes_that_the_first_one_archived(tmp_path: Path) -> None:
    assert SHARED not in loaded_by_session(tmp_path, "first")
    (archive,) = (tmp_path / "archives").iterdir()
    written = archive.stat()
    assert SHARED in loaded_by_session(tmp_path, "second")
    assert archive.stat().st_mtime_ns == written.st_mtime_ns
