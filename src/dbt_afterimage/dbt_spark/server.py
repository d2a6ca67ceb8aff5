"""Starts a Spark Connect server with the settings of a profile's target, outside of dbt."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt_afterimage.errors import AfterimageError
from dbt_afterimage.spark.connect import DEFAULT_PORT, NEEDED
from dbt_afterimage.spark.session import REMOTE

_CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
_THRIFT = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
_CONNECT_PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"


class ServerError(AfterimageError):
    """A server cannot be started with this target."""


@dataclass(frozen=True)
class Listen:
    """Where a server listens.

    Attributes:
        host: the address to bind to.
        port: of Spark Connect.
        thrift_port: of the Thrift server in the same application; None for no Thrift server.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    thrift_port: int | None = None


def target_parameters(profile: Any) -> dict[str, Any]:
    """`server_side_parameters` of a profile's target, for a server.

    Raises:
        ServerError: the target connects to a server itself.
    """
    parameters = profile.credentials.server_side_parameters or {}
    if REMOTE in parameters:
        raise ServerError(
            f"The target {profile.target_name} has `{REMOTE}`: it connects to a server, and lacks "
            "the settings of one. Fix: name a target without it by --target, such as iceberg."
        )
    return dict(parameters)


def server_settings(parameters: Mapping[str, Any], listen: Listen) -> dict[str, str]:
    """All settings of the server's Spark application, by name.

    Args:
        parameters: the target's `server_side_parameters`.
        listen: where the server listens.
    """
    # a session of dbt-spark has Hive's catalog unless the profile says otherwise
    settings = {"spark.sql.catalogImplementation": "hive", **NEEDED}
    settings |= {name: str(value) for name, value in parameters.items()}
    settings["spark.connect.grpc.binding.address"] = listen.host
    settings["spark.connect.grpc.binding.port"] = str(listen.port)
    if listen.thrift_port is not None:
        plugins = [settings["spark.plugins"]] if settings.get("spark.plugins") else []
        settings["spark.plugins"] = ",".join([*plugins, _CONNECT_PLUGIN])
    return settings


def _arguments(listen: Listen) -> tuple[list[str], list[str]]:
    """Arguments of spark-submit in front of the settings, and behind them."""
    if listen.thrift_port is None:
        return ["--class", _CONNECT, "--name", "afterimage"], ["spark-internal"]
    hive = {
        "hive.server2.thrift.port": str(listen.thrift_port),
        "hive.server2.thrift.bind.host": listen.host,
    }
    given = [word for name, value in hive.items() for word in ("--hiveconf", f"{name}={value}")]
    return ["--class", _THRIFT, "--name", "afterimage"], ["spark-internal", *given]


def shown_command(settings: Mapping[str, str], listen: Listen) -> str:
    """A command line for a shell, one setting a line; it shows secrets that the profile has."""
    first, last = _arguments(listen)
    lines = [f"--conf {shlex.quote(f'{name}={value}')}" for name, value in settings.items()]
    return " \\\n  ".join([f"spark-submit {shlex.join(first)}", *lines, shlex.join(last)])


def run_server(settings: Mapping[str, str], listen: Listen) -> int:
    """Run the server in the foreground until it ends; returns its exit code.

    Its settings go through a file that only this user can read: other users see command lines.
    """
    import pyspark

    program = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    first, last = _arguments(listen)
    with tempfile.NamedTemporaryFile("w", prefix="afterimage_server_", suffix=".conf") as file:
        for name, value in settings.items():
            text = value.replace("\\", "\\\\")
            file.write(f"{name}={text}\n")
        file.flush()
        command = [str(program), *first, "--properties-file", file.name, *last]
        process = subprocess.Popen(command)
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            return 0
