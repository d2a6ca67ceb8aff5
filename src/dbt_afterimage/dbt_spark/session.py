"""Starts Spark so that the console shows dbt's lines only.

What the JVM prints goes to `spark.log` in the folder of dbt's own log. Spark, Ivy and Hadoop write
to the JVM's standard error from its first moment, before any log4j2 file can apply. The JVM
inherits its standard error from this process, so for the seconds in which it is launched the file
descriptor points to the log. A JVM that fails to start shows why.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.spark import session as spark_session
from dbt.flags import get_flags
from dbt_common.exceptions import DbtRuntimeError

from dbt_afterimage.dbt_spark.jars import submit_arguments
from dbt_afterimage.errors import explained, is_conflict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_TAIL_LINES = 15
_launch = threading.Lock()


def start_sessions_quietly() -> None:
    """Make dbt-spark's session cursor launch the JVM with its standard error in the log file."""
    execute = spark_session.Cursor.execute

    def execute_quietly(self: Any, sql: str, *parameters: Any) -> None:
        _ensure_session(self.server_side_parameters)
        try:
            execute(self, sql, *parameters)
        except DbtRuntimeError as error:
            raise DbtRuntimeError(explained(str(error.msg))) from error
        except Exception as error:
            # what is no AnalysisException passes dbt-spark by, with all lines of the JVM
            if is_conflict(str(error)):
                raise DbtRuntimeError(explained(str(error))) from error
            raise

    spark_session.Cursor.execute = execute_quietly  # type: ignore[method-assign]


def dbt_folder(flag: str, otherwise: str) -> Path:
    """A folder among the flags of the dbt command that runs; ``otherwise`` outside of a command."""
    return Path(getattr(get_flags(), flag, otherwise))  # type: ignore[no-untyped-call]


def live_session(parameters: dict[str, Any]) -> SparkSession:
    """The one Spark session of this process, started when it is not there yet.

    Args:
        parameters: the profile's `server_side_parameters`.
    """
    from pyspark.sql import SparkSession

    _ensure_session(parameters)
    return SparkSession.builder.getOrCreate()


def _ensure_session(parameters: dict[str, Any]) -> None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with _launch:  # dbt's threads ask for the session at the same time
        if SparkContext._active_spark_context is not None:
            return
        builder = SparkSession.builder.enableHiveSupport()
        for name, value in parameters.items():
            if name != "spark.jars":
                builder = builder.config(name, value)
        arguments = submit_arguments(
            os.environ.get(_ARGUMENTS, "pyspark-shell"), parameters.get("spark.jars")
        )
        log = dbt_folder("LOG_PATH", "logs") / "spark.log"
        try:
            with _stderr_to(log), _variable(_ARGUMENTS, arguments):
                session = builder.getOrCreate()
        except Exception as error:
            raise DbtRuntimeError(_why(error, log)) from error
        session.sparkContext.setLogLevel("ERROR")
        # PySpark prints every failed statement as JSON besides raising it; dbt reports the error.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """While this lasts, an environment variable has this value."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    console = os.dup(2)
    try:
        with path.open("ab") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(console, 2)
        os.close(console)


def _why(error: Exception, log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
    shown = "\n  ".join(lines)
    return (
        f"Spark did not start: {error}\n"
        f"The last lines of {log}:\n  {shown}\n"
        "Is JAVA_HOME a Java 17 or 21? `make setup` finds one. A first start also needs the jars "
        "of `spark.jars.packages` from Maven Central."
    )
