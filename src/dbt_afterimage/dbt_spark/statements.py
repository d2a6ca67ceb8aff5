"""The statements of a dbt command: dbt-spark's cursor, and the Spark session that it starts.

A classic session is launched so that the console shows dbt's lines only: what the JVM prints goes
to `spark.log` in the folder of dbt's own log.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.spark import session as spark_session
from dbt.flags import get_flags
from dbt_common.exceptions import DbtRuntimeError

from dbt_afterimage.dbt_spark.jars import submit_arguments
from dbt_afterimage.errors import AfterimageError, explained, has_explanation
from dbt_afterimage.spark import session as spark
from dbt_afterimage.spark import warehouse_folder
from dbt_afterimage.spark.java_objects import free_unused_java_objects

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def start_sessions_quietly() -> None:
    """Make dbt-spark's cursor work in the session that `live_session` starts."""
    execute_in_classic = spark_session.Cursor.execute

    def execute(self: Any, sql: str, *parameters: Any) -> None:
        session = live_session(self.server_side_parameters)
        try:
            # each model runs a statement
            free_unused_java_objects()
            if spark.is_remote(session):
                # dbt-spark would request a classic session with Hive, and set the whole profile
                self._df = session.sql(sql % parameters if parameters else sql)
            else:
                execute_in_classic(self, sql, *parameters)
        except DbtRuntimeError as error:
            raise DbtRuntimeError(explained(str(error.msg))) from error
        except Exception as error:
            # dbt-spark only handles AnalysisException; others carry the JVM's stack trace
            text = spark.why_java_ended(error) or str(error)
            if text != str(error) or has_explanation(text) or spark.is_remote(session):
                raise DbtRuntimeError(explained(text)) from error
            raise

    spark_session.Cursor.execute = execute  # type: ignore[method-assign]


def command_flag(name: str, otherwise: Any = None) -> Any:
    """A flag of the dbt command that runs; ``otherwise`` outside of a command."""
    # dbt does not annotate get_flags
    return getattr(get_flags(), name, otherwise)  # type: ignore[no-untyped-call]


def check_method(credentials: Any) -> None:
    """Check that a target has its Spark session in the dbt process.

    Raises:
        DbtRuntimeError: it has another `method`.
    """
    method = str(credentials.method.value)
    if method != "session":
        raise DbtRuntimeError(
            f"The target's `method` is {method}; allowed: session. This project works in the Spark "
            "session of the dbt process, and under another method there is none. Fix: take a "
            "target with `method: session`; profiles.yml.example has one for a cluster."
        )


def live_session(parameters: dict[str, Any]) -> SparkSession:
    """The one Spark session of this process, started when it is not there yet.

    Raises:
        DbtRuntimeError: Spark does not start, or its Connect server cannot be used.
    """
    log = Path(command_flag("LOG_PATH", "logs")) / "spark.log"
    arguments = submit_arguments(
        os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"), parameters.get("spark.jars")
    )
    # in place: dbt-spark sets them on the session with each statement
    warehouse_folder.resolve(parameters, Path(command_flag("PROJECT_DIR", ".")))
    try:
        # of a JVM that has ended, `start` tells
        is_first = not spark.why_java_ended() and spark.active() is None
        if is_first and not spark.server_address(parameters):
            warehouse_folder.check_not_moved(parameters)
        return spark.start(parameters, log, arguments)
    except AfterimageError as error:
        raise DbtRuntimeError(str(error)) from error
