"""Executors in processes of their own, and Spark Connect: a standalone cluster on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from afterimage_demo.servers import free_ports
from tests.functional.dbt_project import DbtProject
from tests.functional.pages import python_of
from tests.functional.properties.stream_project import write_stream_project
from tests.functional.standalone import (
    HOST,
    afterimage_server,
    free_address,
    parameters_of_cluster,
    standalone_cluster,
    without_jars_of_tests,
)
from tests.functional.stream_run import build
from tests.log_reader import read_rows
from tests.streams.comparison import assert_equal, by_stream
from tests.streams.selection import stream_table
from tests.streams.tables import StreamTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]

# The profile names Iceberg in `spark.jars.packages`; Avro is what a command fetches.
READ_ON_EXECUTOR = """\
import json, sys

from dbt_afterimage.dbt_spark.jars import avro_jars, give_to_spark
from dbt_afterimage.dbt_spark.statements import live_session

give_to_spark(avro_jars())
folder, parameters = sys.argv[1], json.loads(sys.argv[2])
session = live_session(parameters)
session.range(3).write.format("avro").save(f"{folder}/avro")
session.sql("create table lake.db.numbers (id bigint) using iceberg")
session.read.format("avro").load(f"{folder}/avro").writeTo("lake.db.numbers").append()
print("rows:", session.table("lake.db.numbers").count(), session.sparkContext.master)
session.stop()
"""


SHAPE = "unknown_ignored"
"""Late changes, key changes that lack values, a truncate, a load."""
STREAMS = 30
MANY_STREAMS = 500


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster with two workers."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster"), workers=2) as cluster:
        yield cluster.master


@pytest.fixture
def own_profiles(profiles: Path, warehouse: Path, master: str, tmp_path: Path) -> Path:
    """The target `iceberg` on the cluster (`cluster`), and one for a server (`connect`)."""
    profile = yaml.safe_load((profiles / "profiles.yml").read_text(encoding="utf-8"))
    outputs = profile["afterimage"]["outputs"]
    outputs["iceberg"]["schema"] = "anywhere"
    outputs["iceberg"]["server_side_parameters"] |= {
        **parameters_of_cluster(master, "900m"),
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=400m",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.sql.shuffle.partitions": "2",
    }
    remote = {"spark.remote": free_address()}
    connect = {**outputs["iceberg"], "server_side_parameters": remote}
    profile["afterimage"] = {
        "target": "cluster",
        "outputs": {"cluster": outputs["iceberg"], "connect": connect},
    }
    folder = tmp_path / "own_profiles"
    folder.mkdir()
    (folder / "profiles.yml").write_text(yaml.safe_dump(profile), encoding="utf-8")
    return folder


def remote_of(profiles: Path) -> str:
    """Address of the server of the target `connect`."""
    profile = yaml.safe_load((profiles / "profiles.yml").read_text(encoding="utf-8"))
    parameters = profile["afterimage"]["outputs"]["connect"]["server_side_parameters"]
    return str(parameters["spark.remote"])


@contextmanager
def connect_server(profiles: Path, folder: Path, *options: str) -> Iterator[None]:
    """`afterimage server` of the cluster, for the target `connect`."""
    variables = {"DBT_PROFILES_DIR": str(profiles), "AFTERIMAGE_TEST_SCHEMA": "anywhere"}
    with afterimage_server("cluster", folder, remote_of(profiles), variables, *options):
        yield


def run_elsewhere(
    project: Path,
    profiles: Path,
    target: str,
    batches: str,
    streams: int = STREAMS,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Where the batches of the streams were built."""
    arguments = [SHAPE, str(streams), project, profiles, target, project / "scratch", batches]
    done = subprocess.run(
        [sys.executable, "-m", "tests.functional.stream_run", *map(str, arguments)],
        cwd=ROOT,
        env=without_jars_of_tests(AFTERIMAGE_TEST_SCHEMA="anywhere", **variables),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("ran on ")]
    return line.removeprefix("ran on ")


def query_by_thrift(port: int, statement: str) -> list[tuple[Any, ...]]:
    from pyhive import hive

    connection = hive.connect(HOST, port=port, database="anywhere")
    try:
        cursor = connection.cursor()
        cursor.execute(statement)
        return list(cursor.fetchall())
    finally:
        connection.close()


