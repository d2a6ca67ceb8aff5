"""One module reaches Spark's session; a Connect server is checked before anything runs."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_afterimage.dbt_spark.connect_server import (
    Listen,
    ServerError,
    client_line,
    server_settings,
    shown_command,
)
from dbt_afterimage.errors import (
    ConcurrentRunError,
    conflicts_explained,
    explained,
    is_without_views,
)
from dbt_afterimage.spark import connect
from dbt_afterimage.spark.connect import ConnectError

ROOT = Path(__file__).parents[2]
ICEBERG = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
CATALOG = {
    "spark.sql.defaultCatalog": "lake",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
}


def test_only_one_module_uses_what_a_classic_session_has() -> None:
    names = "_jvm|_jdf|_jsc|_jsparkSession|SparkContext|sparkContext"
    classic = re.compile(rf"\b({names})\b|\.rdd\b|Session\.builder\b")
    folders = (ROOT / "src", ROOT / "demo" / "src", ROOT / "demo" / "models")
    found = {
        str(file.relative_to(ROOT))
        for folder in folders
        for file in folder.rglob("*.py")
        if classic.search(file.read_text(encoding="utf-8"))
    }
    assert found == {"src/dbt_afterimage/spark/session.py"}


class Server:
    """A Connect session on a server with these settings; it refuses static ones, as Spark does."""

    def __init__(self, settings: Mapping[str, str], version: str = "4.1.1") -> None:
        self.settings = dict(settings)
        self.version = version
        self.conf = SimpleNamespace(getAll=self.settings, set=self._set)

    def _set(self, name: str, value: str) -> None:
        from pyspark.errors import AnalysisException

        if name in ("spark.sql.codegen.cache.maxEntries", "spark.sql.warehouse.dir"):
            raise AnalysisException("CANNOT_MODIFY_CONFIG")
        self.settings[name] = value


def prepare(server: Server, **parameters: str) -> None:
    names = {name.replace("__", "."): value for name, value in parameters.items()}
    connect.prepare(cast(Any, server), names, "sc://spark:15002/;token=secret")


def test_what_a_session_may_set_is_set() -> None:
    server = Server({**CATALOG, "spark.sql.extensions": f"other.Extension,{ICEBERG}"})
    of_the_server = {"spark__driver__memory": "4g", "spark__buffer__pageSize": "4m"}
    prepare(server, spark__sql__shuffle__partitions="8", **of_the_server)
    assert server.settings["spark.sql.session.timeZone"] == "UTC"
    assert server.settings["spark.sql.shuffle.partitions"] == "8"
    assert not {"spark.driver.memory", "spark.buffer.pageSize"} & {*server.settings}


def test_all_that_a_server_lacks_is_listed_with_the_line_to_set() -> None:
    server = Server({**CATALOG, "spark.sql.codegen.cache.maxEntries": "100"})
    with pytest.raises(ConnectError) as caught:
        prepare(
            server,
            spark__sql__extensions=ICEBERG,
            spark__sql__codegen__cache__maxEntries="2000",
            spark__hadoop__fs__s3a__endpoint="http://store",
        )
    text = str(caught.value)
    assert f"--conf 'spark.sql.extensions={ICEBERG}'   (the server has none)" in text
    assert "--conf 'spark.sql.codegen.cache.maxEntries=2000'   (the server has '100')" in text
    assert "--conf 'spark.hadoop.fs.s3a.endpoint=http://store'   (the server has none)" in text
    assert text.count("--conf") == 3
    assert "sc://spark:15002" in text
    assert "secret" not in text


@pytest.mark.parametrize(
    ("given", "found", "is_same"),
    [
        ("/data/lake", "/data/lake", True),
        ("/data/lake", "file:/data/lake", True),
        ("/data/lake/", "file:/data/lake", True),
        ("file:///data/lake", "file:/data/lake", True),
        ("/data/lake", "hdfs://name-node:8020/data/lake", True),
        ("hdfs:///data/lake", "hdfs://name-node:8020/data/lake", True),
        ("s3a://bucket/lake/", "s3a://bucket/lake", True),
        ("/data/lake", "file:/data/other", False),
        ("s3a://bucket/lake", "s3a://other/lake", False),
        ("hdfs:///data/lake", "file:/data/lake", False),
    ],
)
def test_spark_qualifies_the_path_of_the_warehouse(given: str, found: str, is_same: bool) -> None:
    """The Delta target could not be used over Connect: its server has `file:` before the path."""
    warehouse = {"spark__sql__warehouse__dir": given, "spark__sql__extensions": ICEBERG}
    server = Server({**CATALOG, "spark.sql.extensions": ICEBERG, "spark.sql.warehouse.dir": found})
    if is_same:
        prepare(server, **warehouse)
    else:
        with pytest.raises(ConnectError, match=r"warehouse\.dir="):
            prepare(server, **warehouse)


def test_a_catalog_needs_its_extension_whatever_the_profile_says() -> None:
    with pytest.raises(ConnectError, match=f"spark.sql.extensions={ICEBERG}"):
        prepare(Server(CATALOG))
    with pytest.raises(ConnectError, match=r"spark\.sql\.defaultCatalog=<a catalog"):
        prepare(Server({}))


def test_a_server_of_another_version_is_refused() -> None:
    with pytest.raises(ConnectError, match=r"has Spark 4\.0\.1, and PySpark here is 4\.1"):
        prepare(Server(CATALOG, version="4.0.1"))


@pytest.mark.parametrize("address", ["spark:15002", "http://spark", "sc://", "sc://host:port"])
def test_an_address_that_cannot_be_read_is_named(address: str) -> None:
    with pytest.raises(ConnectError, match=r"Allowed: sc://host:port.*Fix: "):
        connect.check_reachable(address)


def test_a_server_that_is_not_there_is_named_at_once_and_without_its_token() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(
        ConnectError, match=f"No Spark Connect server answers at sc://.*{port}:"
    ) as caught:
        connect.check_reachable(f"sc://127.0.0.1:{port}/;token=secret")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "java.io.IOException: No space left on device",
            r"A disk is full, .*Fix: free space .*spark\.local\.dir",
        ),
        ("java.io.IOException: Disk quota exceeded", r"A disk is full, or the system refuses to"),
        ("[SQLITE_FULL] Insertion failed because database is full", r"A disk is full"),
        (
            "Caused by: org.sqlite.SQLiteException: [SQLITE_BUSY] The database file is locked "
            "(database is locked)",
            r"The catalog's SQLite file stayed locked: .*Fix: wait until that process has ended",
        ),
        (
            ": java.lang.OutOfMemoryError: Java heap space",
            r"Java ran out of memory\. Fix: set `spark\.driver\.memory` of the target",
        ),
    ],
)
def test_what_the_machine_refused_is_named_without_lines_of_java(said: str, expected: str) -> None:
    spark = (
        f"An error occurred while calling o74.sql.\n{said}\n" + "\tat org.apache.A.b(A:1)\n" * 40
    )
    text = explained(spark)
    assert re.match(expected, text)
    assert text.endswith(f"What Spark said: {said.strip(': ')}")


def test_an_address_to_which_pyspark_would_not_send_a_token_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(ConnectError, match=f"Fix: write sc://localhost:{port} in") as caught:
            connect.check_reachable(f"sc://127.0.0.1:{port}/;token=secret")
        assert "secret" not in str(caught.value)
        for good in (f"localhost:{port}/;token=s", f"127.0.0.1:{port}/;use_ssl=true;token=s"):
            connect.check_reachable(f"sc://{good}")


def test_a_lost_executor_is_said_to_be_one() -> None:
    spark = "[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_5_1 not found! Either ..."
    assert re.search(r"executor.*was lost.*Nothing of this batch.*Fix: run again", explained(spark))


def test_a_conflict_is_explained() -> None:
    refusal = "org.apache.iceberg.exceptions.CommitFailedException: Branch not found"
    with pytest.raises(ConcurrentRunError) as caught, conflicts_explained("shop.orders"):
        raise RuntimeError(refusal)
    assert re.search(r"shop.orders: another run.*Fix: wait", str(caught.value))


def test_a_driver_without_the_jar_of_the_catalog_is_told_how_to_get_it() -> None:
    spark = (
        "[INTERNAL_ERROR] Cannot find catalog plugin class for catalog 'lake': "
        "org.apache.iceberg.spark.SparkCatalog. SQLSTATE: XX000"
    )
    text = explained(spark)
    assert "lake: it lacks the class org.apache.iceberg.spark.SparkCatalog. Where" in text
    assert re.search(r"Fix: .*spark-submit --packages", text)


@pytest.mark.parametrize(
    ("error", "catalog"),
    [
        ("Creating a view is not supported by catalog: lake", "catalog lake"),
        ("Replacing a view is not supported by catalog: my-lake", "catalog my-lake"),
        (
            "Server does not support endpoint: POST /v1/{prefix}/namespaces/{namespace}/views",
            "catalog",
        ),
        (
            "Cannot create view lake.a.b that references temporary view: [afterimage_view_a__c]",
            "catalog",
        ),
    ],
)
def test_a_catalog_without_views_is_said_to_have_none(error: str, catalog: str) -> None:
    assert is_without_views(error)
    found = re.search(r"The (.*) has no views\. .*Fix: another materialization", explained(error))
    assert found is not None
    assert found[1] == catalog


def test_a_server_has_the_settings_of_the_target_and_listens_where_it_is_told() -> None:
    listen = Listen(port=15003, thrift_port=10001)
    settings = server_settings({**CATALOG, "spark.plugins": "com.example.Plugin"}, listen)
    assert settings["spark.sql.defaultCatalog"] == "lake"
    assert settings["spark.sql.session.timeZone"] == "UTC"
    assert settings["spark.connect.grpc.binding.address"] == "127.0.0.1"
    assert settings["spark.plugins"].startswith("com.example.Plugin,org.apache.spark.sql.connect.")
    words = shown_command(settings, listen).split()
    assert "spark.connect.grpc.binding.port=15003" in words
    assert "hive.server2.thrift.port=10001" in words


TOKEN = "spark.connect.authenticate.token"


@pytest.fixture
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(connect.TOKEN_VARIABLE, raising=False)


@pytest.mark.usefixtures("no_token")
def test_each_start_of_a_server_makes_a_token_and_prints_it() -> None:
    first, second = (server_settings(CATALOG, Listen()) for _ in range(2))
    assert first[TOKEN] != second[TOKEN]
    assert len(first[TOKEN]) > 40
    line = f"export SPARK_REMOTE='sc://localhost:15002/;token={first[TOKEN]}'"
    assert client_line(first, Listen()) == line


def test_a_token_of_the_environment_is_used_and_not_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(connect.TOKEN_VARIABLE, "mine")
    settings = server_settings(CATALOG, Listen())
    assert settings[TOKEN] == "mine"
    assert client_line(settings, Listen()) == "export SPARK_REMOTE='sc://localhost:15002/'"
    assert server_settings({TOKEN: "of the target"}, Listen())[TOKEN] == "of the target"


@pytest.mark.parametrize("host", ["0.0.0.0", "10.1.2.3", "spark.example.com", "::"])
def test_a_server_for_other_machines_needs_a_proxy_with_tls(host: str) -> None:
    with pytest.raises(ServerError, match=rf"--host is {host}; allowed: 127.*Fix: .*--behind-tls"):
        server_settings(CATALOG, Listen(host))
    behind = Listen(host, is_behind_tls=True)
    settings = server_settings(CATALOG, behind)
    assert settings["spark.connect.grpc.binding.address"] == host
    assert ";use_ssl=true" in client_line(settings, behind)


def test_a_thrift_server_for_other_machines_needs_a_login() -> None:
    listen = Listen("0.0.0.0", thrift_port=10000, is_behind_tls=True)
    login = "spark.hadoop.hive.server2.authentication"
    for given in ({}, {login: "none"}, {login: "NOSASL"}):
        with pytest.raises(ServerError, match=r"authentication` of the target is NO.*Fix: set"):
            server_settings({**CATALOG, **given}, listen)
    assert server_settings({**CATALOG, login: "LDAP"}, listen)[login] == "LDAP"


def test_a_server_on_one_machine_keeps_its_driver_to_itself() -> None:
    settings = server_settings({**CATALOG, "spark.master": "local[2]"}, Listen())
    assert settings["spark.driver.host"] == "127.0.0.1"
    assert "spark.driver.host" not in server_settings({"spark.master": "yarn"}, Listen())
