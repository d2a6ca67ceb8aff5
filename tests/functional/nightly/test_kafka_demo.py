"""The web shop, built from two deliveries of messages, against its database and the oracle."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from afterimage_demo.kafka.generate import ShopData, generate_shop
from afterimage_demo.kafka.messages import schema_id_of
from afterimage_demo.kafka.tables import TABLES, ShopTable
from tests.functional.comparing import assert_same, last_commits
from tests.functional.dbt_project import DbtProject
from tests.log_reader import plain, read_log, read_rows
from tests.oracle.current import build_current
from tests.oracle.field_changes import build_field_changes
from tests.oracle.history import LogRow, TableOptions, build_history

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def data() -> ShopData:
    return generate_shop()


@pytest.fixture(scope="module")
def demo(build_demo: Callable[[str], DbtProject]) -> DbtProject:
    """The demo after two deliveries, with a build after each."""
    return build_demo("kafka")


def log_of(spark: SparkSession, demo: DbtProject, name: str) -> tuple[list[LogRow], TableOptions]:
    table = TABLES[name]
    log = read_log(spark.table(f"{demo.schema}.{name}_changes"))
    # a column that the source gains is the last one of the log
    key, columns = [*table.key], [name for name in table.columns if name != table.added]
    columns += [table.added] if table.added else []
    tracked = [column for column in columns if column not in key]
    return log, TableOptions(key, columns, tracked, before_images=table.before_images)


@pytest.mark.parametrize("name", TABLES)
def test_marts_equal_the_oracles(spark: SparkSession, demo: DbtProject, name: str) -> None:
    log, options = log_of(spark, demo, name)
    history = build_history(log, options)
    expected = {
        "history": [version.as_row() for version in history],
        "current": build_current(history),
        "field_changes": [
            change.as_row([*TABLES[name].key])
            for change in build_field_changes(log, history, options)
        ],
    }
    for mart, rows in expected.items():
        found = read_rows(spark.table(f"{demo.schema}.{name}_{mart}"))
        assert_same(found, rows, f"{name}_history_id")


@pytest.mark.parametrize("name", TABLES)
def test_current_is_the_state_of_the_shop(
    spark: SparkSession, demo: DbtProject, data: ShopData, name: str
) -> None:
    table = TABLES[name]
    rows = read_rows(spark.table(f"{demo.schema}.{name}_current"))
    found = {tuple(row[k] for k in table.key): row for row in rows}
    assert found.keys() == data.truth[name].keys()
    told = keys_told_of(data, table)
    untold = 0
    for place, row in data.truth[name].items():
        expected = {column: plain(value) for column, value in row.items()}
        if table.added and place not in told:
            # what was replicated before the task took in the column says nothing of it
            expected[table.added] = None
            untold += 1
        assert {column: found[place][column] for column in expected} == expected
    assert (0 < untold < len(found)) if table.added else not untold


def keys_told_of(data: ShopData, table: ShopTable) -> set[tuple[Any, ...]]:
    """Keys of rows that a message with the added column is about."""
    schema_id = schema_id_of(table, 2).encode()
    return {
        tuple(json.loads(message.key).values())
        for delivery in data.deliveries
        for message in delivery
        if message.topic == table.topic and message.key and schema_id in (message.value or b"")
    }


def test_every_change_that_was_sent_is_in_the_log_once(
    spark: SparkSession, demo: DbtProject, data: ShopData
) -> None:
    letters = {"INSERT": "I", "UPDATE": "U", "DELETE": "D"}
    for name, table in TABLES.items():
        sent = {
            (letters[message.headers["operation"]], message.headers["changeSequence"])
            for delivery in data.deliveries
            for message in delivery
            if message.topic == table.topic and message.headers.get("operation") in letters
        }
        log = spark.table(f"{demo.schema}.{name}_changes").filter("change_oper <> 'L'")
        rows = log.select("change_oper", "change_seq").collect()
        assert Counter(map(tuple, rows)) == Counter(sent)


def test_malformed_messages_are_rejected_with_their_reason(
    spark: SparkSession, demo: DbtProject, data: ShopData
) -> None:
    found = Counter(
        (name, row["change_seq"], row["reject_reason"])
        for name in TABLES
        for row in spark.table(f"{demo.schema}.{name}_changes_rejected").collect()
    )
    assert found == data.rejected
    for log in ("shop", "checkout"):
        decoded = spark.table(f"{demo.schema}.stg_qlik_messages__{log}_log")
        assert decoded.filter("kind = 'rejected' and table_name is null").isEmpty()


def test_a_second_full_load_makes_up_for_lost_changes(
    spark: SparkSession, demo: DbtProject
) -> None:
    loads = spark.sql(
        f"select count(*) from {demo.schema}.articles_changes "
        "where change_oper = 'L' and load_rows is not null"
    )
    assert loads.collect()[0][0] == 2
    # what was lost in between: values, and rows that came
    marks = spark.sql(
        "select count_if(changed_columns is not null), count_if(changed_columns is null) "
        f"from {demo.schema}.articles_history where opened_by = 'L' and valid_from_seq > '2026'"
    ).collect()[0]
    assert marks[0] > 5 and marks[1] > 0


def test_a_new_column_is_announced_and_decoded(spark: SparkSession, demo: DbtProject) -> None:
    versions = spark.sql(
        "select table_version, count(*), count_if(column_name = 'discount_percent') "
        f"from {demo.schema}.qlik_message_schemas where table_name = 'cart_lines' "
        "group by table_version order by 1"
    ).collect()
    width = len(TABLES["cart_lines"].columns)
    assert [tuple(row) for row in versions] == [(1, width - 1, 0), (2, width, 1)]


def test_tombstones_and_updates_without_a_change(
    spark: SparkSession, demo: DbtProject, data: ShopData
) -> None:
    for name in ("shoppers", "carts"):
        topic = TABLES[name].topic
        sent = [m for delivery in data.deliveries for m in delivery if m.topic == topic]
        staged = spark.table(f"{demo.schema}.stg_qlik_messages__{name}").groupBy("change_oper")
        counts = {row["change_oper"]: row["count"] for row in staged.count().collect()}
        assert counts["N"] == sum(message.value is None for message in sent) > 10
    same = spark.sql(
        f"select count(*) from {demo.schema}.shoppers_changes "
        "where change_oper = 'U' and size(declared_changed_columns) = 0"
    )
    assert same.collect()[0][0] > 0


def test_a_build_without_new_messages_commits_nothing(
    spark: SparkSession, demo: DbtProject, table_format: str
) -> None:
    marts = ("changes", "changes_rejected", "history", "current", "field_changes")
    names = [f"{table}_{mart}" for table in TABLES for mart in marts]
    names += [f"stg_qlik_messages__{log}_log" for log in ("shop", "checkout")]
    names += ["change_activity", "afterimage_progress"]
    tables = [f"{demo.schema}.{name}" for name in names]
    # merges the files of afterimage_progress, where several demos have left many
    demo("run")
    before = last_commits(spark, tables, table_format)
    demo("run")
    assert last_commits(spark, tables, table_format) == before