def run_notebook(remote: str, table: str, variables: Mapping[str, str]) -> dict[str, int]:
    """The cell of docs/querying.md that queries a server, in a process: versions by `opened_by`."""
    cell = python_of("docs/querying.md", "## In a notebook")[-1]
    for shown, own in (("sc://localhost:15002/;token=...", remote), ("afterimage.orders", table)):
        assert shown in cell
        cell = cell.replace(shown, own)
    result = "\nprint(opened.set_index('opened_by')['count'].to_json())\n"
    done = subprocess.run(
        [sys.executable, "-c", cell + result],
        env=without_jars_of_tests(**variables),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


def check_marts(spark: SparkSession, table: StreamTable) -> None:
    """They are what the oracle makes of the whole log."""
    for mart, expected_of, left_out in (
        ("history", table.expected_history, (f"{SHAPE}_history_id", "recorded_at")),
        ("current", table.expected_current, ("recorded_at",)),
        ("field_changes", table.expected_field_changes, ("recorded_at",)),
    ):
        rows = read_rows(spark.table(f"anywhere.{SHAPE}_{mart}"))
        expected = [row for stream in table.streams for row in expected_of(stream)]
        assert_equal(table, by_stream(rows, *left_out), by_stream(expected))


def test_a_history_begun_here_goes_on_over_connect_and_on_the_cluster(
    spark: SparkSession,
    make_dbt_project: Callable[..., DbtProject],
    master: str,
    own_profiles: Path,
    tmp_path: Path,
) -> None:
    """One batch in this process, one by a server on the cluster, two by a driver on the cluster.

    The client of the server has no Java.
    """
    folder = tmp_path / "project"
    table = stream_table(SHAPE, STREAMS)
    write_stream_project(folder, [table.shape])
    build(make_dbt_project(folder, schema="anywhere"), table, [1])
    thrift = free_ports(1)[0]
    with connect_server(own_profiles, folder, "--thrift-port", str(thrift)):
        no_java = {"JAVA_HOME": str(tmp_path / "none"), "PATH": "/none"}
        assert run_elsewhere(folder, own_profiles, "connect", "2", variables=no_java) == "connect"
        history = spark.table(f"anywhere.{SHAPE}_history")
        # as a BI tool does, at the Thrift server of the same application
        found = query_by_thrift(thrift, f"select count(*) from {SHAPE}_history")
        assert found == [(history.count(),)]
        opened = run_notebook(remote_of(own_profiles), f"anywhere.{SHAPE}", no_java)
        assert opened == dict(map(tuple, history.groupBy("opened_by").count().collect()))
    assert run_elsewhere(folder, own_profiles, "cluster", "3,4") == master
    check_marts(spark, table)


def test_many_streams_over_connect(spark: SparkSession, own_profiles: Path, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    table = stream_table(SHAPE, MANY_STREAMS)
    write_stream_project(folder, [table.shape])
    for name in ("anywhere", "streams_logs"):
        spark.sql(f"drop schema if exists {name} cascade")
    with connect_server(own_profiles, folder):
        for batch in "1234":
            assert run_elsewhere(folder, own_profiles, "connect", batch, MANY_STREAMS) == "connect"
    check_marts(spark, table)


def test_executors_have_the_jars_of_the_profile_and_those_that_a_command_fetches(
    master: str, tmp_path: Path
) -> None:
    profile = yaml.safe_load((ROOT / "profiles.yml.example").read_text(encoding="utf-8"))
    packages = "spark.jars.packages"
    of_profile = profile["afterimage"]["outputs"]["iceberg"]["server_side_parameters"]
    parameters = {
        packages: of_profile[packages],
        **parameters_of_cluster(master, "512m"),
        "spark.driver.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(tmp_path / "spark"),
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(tmp_path / "lake"),
    }
    done = subprocess.run(
        [sys.executable, "-c", READ_ON_EXECUTOR, str(tmp_path), json.dumps(parameters)],
        cwd=tmp_path,
        env=without_jars_of_tests(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert done.stdout.split() == ["rows:", "3", master]
