"""The JVM of a run ends in the middle of it: the error says how, with the last lines of its log."""

from __future__ import annotations

from pathlib import Path

from tests.python_process import python

CODE = """
import os
from pathlib import Path
from types import SimpleNamespace

from dbt.adapters.spark import session as of_dbt_spark
from dbt_common.exceptions import DbtRuntimeError

from dbt_afterimage.dbt_spark.macro_api.registry import dbt_errors
from dbt_afterimage.dbt_spark.statements import start_sessions_quietly
from dbt_afterimage.spark import session as spark

settings = {"spark.master": "local[1]", "spark.ui.enabled": "false"}
log = Path("logs/spark.log")
session = spark.start(settings, log, "pyspark-shell")
assert spark.why_java_ended() == ""
with log.open("a") as lines:
    lines.write("java.lang.OutOfMemoryError: Java heap space\\n" + "\\tat A.b(A:1)\\n" * 20)
os.kill(session.sparkContext._gateway.proc.pid, 9)

def of_a_macro():
    with dbt_errors():
        session.sql("select 1").collect()

def of_a_statement():
    start_sessions_quietly()
    cursor = of_dbt_spark.Cursor(server_side_parameters=settings)
    cursor.execute("select 1")

for fails in (of_a_macro, of_a_statement):
    try:
        fails()
    except DbtRuntimeError as error:
        print(error.msg)
        print("---")

# at the end of a command, dbt asks for it
assert spark.active() is None
"""


def test_an_error_says_that_java_was_killed_and_what_it_said_last(tmp_path: Path) -> None:
    printed = python(CODE, tmp_path, DBT_LOG_PATH=str(tmp_path / "logs"))
    errors = [text.strip() for text in printed.split("---") if text.strip()]
    assert len(errors) == 2, printed
    for error in errors:
        first, heading, *lines = error.splitlines()
        assert "Spark's JVM ended in the middle of the run, by the signal SIGKILL" in first
        assert heading == "The last lines of logs/spark.log:"
        assert "  java.lang.OutOfMemoryError: Java heap space" in lines
        assert lines[-1].startswith("Fix: run again.")
        assert "`spark.driver.memory` of the target in profiles.yml" in lines[-1]
        assert "Connection refused" not in error
