"""Java writes an archive of its classes when a session ends; the next session starts from it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from dbt_afterimage.spark.class_archive import FOLDER

SESSION = """\
import sys
from pathlib import Path

from dbt_afterimage.spark.session import start

folder, java_option = Path(sys.argv[1]), sys.argv[2]
parameters = {
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.warehouse.dir": str(folder / "warehouse"),
    "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 {java_option}",
}
session = start(parameters, folder / "spark.log", "pyspark-shell")
print("rows:", session.range(3).count())
"""
SHARED = "org.apache.spark.sql.classic.SparkSession source: shared objects file (top)"
OF_THE_USER = ("SPARK_", "HADOOP_", "YARN_", "PYSPARK_SUBMIT", "JAVA_TOOL", "JDK_JAVA")


def run_session(folder: Path, java_option: str) -> str:
    """What a session in a new process prints; returns once Python has ended, not Java."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(OF_THE_USER)
    }
    with (folder / "out.log").open("w") as out, (folder / "error.log").open("w") as error:
        done = subprocess.run(
            [sys.executable, "-c", SESSION, str(folder), java_option],
            env={**environment, FOLDER: str(folder / "class archives")},
            stdout=out,
            stderr=error,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, (folder / "error.log").read_text(encoding="utf-8")[-4000:]
    return (folder / "out.log").read_text(encoding="utf-8")


def loaded_classes(folder: Path, name: str) -> str:
    """Java's log of the classes that a session loads."""
    log = folder / f"{name}.log"
    # Java's remarks are in Spark's log
    assert run_session(folder, f"-Xlog:class+load:file={log}") == "rows: 3\n"
    return log.read_text(encoding="utf-8")


def test_the_second_session_loads_the_classes_that_the_first_one_archived(tmp_path: Path) -> None:
    assert SHARED not in loaded_classes(tmp_path, "first")
    (archive,) = (tmp_path / "class archives").iterdir()
    written = archive.stat().st_mtime_ns
    assert SHARED in loaded_classes(tmp_path, "second")
    assert archive.stat().st_mtime_ns == written


def test_a_session_whose_java_cannot_write_an_archive_starts_without(tmp_path: Path) -> None:
    """Java refuses to start with an agent when it is to write one."""
    agent = "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0"
    # before it come Java's refusal, and the agent's port
    assert run_session(tmp_path, agent).endswith("rows: 3\n")
    assert list((tmp_path / "class archives").iterdir()) == []
