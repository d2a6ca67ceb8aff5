"""The Spark session: everything that starts, reaches or leaves one, classic or Spark Connect.

A classic session runs Spark's driver in a JVM of this process. A Connect session talks to a server
(`spark.remote` in the profile, or SPARK_REMOTE) and needs no Java here. No other module may use
what only a classic session has (`_jvm`, `_jdf`, `SparkContext`): a unit test checks that.

What the JVM prints goes to a log file. Spark, Ivy and Hadoop write to the JVM's standard error
from its first moment, before any log4j2 file can apply. The JVM inherits its standard error from
this process, so for the seconds in which it is launched the file descriptor points to the log. A
JVM that fails to start shows why.
"""

from __future__ import annotations

import atexit
import logging
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Any

from dbt_afterimage.errors import AfterimageError
from dbt_afterimage.spark.class_archive import ClassArchive, class_archive
from dbt_afterimage.spark.connect import (
    LAUNCH_SETTINGS,
    TEXT_AS_IT_IS,
    TOKEN_VARIABLE,
    ConnectError,
    check_reachable,
    prepare,
    shown,
)
from dbt_afterimage.spark.ivy import fetch_packages
from dbt_afterimage.spark.launch import launch_arguments, private_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DEFAULTS = {
    # otherwise PySpark asks Java ten times for each expression, so that an error can name its line
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
_CLASSES = ("functions", "org.apache.spark.sql.functions", "PythonUtils", "PythonSQLUtils")
"""The names by which PySpark's columns and functions find their Java classes."""
REMOTE = "spark.remote"
REMOTE_VARIABLE = "SPARK_REMOTE"
_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
# Java options of the driver that come before those of the profile and of spark-defaults.conf
_JAVA_OPTIONS = "SPARK_SUBMIT_OPTS"
_TAIL_LINES = 15
_launch = threading.Lock()
_thread = threading.local()
_connected: list[SparkSession] = []
"""The Connect session of this process, if there is one."""
_logs: list[Path] = []
"""The log of the classic session that this process has launched, if it has."""
_OUT_OF_MEMORY = 52
"""Exit code of a driver of Spark after an OutOfMemoryError that nothing has caught."""
_END_SECONDS = 5
"""A JVM that closes its connections has ended within this time, or lives on."""


class SparkStartError(AfterimageError):
    """Spark does not start, has ended, or its server cannot be reached."""


def server_address(parameters: Mapping[str, Any]) -> str | None:
    """The address of the Connect server, such as `sc://host:15002`; None for a classic session."""
    return parameters.get(REMOTE) or os.environ.get(REMOTE_VARIABLE) or None


def start(parameters: Mapping[str, Any], log: Path, arguments: str) -> SparkSession:
    """The one Spark session of this process, started or connected to when there is none yet.

    Args:
        arguments: of spark-submit, for a classic session.

    Raises:
        SparkStartError: Spark does not start, its JVM has ended, or the server does not answer.
    """
    with _launch:  # dbt's threads request the session at the same time
        end = why_java_ended()
        if end:
            raise SparkStartError(end)
        found = active()
        if found is None:
            address = server_address(parameters)
            if address:
                found = _connect(address, parameters)
            else:
                found = _start_classic(parameters, log, arguments)
            # PySpark prints every failed statement as JSON besides raising it; dbt reports the
            # error.
            logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        return found


def active() -> SparkSession | None:
    """The session of this process, or None before `start` and once its JVM has ended."""
    if _connected:
        return _connected[0]
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None or why_java_ended():
        return None
    # `getOrCreate` takes milliseconds to apply no settings
    found = SparkSession._instantiatedSession or SparkSession.builder.getOrCreate()
    if getattr(_thread, "session", None) is not found:
        # in another thread, Spark would read the name of a table by its defaults, not by the
        # session's settings
        SparkSession._get_j_spark_session_class(found._jvm).setActiveSession(found._jsparkSession)
        _thread.session = found
    return found


def current() -> SparkSession:
    """The session of this process.

    Raises:
        SparkStartError: there is none.
    """
    found = active()
    if found is None:
        raise SparkStartError(
            why_java_ended()
            or "No Spark session has been started in this process. Fix: run the command through "
            "dbt."
        )
    return found


def why_java_ended(error: BaseException | None = None) -> str:
    """How the JVM that this process has launched ended, and what to do; "" if it has not.

    Args:
        error: what a call of Java raised, if something has failed.
    """
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return ""
    is_lost = isinstance(error, (ConnectionError, Py4JError))
    if is_lost and not isinstance(error, Py4JJavaError):
        with suppress(TimeoutExpired):
            process.wait(_END_SECONDS)
    code = process.poll()
    if code is None:
        return ""
    how = f"with exit code {code}"
    if code == _OUT_OF_MEMORY:
        how += ", after an OutOfMemoryError"
    elif code < 0:
        how = f"by the signal {signal.Signals(-code).name}"
        how += ", which the operating system sends if memory runs out" if code == -9 else ""
    shown = "".join(f"\nThe last lines of {log}:\n  {_last_lines(log)}" for log in _logs)
    return (
        f"Spark's JVM ended in the middle of the run, {how}. What was not committed is not "
        f"written; nothing is lost or doubled.{shown}\n"
        "Fix: run again. If Java ran out of memory, set `spark.driver.memory` of the target in "
        "profiles.yml to more; if the operating system killed it, to less, or use a machine with "
        "more memory."
    )


def is_remote(session: SparkSession) -> bool:
    """Whether the session is one of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def unpersist(rows: DataFrame) -> None:
    """Free rows that `localCheckpoint` holds: they cannot be read any more."""
    if is_remote(rows.sparkSession):
        # the server frees them once the client has no reference to them, which PySpark reports
        return
    # Spark does so by itself only once Java has collected what refers to them; it has no other
    # name for it
    rows._jdf.logicalPlan().rdd().unpersist(False)


def java(session: SparkSession) -> Any:
    """Java's packages, such as `java(session).java.sql.DriverManager`; None over Connect."""
    return None if is_remote(session) else session._jvm


def hadoop_setting(session: SparkSession, name: str) -> str | None:
    """A setting of Hadoop in a classic session; None where it is not set."""
    value = session.sparkContext._jsc.hadoopConfiguration().get(name)
    return None if value is None else str(value)


def stop() -> None:
    """End the session of this process; a Connect server goes on."""
    found = active()
    if found is not None:
        found.stop()
    _connected.clear()


def _connect(address: str, parameters: Mapping[str, Any]) -> SparkSession:
    from pyspark.sql import SparkSession

    check_reachable(address)
    try:
        session = SparkSession.builder.remote(address).getOrCreate()
    except ImportError as error:
        raise SparkStartError(
            f"Spark Connect lacks a Python package: {error}. Fix: pip install "
            "'dbt-afterimage[connect]'"
        ) from error
    try:
        prepare(session, parameters, address)
    except ConnectError:
        session.stop()
        raise
    except Exception as error:
        if "UNAUTHENTICATED" not in str(error):
            raise
        raise SparkStartError(
            f"The Spark Connect server {shown(address)} refuses this client: it has no token, or "
            "another one. Fix: set SPARK_REMOTE as `afterimage server` prints it, or the "
            f"environment variable {TOKEN_VARIABLE} to the server's token."
        ) from error
    _connected.append(session)
    return session


def _start_classic(parameters: Mapping[str, Any], log: Path, arguments: str) -> SparkSession:
    from pyspark import SparkContext

    # the log also has the lines of earlier runs
    start = log.stat().st_size if log.exists() else 0
    archive = None
    # a JVM that runs already has its jars, and no archive
    has_jvm = _is_launched() or SparkContext._gateway is not None
    if not has_jvm:
        if "--properties-file" in arguments:
            raise SparkStartError(
                f"{_ARGUMENTS} has `--properties-file`, by which the settings of the profile reach "
                "Spark. Fix: move the settings of that file to spark-defaults.conf in the folder "
                "that SPARK_CONF_DIR names."
            )
        fetch_packages(parameters)
    try:
        with _stderr_to(log):
            if not has_jvm:
                archive = _launch_jvm(parameters, arguments)
            session = _new_classic(parameters)
    except Exception as error:
        raise SparkStartError(_why(error, log, start)) from error
    _logs[:] = [log]
    if archive is not None:
        gateway: Any = session.sparkContext._gateway
        atexit.register(archive.write, gateway.proc)
    _keep_class_names(session)
    session.sparkContext.setLogLevel("ERROR")
    for name, value in TEXT_AS_IT_IS.items():
        session.conf.set(name, value)
    return session


def _launch_jvm(parameters: Mapping[str, Any], arguments: str) -> ClassArchive | None:
    """Launch a JVM; returns the archive of classes that it is to write when it ends, if any."""
    from pyspark import SparkContext

    settings = {name: value for name, value in parameters.items() if name != "spark.jars"}
    # first: it chooses the Java, whose classes are archived
    with launch_arguments(settings) as given:
        archive = class_archive(parameters)
        with environment_variable(_ARGUMENTS, f"{shlex.join(given)} {arguments}"):
            if archive is not None:
                options = f"{os.environ.get(_JAVA_OPTIONS, '')} {archive.java_options}".strip()
                try:
                    with environment_variable(_JAVA_OPTIONS, options):
                        SparkContext._ensure_initialized()
                except Exception:
                    # Java does not start with an archive and an agent, such as that of a profiler
                    archive = None
            SparkContext._ensure_initialized()
    return None if archive is None or archive.is_complete else archive


def _new_classic(parameters: Mapping[str, Any]) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    SparkContext._ensure_initialized()
    launched = dict(SparkConf().getAll())
    # spark-submit has read master and memory already, and what a session sets now would win
    fixed = {name for name in launched if _is_launched() and name.startswith(LAUNCH_SETTINGS)}
    # spark-submit was given `spark.jars`, and has added those of `spark.jars.packages`
    given = {
        name: value
        for name, value in parameters.items()
        if name != "spark.jars" and name not in fixed
    }
    own = {name: value for name, value in _DEFAULTS.items() if name not in launched}
    builder = SparkSession.builder.enableHiveSupport()
    for name, value in {**own, **private_settings({**launched, **given}), **given}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _keep_class_names(session: SparkSession) -> None:
    """Else py4j asks Java for them at each expression: Java looks for some in all jars."""
    view: Any = session._jvm
    for name in _CLASSES:
        setattr(view, name, getattr(view, name))


def _is_launched() -> bool:
    """Whether spark-submit has launched this driver, with its JVM."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


@contextmanager
def session_settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """While this lasts, a session has these settings."""
    before = {name: session.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)


@contextmanager
def environment_variable(name: str, value: str) -> Iterator[None]:
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


def _why(error: Exception, log: Path, start: int) -> str:
    """The JVM's output since byte `start` of its log, and what to do."""
    return (
        f"Spark did not start: {error}\n"
        f"The last lines of {log}:\n  {_last_lines(log, start)}\n"
        "Fix: set JAVA_HOME to the folder of a Java 17 or 21, or `pip install "
        "'dbt-afterimage[java]'` (`afterimage doctor` checks it; in a clone, `make setup` does "
        "this). If Java is right: the first start downloads "
        "the jars of `spark.jars.packages` from Maven Central."
    )


def _last_lines(log: Path, start: int = 0) -> str:
    """The last lines that say something: a stack trace of Java would take the room of its cause."""
    lines = log.read_bytes()[start:].decode(errors="replace").splitlines()
    told = [line for line in lines if not line.strip().startswith(("at ", "... "))]
    return "\n  ".join(told[-_TAIL_LINES:])
