"""The plant, built in two batches, against the simulated database and against the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from afterimage_demo.generate import DemoData, generate
from afterimage_demo.openedge import DELIVERIES, OPERATORS, TABLES, PlantTable
from tests.functional.comparing import assert_same
from tests.functional.dbt_project import DbtProject
from tests.log_reader import plain, read_log, read_rows
from tests.oracle.history import TableOptions, build_history

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CAPTURED = {"operators": ("operator-id", OPERATORS), "deliveries": ("delivery_id", DELIVERIES)}


@pytest.fixture(scope="module")
def data() -> DemoData:
    return generate()


@pytest.fixture(scope="module")
def demo(build_demo: Callable[[str], DbtProject]) -> DbtProject:
    """The demo after two batches, with a build after each."""
    return build_demo("openedge")


def image(table: PlantTable, row: Any) -> dict[str, Any]:
    """A row of the simulated database as the marts have it: arrays decoded, times in UTC."""
    values = {name: plain(value) for name, value in table.image(row).items()}
    for name in table.array:
        elements = str(values[name]).split(";")
        values[name] = [None if element == "?" else element for element in elements]
    if table.has_partitions:
        values["partition_id"] = row[table.key] % 3
    return values


@pytest.mark.parametrize("name", CAPTURED)
def test_current_is_the_state_of_the_source(
    spark: SparkSession, demo: DbtProject, data: DemoData, name: str
) -> None:
    key, table = CAPTURED[name]
    truth = [image(table, row) for row in data.truth[table.source][-1].values()]
    found = read_rows(
        spark.table(f"{demo.schema}.{name}_current").select(*[f"`{c}`" for c in truth[0]])
    )
    by_key = {row[key]: row for row in found}
    assert by_key == {row[key]: row for row in truth}
    assert len(found) == len(truth)


@pytest.mark.parametrize("name", CAPTURED)
def test_history_equals_the_oracles(spark: SparkSession, demo: DbtProject, name: str) -> None:
    key, table = CAPTURED[name]
    log = read_log(spark.table(f"{demo.schema}.{name}_changes"))
    columns = list(next(row.data for row in log if row.data is not None))
    tracked = [column for column in columns if column != key]
    options = TableOptions(
        [key], columns, tracked, before_images=table.level == 3, base_kind="frozen"
    )
    expected = [version.as_row() for version in build_history(log, options)]
    found = read_rows(spark.table(f"{demo.schema}.{name}_history"))
    assert_same(found, expected, f"{name}_history_id")
    closed_by = {row["closed_by"] for row in found}
    assert {"operators": {"U", "D", "K"}, "deliveries": {"U", "T"}}[name] <= closed_by


def test_every_change_of_the_source_is_in_the_log_once(
    spark: SparkSession, demo: DbtProject, data: DemoData
) -> None:
    for name, (_, table) in CAPTURED.items():
        events = Counter(event.oper for event in data.events if event.table == table.source)
        # a truncate of the table is one operation on each of its three partitions
        events["T"] *= 3
        log = spark.table(f"{demo.schema}.{name}_changes").filter("change_oper <> 'L'")
        counts = {
            row["change_oper"]: row["count"] for row in log.groupBy("change_oper").count().collect()
        }
        assert counts == +events
        without = log.filter("change_oper = 'U' and before is null").count()
        assert without == (0 if table.level == 3 else counts["U"])


def test_the_log_says_who_made_each_change(spark: SparkSession, demo: DbtProject) -> None:
    for name in CAPTURED:
        rows = read_rows(
            spark.sql(
                "select log.source_user, activity.user_name "
                f"from {demo.schema}.{name}_changes as log "
                f"inner join {demo.schema}.openedge_activity as activity "
                f"on activity.change_seq = log.change_seq and table_name = 'cdc_{name}'"
            )
        )
        assert len(rows) > 20
        assert [row for row in rows if row["source_user"] != row["user_name"]] == []


def test_what_is_rejected(spark: SparkSession, demo: DbtProject) -> None:
    for name in CAPTURED:
        rejected = spark.table(f"{demo.schema}.{name}_changes_rejected")
        assert sorted(row["reject_reason"] for row in rejected.collect()) == [
            "incomplete_record",
            "unknown_operation",
        ]


def test_activity_of_all_levels(spark: SparkSession, demo: DbtProject, data: DemoData) -> None:
    rows = read_rows(spark.table(f"{demo.schema}.openedge_activity"))
    found = Counter((row["table_name"], row["operation_name"]) for row in rows)
    names = {"I": "Create", "U": "After Update", "D": "Delete"}
    sources = {table.source: f"cdc_{name}" for name, table in TABLES.items()}
    events = [event for event in data.events if event.table in sources and event.oper != "T"]
    expected = Counter((sources[event.table], names[event.oper]) for event in events)
    # the tracking row whose change is gone
    expected.update({(f"cdc_{name}", "Create"): 1 for name in CAPTURED})
    assert found == expected

    # level 1: no values, but who, when, and which fields
    table = TABLES["work_orders"]
    updates = [event for event in events if event.table == "orders" and event.oper == "U"]
    wanted = []
    for event in updates:
        assert event.before is not None and event.after is not None
        before, after = table.image(event.before), table.image(event.after)
        fields = [name for name in after if after[name] != before[name]]
        wanted.append((str(event.transaction_number), plain(event.committed_at), fields))
    seen = [
        (row["transaction_id"], row["changed_at"], row["changed_columns"])
        for row in rows
        if row["table_name"] == "cdc_work_orders" and row["operation_name"] == "After Update"
    ]
    assert sorted(seen) == sorted(wanted)
    assert {row["user_name"] for row in rows} == {"ahansen", "bkaya", "clemaire", "dnovak"}
    assert not spark.catalog.tableExists(f"{demo.schema}.work_orders_history")


def test_schema_events_are_listed_and_touch_no_history(
    spark: SparkSession, demo: DbtProject
) -> None:
    rows = spark.table(f"{demo.schema}.openedge_schema_events").collect()
    assert sorted((row["table_name"], row["operation_name"]) for row in rows) == [
        ("cdc_deliveries", "Field Add"),
        ("cdc_operators", "Field Add"),
    ]


def track(
    spark: SparkSession,
    sequence: int,
    operation: int,
    policy: str,
    partition: int = 0,
    at: str = "2026-03-04 12:00:00",
) -> None:
    """Add a row to the tracking table of deliveries, newer than all others."""
    spark.sql(
        "insert into demo_raw.cdc_change_tracking values "
        f"('{policy}', 1, timestamp '{at}', {sequence}, {operation}, null, 1, 102, "
        f"{partition}, 0, null, 'joe')"
    )


@pytest.mark.nightly
def test_a_partition_ends_with_its_rows_and_no_others(
    spark: SparkSession, demo: DbtProject
) -> None:
    history = f"{demo.schema}.deliveries_history"
    statement = f"select delivery_id, partition_id from {history} where is_current"
    before = {row[0]: row[1] for row in spark.sql(statement).collect()}
    assert set(before.values()) == {0, 1, 2}
    track(spark, 100_000, 6, "policy of table 102", partition=1)
    demo("run", "--select", "stg_openedge__deliveries+1", "deliveries_history")
    after = {row[0]: row[1] for row in spark.sql(statement).collect()}
    assert after == {key: partition for key, partition in before.items() if partition != 1}
    ended = spark.sql(
        f"select delivery_id, valid_to, closed_by from {history} "
        "where valid_to_seq = lpad('100000', 19, '0')"
    ).collect()
    gone = before.keys() - after.keys()
    assert sorted(map(tuple, ended)) == [
        (key, datetime(2026, 3, 4, 12), "T") for key in sorted(gone)
    ]


@pytest.mark.parametrize("policy", ["policy of table 102", "a new policy"])
def test_a_sequence_that_restarts_stops_the_run(
    spark: SparkSession, demo: DbtProject, policy: str
) -> None:
    """Also where the extract holds no old changes any more: the log knows how far it was."""
    before = spark.table(f"{demo.schema}.deliveries_changes").count()
    track(spark, 5, 1, policy, at="2026-03-05 12:00:00")
    try:
        message = demo.error_of("run", "--select", "stg_openedge__deliveries+1")
    finally:
        spark.sql("delete from demo_raw.cdc_change_tracking where `_Change-Sequence` = 5")
    for part in ("demo_openedge.cdc_deliveries", "has restarted", policy, " 5", "Fix: "):
        assert part in message
    assert spark.table(f"{demo.schema}.deliveries_changes").count() == before
