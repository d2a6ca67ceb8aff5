"""The server of Spark Connect: its address, and whether it has the settings that a run needs.

A Connect session cannot set what Spark reads when it starts, such as extensions. PySpark drops such
settings silently, so they are compared with those of the server before anything runs.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dbt_afterimage.errors import AfterimageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_PORT = 15002
LOOPBACK = ("127.0.0.1", "::1", "localhost")
TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""Environment variable that gives PySpark's server and clients the token."""
_SECONDS = 10

TEXT_AS_IT_IS: Mapping[str, str] = {"spark.sql.variable.substitute": "false"}
"""Spark would replace `${env:HOME}` and the like in a statement, in names and literals too."""

NEEDED: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    **TEXT_AS_IT_IS,
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.cteRecursionLevelLimit": "-1",
    "spark.sql.cteRecursionRowLimit": "-1",
}
"""Session settings that results, or the end of a query, depend on; a session may set each."""

EXTENSIONS: Mapping[str, str] = {
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
}

LAUNCH_SETTINGS = (
    "spark.app.",
    "spark.buffer.",
    "spark.connect.",
    "spark.driver.",
    "spark.executor.",
    "spark.jars",
    "spark.master",
    "spark.remote",
    "spark.submit.",
    "spark.ui.",
)
"""Prefixes of settings that say how Spark is launched; no result depends on them."""
_WAREHOUSE = "spark.sql.warehouse.dir"
_URI = re.compile(r"(?:([a-z][a-z0-9+.-]*):)?(?://([^/]+)|//)?(.*?)/*", re.I)
# A session accepts these, and they have no effect in it.
_ONLY_AT_LAUNCH = ("spark.hadoop.", "spark.sql.catalogImplementation", "spark.sql.extensions")


class ConnectError(AfterimageError):
    """The server cannot be reached, or lacks what a run needs."""


@dataclass(frozen=True)
class Missing:
    """A setting that the server must have.

    Attributes:
        name: of the setting.
        value: the value that is needed.
        found: the server's value; None where it has none.
    """

    name: str
    value: str
    found: str | None

    def line(self) -> str:
        """The argument of spark-submit that sets it."""
        return f"--conf '{self.name}={self.value}'"


def shown(address: str) -> str:
    """An address without its parameters: one of them may be a token."""
    return address.partition(";")[0].rstrip("/")


def check_reachable(address: str) -> None:
    """Stop where no server listens, or where PySpark would try in vain for minutes.

    Raises:
        ConnectError: the address cannot be read, nothing listens there, or PySpark expects TLS.
    """
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port or DEFAULT_PORT
    except ValueError:
        parts, host, port = None, None, 0
    if parts is None or parts.scheme != "sc" or not host:
        raise ConnectError(
            f"`spark.remote` is {shown(address)!r}. Allowed: sc://host:port, followed by "
            "parameters such as /;use_ssl=true;token=... Fix: correct `spark.remote` in "
            "profiles.yml, or the environment variable SPARK_REMOTE."
        )
    try:
        socket.create_connection((host, port), timeout=_SECONDS).close()
    except OSError as error:
        raise ConnectError(
            f"No Spark Connect server answers at {shown(address)}: {error}. Fix: start one "
            "(`afterimage server`), or correct `spark.remote` in profiles.yml, or the environment "
            "variable SPARK_REMOTE."
        ) from error
    has_token = ";token=" in address or TOKEN_VARIABLE in os.environ
    if has_token and host in LOOPBACK and host != "localhost" and ";use_ssl=true" not in address:
        raise ConnectError(
            f"{shown(address)}: PySpark sends a token without TLS to `localhost` only. Fix: write "
            f"sc://localhost:{port} in `spark.remote` of profiles.yml or in SPARK_REMOTE."
        )


def prepare(session: SparkSession, parameters: Mapping[str, Any], address: str) -> None:
    """Set what a session may set, and stop where the server lacks what only its start can set.

    Raises:
        ConnectError: the server has another version of Spark, or lacks settings; names all of
            them, each with the line to start the server with.
    """
    from pyspark import __version__ as ours
    from pyspark.errors import PySparkException

    if session.version.split(".")[:2] != ours.split(".")[:2]:
        raise ConnectError(
            f"The Spark Connect server {shown(address)} has Spark {session.version}, and PySpark "
            f"here is {ours}. Fix: start a server of the same version: `afterimage server`."
        )
    has = dict(session.conf.getAll)
    refused = []
    for name, value in wanted(parameters).items():
        if has.get(name) == value or name.startswith(_ONLY_AT_LAUNCH):
            continue
        try:
            session.conf.set(name, value)
            has[name] = value
        except PySparkException:
            refused.append(name)
    missing = list(missing_settings(wanted(parameters), has, refused))
    if missing:
        lines = "\n".join(
            f"  {each.line()}   (the server has "
            f"{'none' if each.found is None else repr(each.found)})"
            for each in missing
        )
        raise ConnectError(
            f"The Spark Connect server {shown(address)} was started without settings that this "
            f"project needs. Nothing was run.\n{lines}\nFix: start the server with these "
            "arguments, or by `afterimage server`, which sets them all."
        )


def wanted(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Settings that a session is to have, by name: those of the profile, and what results need."""
    of_profile = {
        name: str(value)
        for name, value in parameters.items()
        if not name.startswith(LAUNCH_SETTINGS)
    }
    return {**NEEDED, **of_profile}


def missing_settings(
    given: Mapping[str, str], has: Mapping[str, str], refused: Iterable[str]
) -> Iterable[Missing]:
    """Settings that only the start of the server can bring.

    Args:
        given: of `wanted`.
        has: the session's settings.
        refused: names that a session may not set.
    """
    for name, value in given.items():
        if name == "spark.sql.extensions":
            for extension in value.split(","):
                if extension not in has.get(name, "").split(","):
                    yield Missing(name, extension, has.get(name))
        elif (name in refused or name.startswith(_ONLY_AT_LAUNCH)) and not _is_equal(
            name, value, has.get(name)
        ):
            yield Missing(name, value, has.get(name))
    catalog = has.get("spark.sql.defaultCatalog", "spark_catalog")
    implementation = has.get(f"spark.sql.catalog.{catalog}", "").lower()
    for known, extension in EXTENSIONS.items():
        if known in implementation and extension not in (
            f"{has.get('spark.sql.extensions', '')},{given.get('spark.sql.extensions', '')}"
        ):
            yield Missing("spark.sql.extensions", extension, has.get("spark.sql.extensions"))
    if not any(known in implementation for known in EXTENSIONS):
        yield Missing(
            "spark.sql.defaultCatalog",
            "<a catalog whose spark.sql.catalog.<name> is one of Iceberg or Delta>",
            has.get("spark.sql.defaultCatalog"),
        )


def _is_equal(name: str, value: str, found: str | None) -> bool:
    if found is None or name != _WAREHOUSE:
        return found == value
    # Spark qualifies the path: /data/lake becomes file:/data/lake, or hdfs://host/data/lake
    pairs = zip(_location(value), _location(found), strict=True)
    return all(mine is None or mine == other for mine, other in pairs)


def _location(uri: str) -> tuple[str | None, ...]:
    """Scheme, host and path, without slashes at its end; None for what is not there."""
    parts = _URI.fullmatch(uri)
    return parts.groups() if parts else (None, None, uri)
