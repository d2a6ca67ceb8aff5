"""Starts a Spark Connect server with the settings of a profile's target, outside of dbt."""

from __future__ import annotations

import os
import secrets
import shlex
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt_afterimage.errors import AfterimageError
from dbt_afterimage.spark.connect import DEFAULT_PORT, LOOPBACK, NEEDED, TOKEN_VARIABLE
from dbt_afterimage.spark.ivy import fetch_packages
from dbt_afterimage.spark.launch import (
    launch_arguments,
    loopback_settings,
    private_settings,
    program,
    text,
)
from dbt_afterimage.spark.session import REMOTE

_CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
_THRIFT = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
_CONNECT_PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"
_TOKEN = "spark.connect.authenticate.token"
_THRIFT_LOGIN = "spark.hadoop.hive.server2.authentication"


class ServerError(AfterimageError):
    """A server cannot be started with this target."""


@dataclass(frozen=True)
class Listen:
    """Where a server listens.

    Attributes:
        port: of Spark Connect.
        thrift_port: of the Thrift server in the same application; None for no Thrift server.
        is_behind_tls: other machines reach it through a proxy with TLS only.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    thrift_port: int | None = None
    is_behind_tls: bool = False


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

    Raises:
        ServerError: others could read along, or get in without a token or a login.
    """
    _check_host(parameters, listen)
    # a session of dbt-spark has Hive's catalog unless the profile says otherwise
    settings = {"spark.sql.catalogImplementation": "hive", **NEEDED}
    settings |= {name: text(value) for name, value in parameters.items()}
    settings |= loopback_settings(settings)
    settings[_TOKEN] = settings.get(_TOKEN) or own_token() or secrets.token_urlsafe(32)
    settings["spark.connect.grpc.binding.address"] = listen.host
    settings["spark.connect.grpc.binding.port"] = str(listen.port)
    if listen.thrift_port is not None:
        plugins = [settings["spark.plugins"]] if settings.get("spark.plugins") else []
        settings["spark.plugins"] = ",".join([*plugins, _CONNECT_PLUGIN])
    return settings


def own_token() -> str | None:
    """The token that the environment gives to a server and its clients, which is PySpark's way."""
    return os.environ.get(TOKEN_VARIABLE) or None


def client_line(settings: Mapping[str, str], listen: Listen) -> str:
    """A line for a client's shell, with the token if it was made for this start."""
    # to 127.0.0.1, PySpark sends a token by TLS only
    address = "<proxy>:443/;use_ssl=true" if listen.is_behind_tls else f"localhost:{listen.port}/"
    token = "" if own_token() else f";token={settings[_TOKEN]}"
    return f"export SPARK_REMOTE='sc://{address}{token}'"


def _check_host(parameters: Mapping[str, Any], listen: Listen) -> None:
    if listen.host in LOOPBACK:
        return
    if not listen.is_behind_tls:
        raise ServerError(
            f"--host is {listen.host}; allowed: {', '.join(LOOPBACK)}. Whoever has the token runs "
            "code as this user, and Spark itself has no TLS, so others could read the token. Fix: "
            "leave out --host, or let a proxy with TLS be the only way to this address, and add "
            "--behind-tls-proxy."
        )
    login = str(parameters.get(_THRIFT_LOGIN, "NONE")).upper()
    if listen.thrift_port is not None and login in ("NONE", "NOSASL"):
        raise ServerError(
            f"--thrift-port with --host {listen.host}: `{_THRIFT_LOGIN}` of the target is {login}, "
            "so everyone could run code as this user. Allowed: LDAP, KERBEROS, PAM or CUSTOM. Fix: "
            "set it in the target's `server_side_parameters`, or leave out --host or --thrift-port."
        )


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
    """Run the server in the foreground until it ends or this process is told to end.

    Returns:
        Its exit code; 0 after Ctrl+C, SIGTERM or SIGHUP.
    """
    first, last = _arguments(listen)
    for number in (signal.SIGTERM, signal.SIGHUP):
        # as Ctrl+C: Java ends too, and the files are removed
        signal.signal(number, signal.default_int_handler)
    try:
        fetch_packages(settings)
        with launch_arguments({**private_settings(settings), **settings}) as given:
            process = subprocess.Popen([program("spark-submit"), *first, *given, *last])
            try:
                return process.wait()
            finally:
                process.terminate()
                process.wait()
    except KeyboardInterrupt:
        return 0
