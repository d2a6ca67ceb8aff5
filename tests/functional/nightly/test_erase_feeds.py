"""`afterimage erase` of a feed with a key of two columns, loads, and no before images."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

from dbt_afterimage.cli import app
from tests.functional.dbt_project import DbtProject
from tests.functional.feed_project import write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.both_formats

RAW = "erased_feed_raw"
LANDED = (
    "value binary, headers array<struct<key: string, value: binary>>, topic string, "
    "landing_batch string"
)
COLUMNS = {"region": "string", "id": "int", "name": "string"}
SETTINGS = {"preset": "debezium", "key": ["region", "id"], "before_images": False}


def event(op: str, lsn: int, after: Any, before: Any = None, snapshot: str = "false") -> str:
    source = {"lsn": lsn, "ts_ms": 1772452800000 + lsn, "txId": lsn, "snapshot": snapshot}
    return json.dumps({"op": op, "before": before, "after": after, "source": source})


def person(region: str, number: int, name: str | None = None) -> dict[str, Any]:
    return {"region": region, "id": number, **({"name": name} if name else {})}


class Feed:
    """A project of one feed: lands its events, erases keys, reads its tables."""

    def __init__(self, dbt: DbtProject, spark: SparkSession) -> None:
        self.dbt, self.spark, self.batch = dbt, spark, 0

    def land(self, *events: str) -> None:
        self.batch += 1
        rows = [(each.encode(), None, "people", f"batch {self.batch}") for each in events]
        self.spark.createDataFrame(rows, LANDED).writeTo(f"{RAW}.people").append()

    def erase(self, *arguments: str) -> Result:
        with self.dbt.environment():
            return CliRunner().invoke(app, ["erase", "people", *arguments, "--yes"])

    def text(self, table: str) -> str:
        name = f"{self.dbt.schema}.people_{table}"
        self.spark.sql(f"refresh table {name}")
        return repr(self.spark.table(name).collect())

    def versions(self) -> list[tuple[Any, ...]]:
        found = self.spark.sql(
            f"select region, id, name, is_current from {self.dbt.schema}.people_history "
            "order by 1, 2, valid_from_seq"
        )
        return [tuple(row) for row in found.collect()]


@pytest.fixture
def feed(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> Feed:
    dbt = make_dbt_project(tmp_path, schema="erased_feed")
    columns = [{"name": name, "data_type": kind} for name, kind in COLUMNS.items()]
    write_project(tmp_path, RAW, {"people": (SETTINGS, columns)})
    spark.sql(f"create schema if not exists {RAW}")
    spark.sql(f"create table {RAW}.people ({LANDED}) using {table_format}")
    return Feed(dbt, spark)


def test_rows_of_a_feed_are_erased_and_do_not_come_back(feed: Feed) -> None:
    feed.land(
        event("r", 10, person("EU", 1, "Ann-load"), snapshot="first"),
        event("r", 10, person("US", 1, "Amy-load"), snapshot="true"),
        event("r", 10, person("EU", 2, "Bob-load"), snapshot="last"),
    )
    feed.dbt("build")
    feed.land(
        event("u", 20, person("EU", 1, "Ann-second")),
        event("z", 30, person("EU", 1, "Ann-rejected")),
        event("d", 40, None, person("EU", 1)),
    )
    feed.dbt("run")
    assert "Ann-" in feed.text("changes")
    assert "Ann-" in feed.text("changes_rejected")

    refused = feed.erase("--key", "1", "--rows")
    assert refused.exit_code == 1
    assert "Nothing was erased" in refused.output
    result = feed.erase("--key", "region=EU,id=1", "--rows")
    assert result.exit_code == 0, result.output
    tables = ("changes", "changes_rejected", "history")
    for table in tables:
        assert "Ann-" not in feed.text(table)
    kept = [("EU", 2, "Bob-load", True), ("US", 1, "Amy-load", True)]
    assert feed.versions() == kept

    feed.land(event("u", 50, person("EU", 2, "Bob-second")))
    feed.dbt("build", "--exclude", "test_name:no_unresolved_rejects")
    kept = [("EU", 2, "Bob-load", False), ("EU", 2, "Bob-second", True), kept[1]]
    for more in ({}, {"backfill_from": f"{1:032X}"}, {"rebuild_changes": True}):
        feed.dbt("run", "--full-refresh", **more)
        assert feed.versions() == kept
        for table in tables:
            assert "Ann-" not in feed.text(table)
