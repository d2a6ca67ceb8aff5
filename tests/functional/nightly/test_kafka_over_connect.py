"""Messages from a real broker are landed and built over Spark Connect; the client has no Java."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

from afterimage_demo.broker import Broker, send
from dbt_afterimage.ingest.kafka.request import PACKAGE
from tests.functional.lake import Lake
from tests.functional.messages_project import write_project
from tests.functional.standalone import afterimage_server, free_address, without_jars_of_tests
from tests.qlik_messages import change

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "remote_landing"
SOURCE, TOPIC = "raw_remote", "hall.people"
PEOPLE = {"id": "int", "name": "string"}
FIRST = [
    change("INSERT", 1, {"id": 1, "name": "Ann"}),
    change("INSERT", 2, {"id": 2, "name": "Bob"}),
]
SECOND = [
    change("UPDATE", 3, {"id": 1, "name": "Anna"}, {"id": 1, "name": "Ann"}),
    change("DELETE", 4, {"id": 2, "name": "Bob"}),
]

Client = Callable[..., str]


@pytest.fixture
def client(profiles: Path, warehouse: Path, tmp_path: Path) -> Any:
    """Runs a program of this environment in the project, as a client of a server."""
    project = tmp_path / "project"
    settings = {"key": ["id"], "message_table": TOPIC}
    write_project(project, {SOURCE: {}}, {"people": (SOURCE, settings, PEOPLE)})
    Lake(tmp_path).write_profile(profiles, {}, [f"{PACKAGE}:{pyspark.__version__}"])
    given = {
        "AFTERIMAGE_TEST_SCHEMA": SCHEMA,
        "AFTERIMAGE_WAREHOUSE": str(warehouse),
        "DBT_PROFILES_DIR": str(tmp_path),
        "DBT_TARGET": "iceberg",
    }
    remote = free_address()
    environment = without_jars_of_tests(
        **given, SPARK_REMOTE=remote, JAVA_HOME=str(tmp_path), PATH="/none"
    )

    def run(program: str, *arguments: str) -> str:
        done = subprocess.run(
            [str(Path(sys.executable).with_name(program)), *arguments],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
        return done.stdout + done.stderr

    with afterimage_server("iceberg", project, remote, given):
        yield run


def send_to(spark: SparkSession, broker: Broker, messages: Sequence[Any]) -> None:
    rows = [(TOPIC, json.dumps(message), 0) for message in messages]
    sent = spark.createDataFrame(rows, "topic string, value string, partition int")
    send(sent.coalesce(1), broker.address)


def test_messages_are_landed_and_built_over_connect(
    spark: SparkSession, broker: Broker, client: Client
) -> None:
    landing = ["land", "kafka", SOURCE, "--brokers", broker.address, "--topic", TOPIC]
    send_to(spark, broker, FIRST)
    assert "2 of 2 messages landed" in client("afterimage", *landing)
    client("dbt", "build")
    send_to(spark, broker, SECOND)
    assert "2 of 2 messages landed" in client("afterimage", *landing)
    assert f"Nothing new for {SOURCE}.messages" in client("afterimage", *landing)
    client("dbt", "build")
    landed = spark.sql(f"select offset from {SOURCE}.messages order by offset").collect()
    assert [row["offset"] for row in landed] == [0, 1, 2, 3]
    history = spark.sql(
        "select id, name, opened_by, closed_by from "
        f"{SCHEMA}.people_history order by id, valid_from_seq"
    )
    assert [tuple(row) for row in history.collect()] == [
        (1, "Ann", "I", "U"),
        (1, "Anna", "U", None),
        (2, "Bob", "I", "D"),
    ]
