"""The table format's own time travel as an oracle: history as of a version equals the table then.

A table is changed by MERGE, UPDATE, DELETE and INSERT. Its change feed (Delta) or changelog
(Iceberg) goes through stage_change_feed, pairing and the SQL of versions, without dbt.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from dbt_afterimage.change_log.contract import LOG_COLUMNS
from dbt_afterimage.change_log.deciding.pairing import ACCEPTED, pair
from tests.change_feed_staging import settings_of, staging_sql
from tests.history_versions import versions_of
from tests.log_reader import read_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.both_formats

TABLE = "time_travel.items"
DATA = ["name", "amount"]
# Iceberg's procedure create_changelog_view, by settings alone
CHANGELOG = {
    "sequence": {"_change_ordinal": "number", "if(_change_type = 'DELETE', 0, 1)": "number"},
    "operation": "_change_type",
    "operations": {"INSERT": "I", "UPDATE_BEFORE": "B", "UPDATE_AFTER": "U", "DELETE": "D"},
    "before": "rows",
    "changed_at": "timestamp_seconds(_change_ordinal)",
    "ignore_columns": ["_change_ordinal", "_commit_snapshot_id"],
}


def statements() -> list[str]:
    """Changes of the table in a fixed random order, and one of a key."""
    chance = Random(20260302)
    found = [f"insert into {TABLE} values (1, 'a', 1), (2, 'b', null), (3, null, 3), (4, 'd', 4)"]
    for number in range(5, 66):
        some = f"id % 3 = {chance.randrange(3)}"
        found.append(
            chance.choice(
                [
                    f"update {TABLE} set amount = coalesce(amount, 0) + {number} where {some}",
                    f"delete from {TABLE} where id % 5 = {chance.randrange(5)}",
                    f"insert into {TABLE} values ({number}, 'new', {number})",
                    f"merge into {TABLE} as items using ("
                    f"select {number} as id, 'merged' as name union all select id, name || '!' "
                    f"from {TABLE} where {some}) as changed on items.id = changed.id "
                    f"when matched then update set name = changed.name "
                    f"when not matched then insert (id, name, amount) values (id, name, 0)",
                ]
            )
        )
    found.append(f"insert into {TABLE} values (500, 'moves', 50)")
    found.append(f"update {TABLE} set id = 1000 where id = 500")
    found.append(f"insert overwrite {TABLE} select id, name, amount + 1 from {TABLE}")
    return found


def versions_of_table(spark: SparkSession, table_format: str) -> dict[int, int | str]:
    """Place in the order of changes -> version in SQL."""
    if table_format == "delta":
        history = spark.sql(f"describe history {TABLE}").collect()
        return {row["version"]: row["version"] for row in history}
    snapshots = spark.sql(f"select snapshot_id from {TABLE}.snapshots order by committed_at")
    return {place: row[0] for place, row in enumerate(snapshots.collect())}


def change_feed(spark: SparkSession, table_format: str) -> tuple[str, dict[str, Any]]:
    """A temporary view of all changes, and the settings that describe it."""
    if table_format == "delta":
        rows = spark.sql(f"select * from table_changes('{TABLE}', 0)")
        settings = settings_of("delta_change_feed", {"key": ["id"]})
    else:
        spark.sql(
            f"call lake.system.create_changelog_view(table => '{TABLE}', "
            "changelog_view => 'items_changelog', identifier_columns => array('id'))"
        )
        rows = spark.table("items_changelog")
        settings = settings_of(None, {"key": ["id"], **CHANGELOG})
    rows.createOrReplaceTempView("items_feed")
    return "items_feed", settings


@pytest.fixture(scope="module")
def changed_table(spark: SparkSession, table_format: str) -> None:
    spark.sql("create schema if not exists time_travel")
    spark.sql(f"drop table if exists {TABLE}")
    properties = " tblproperties (delta.enableChangeDataFeed = true)" * (table_format == "delta")
    columns = "id int, name string, amount int"
    spark.sql(f"create table {TABLE} ({columns}) using {table_format}{properties}")
    for statement in statements():
        spark.sql(statement)


@pytest.mark.usefixtures("changed_table")
def test_history_as_of_each_version_is_the_table_then(
    spark: SparkSession, table_format: str
) -> None:
    relation, settings = change_feed(spark, table_format)
    columns = dict(spark.table(relation).dtypes)
    staged = spark.sql(staging_sql(settings, columns, relation))
    paired = pair(staged, None, ["id"])
    outcomes = {row["outcome"] for row in paired.select("outcome").distinct().collect()}
    assert outcomes == {ACCEPTED, "merged"}
    log = paired.filter(F.col("outcome") == ACCEPTED).withColumns(
        {
            "recorded_at": F.col("changed_at"),
            "load_rows": F.lit(None).cast("bigint"),
            "change_date": F.to_date("changed_at"),
        }
    )
    changes = log.select(*LOG_COLUMNS, "id", *DATA, "before")
    history = read_rows(versions_of(changes, ["id", *DATA], ["id"], has_key_changes=True))

    versions = versions_of_table(spark, table_format)
    # a statement that changes nothing may commit nothing
    assert len(versions) >= 50
    for place, version in versions.items():
        table = spark.sql(f"select id, name, amount from {TABLE} version as of {version}")
        then = f"{place:016X}G"  # after all changes of the version
        as_of = [
            (row["id"], row["name"], row["amount"])
            for row in history
            if row["valid_from_seq"] < then
            and (row["valid_to_seq"] is None or row["valid_to_seq"] > then)
        ]
        assert sorted(as_of) == sorted(map(tuple, table.collect())), f"version {version}"
