"""Iceberg's own REST catalog server: the program of the image apache/iceberg-rest-fixture."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

from dbt_afterimage.dbt_spark.jars import fetched
from dbt_afterimage.spark.java import java
from tests.functional.standalone import HOST, process_of

_ICEBERG = "org.apache.iceberg"
_VERSION = "1.11.0"  # of the server: Maven Central has no jars of the tests of Iceberg 1.12.0
_JETTY = "12.1.8"


@contextmanager
def rest_catalog(folder: Path, properties: Mapping[str, str]) -> Iterator[str]:
    """The address of a server.

    Args:
        folder: where it has its log and the SQLite file of its catalog.
        properties: of the catalog behind it, such as `warehouse`.
    """
    given = {"rest.port": "0", "uri": f"jdbc:sqlite:{folder / 'catalog.db'}", **properties}
    program = f"{_ICEBERG}.rest.RESTCatalogServer"
    command = [java(), "-Xmx512m", "-cp", _classpath(), program]
    with process_of(
        command,
        folder / "rest_catalog.log",
        r"\{0\.0\.0\.0:[1-9]\d*\}",
        environment={**os.environ, **{_variable(name): given[name] for name in given}},
    ) as (_, listening):
        yield f"http://{HOST}:{re.sub(r'.*:|}', '', listening)}"


def _variable(name: str) -> str:
    """The environment variable from which the server takes a property."""
    return "CATALOG_" + name.replace("-", "__").replace(".", "_").upper()


def _classpath() -> str:
    """The server is in two jars of Iceberg's tests; Spark brings Hadoop."""
    jars = [
        *fetched([(_ICEBERG, "iceberg-aws", _VERSION)], transitive=True),
        *fetched(
            [
                ("org.eclipse.jetty.ee10", "jetty-ee10-servlet", _JETTY),
                ("org.eclipse.jetty.compression", "jetty-compression-server", _JETTY),
                ("org.eclipse.jetty.compression", "jetty-compression-gzip", _JETTY),
            ],
            transitive=True,
        ),
        *fetched(
            [
                (_ICEBERG, "iceberg-open-api", _VERSION, "test-fixtures"),
                (_ICEBERG, "iceberg-core", _VERSION, "tests"),
                (_ICEBERG, "iceberg-aws-bundle", _VERSION),
                ("org.xerial", "sqlite-jdbc", "3.50.3.0"),
                ("org.slf4j", "slf4j-simple", "2.0.17"),
            ]
        ),
        *(Path(pyspark.__file__).parent / "jars").glob("hadoop-client-*.jar"),
    ]
    return os.pathsep.join(map(str, jars))
