"""The demo, built in two batches, against the oracle and against the simulated database's truth."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from afterimage_demo.generate import DemoData, generate
from dbt_afterimage.cli.commands.query import connect, run
from dbt_afterimage.cli.support.warehouse import IcebergWarehouse, SparkWarehouse
from tests.functional.comparing import assert_same, last_commits
from tests.functional.dbt_project import DbtProject
from tests.functional.pages import ROOT, python_of
from tests.log_reader import plain, read_log, read_rows
from tests.oracle.current import build_current, build_current_with_deleted
from tests.oracle.field_changes import build_field_changes
from tests.oracle.history import LogRow, TableOptions, build_history
from tests.spark_settings import dbt_compiles_plans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.both_formats, pytest.mark.delta_nightly]

TABLES = ("customers", "products", "orders", "order_items", "shipments")
KEYS = {
    "customers": ["customer_id"],
    "products": ["product_id"],
    "orders": ["order_id"],
    "order_items": ["order_id", "line_number"],
    "shipments": ["shipment_id"],
}
BASES: dict[str, Literal["frozen", "live"]] = {
    "customers": "live",
    "products": "frozen",
    "orders": "frozen",
    "order_items": "live",
    "shipments": "frozen",
}
IGNORED = {"customers": {"replicated_at"}}
KEEPS_DELETED = {"products"}


@pytest.fixture(scope="module")
def data() -> DemoData:
    return generate()


@pytest.fixture(scope="module")
def demo(build_demo: Callable[[str], DbtProject], spark: SparkSession) -> DbtProject:
    """The demo after two batches, with a build after each."""
    with dbt_compiles_plans(spark):
        return build_demo("qlik")


def options(table: str, columns: list[str]) -> TableOptions:
    tracked = [
        name for name in columns if name not in IGNORED.get(table, ()) and name not in KEYS[table]
    ]
    return TableOptions(
        KEYS[table],
        columns,
        tracked,
        before_images=table != "products",
        base_kind=BASES[table],
    )


def log_of(spark: SparkSession, demo: DbtProject, table: str) -> tuple[list[LogRow], TableOptions]:
    log = read_log(spark.table(f"{demo.schema}.{table}_changes"))
    columns = list(next(row.data for row in log if row.data is not None))
    return log, options(table, columns)


@pytest.mark.parametrize("table", TABLES)
def test_history_equals_the_oracles(spark: SparkSession, demo: DbtProject, table: str) -> None:
    log, how = log_of(spark, demo, table)
    actual = read_rows(spark.table(f"{demo.schema}.{table}_history"))
    expected = [version.as_row() for version in build_history(log, how)]
    assert_same(actual, expected, f"{table}_history_id")


@pytest.mark.parametrize("table", TABLES)
def test_current_equals_the_oracles(spark: SparkSession, demo: DbtProject, table: str) -> None:
    log, how = log_of(spark, demo, table)
    actual = read_rows(spark.table(f"{demo.schema}.{table}_current"))
    history = build_history(log, how)
    if table in KEEPS_DELETED:
        expected = build_current_with_deleted(history, KEYS[table])
        assert any(row["is_deleted"] for row in expected)
    else:
        expected = build_current(history)
    assert_same(actual, expected)


@pytest.mark.parametrize("table", TABLES)
def test_field_changes_equal_the_oracles(spark: SparkSession, demo: DbtProject, table: str) -> None:
    log, how = log_of(spark, demo, table)
    actual = read_rows(spark.table(f"{demo.schema}.{table}_field_changes"))
    changes = build_field_changes(log, build_history(log, how), how)
    expected = [change.as_row(KEYS[table]) for change in changes]
    assert_same(actual, expected)


@pytest.mark.parametrize("table", TABLES)
def test_current_is_the_state_of_the_source(
    spark: SparkSession, demo: DbtProject, data: DemoData, table: str
) -> None:
    truth = data.truth[table][-1]
    unknown = {
        tuple(row[name] for name in KEYS[table]): set(row["unknown_columns"] or ())
        for row in read_rows(spark.table(f"{demo.schema}.{table}_history").filter("is_current"))
    }
    actual = {
        tuple(row[name] for name in KEYS[table]): row
        for row in read_rows(spark.table(f"{demo.schema}.{table}_current"))
        if not row.get("is_deleted")
    }
    assert actual.keys() == truth.keys()
    for key, row in truth.items():
        known = {name: plain(value) for name, value in row.items() if name not in unknown[key]}
        assert {name: actual[key][name] for name in known} == known


def cookbook() -> list[tuple[str, str, str]]:
    """Text, query and result of each question of docs/cookbook.md."""
    page = (ROOT / "docs/cookbook.md").read_text(encoding="utf-8")
    pattern = r"^## (.*?)^```sql\n(.*?)^```\n\n((?:\|[^\n]*\n)+)"
    questions = re.findall(pattern, page, re.DOTALL | re.MULTILINE)
    assert len(questions) == page.count("\n## ") == 20
    return questions


def as_markdown(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A result as docs/cookbook.md shows it."""

    def text(value: Any) -> str:
        if isinstance(value, datetime):
            return value.replace(tzinfo=None).isoformat(sep=" ")
        return "NULL" if value is None else str(value)

    lines = [" | ".join(names), *(" | ".join(map(text, row)) for row in rows)]
    lines = [f"| {line} |\n" for line in lines]
    return "".join([lines[0], f"|{'---|' * len(names)}\n", *lines[1:]])


def test_the_cookbook(
    spark: SparkSession, demo: DbtProject, warehouse: Path, table_format: str
) -> None:
    questions = cookbook()
    queries = "\n;;\n".join(query for _, query, _ in questions)
    compiled = demo("compile", "--inline", queries).results[0].node.compiled_code.split(";;")
    tables = IcebergWarehouse("lake", warehouse / "catalog.db", str(warehouse), SparkWarehouse())
    for (text, _, expected), sql in zip(questions, compiled, strict=True):
        found = spark.sql(sql).toArrow()
        rows = [list(row.values()) for row in found.to_pylist()]
        assert as_markdown(found.column_names, rows) == expected, f"{text}on Spark"
        if "Spark only" not in text and table_format == "iceberg":
            relation = run(connect(), tables, demo.schema, sql)
            result = as_markdown(relation.columns, relation.fetchall())
            assert result == expected, f"{text}on DuckDB"
        if "temporal_join" in text:
            for kind in ("view", "table"):
                name = f"{demo.schema}.cookbook_{kind}"
                spark.sql(f"create or replace {kind} {name} as\n{sql}")
                assert spark.table(name).count() == len(rows)
                spark.sql(f"drop {kind} {name}")


def test_every_malformed_record_is_rejected_with_its_reason(
    spark: SparkSession, demo: DbtProject, data: DemoData
) -> None:
    rejected = {
        (table, row["change_seq"], row["reject_reason"])
        for table in TABLES
        for row in read_rows(spark.table(f"{demo.schema}.{table}_changes_rejected"))
    }
    expected = {
        (reject.table, reject.change_seq, reject.reason) for reject in data.expected_rejects
    }
    assert rejected == expected


def commits(spark: SparkSession, demo: DbtProject, table_format: str) -> dict[str, Any]:
    """The last commit to every table that the demo's runs write."""
    marts = ("changes", "changes_rejected", "history", "current", "field_changes")
    names = [f"{table}_{mart}" for table in TABLES for mart in marts]
    names += ["change_activity", "afterimage_progress"]
    return last_commits(spark, [f"{demo.schema}.{name}" for name in names], table_format)


def test_a_build_without_new_data_commits_nothing(
    spark: SparkSession, demo: DbtProject, table_format: str
) -> None:
    before = commits(spark, demo, table_format)
    demo("run")
    assert commits(spark, demo, table_format) == before


@pytest.mark.nightly
def test_full_refresh_rebuilds_the_marts_and_leaves_the_log_alone(
    spark: SparkSession, demo: DbtProject, table_format: str
) -> None:
    def marts() -> dict[str, Any]:
        names = [
            f"{table}_{mart}"
            for table in TABLES
            for mart in ("history", "current", "field_changes")
        ]
        # demos that were built before share it; a full refresh counts the tables of this one only
        activity = spark.table(f"{demo.schema}.change_activity")
        return {
            **{name: read_rows(spark.table(f"{demo.schema}.{name}")) for name in names},
            "change_activity": read_rows(activity.filter(activity.table_name.isin(*TABLES))),
        }

    incremental = marts()
    logs = [f"{demo.schema}.{table}_changes" for table in TABLES]
    before = commits(spark, demo, table_format)
    demo("run", "--full-refresh")
    after = commits(spark, demo, table_format)
    rebuilt = marts()
    for name, rows in incremental.items():
        assert_same(rebuilt[name], rows)
    assert {name: after[name] for name in logs} == {name: before[name] for name in logs}
    history = f"{demo.schema}.orders_history"
    assert after[history] != before[history]


@pytest.mark.nightly
def test_rebuilt_changes_give_the_same_log_and_marts(
    spark: SparkSession, demo: DbtProject, table_format: str
) -> None:
    """The marts notice it. Rows of the load are left out: the base table has gained rows since."""

    def tables() -> dict[str, list[dict[str, Any]]]:
        names = ["changes_rejected", "history", "current", "field_changes"]
        rows = {name: spark.table(f"{demo.schema}.orders_{name}") for name in names}
        rows["changes"] = spark.table(f"{demo.schema}.orders_changes").filter("change_oper <> 'L'")
        # what is late, and by how much, is another matter after a rebuild
        counts = "activity_hour, inserts, updates, deletes, rejected, last_change_seq"
        activity = spark.table(f"{demo.schema}.change_activity").filter("table_name = 'orders'")
        rows["activity"] = activity.select(*counts.split(", "))
        return {name: read_rows(frame) for name, frame in rows.items()}

    before = tables()
    last = max(row["recorded_at"] for row in before["changes"])
    demo("run", "--select", "orders_changes+", rebuild_changes=True)
    after = tables()
    for name, rows in before.items():
        assert_same(after[name], rows)
    for name in ("changes", "history", "current", "field_changes"):
        assert min(row["recorded_at"] for row in after[name]) > last
    committed = commits(spark, demo, table_format)
    demo("run", "--select", "orders_changes+")
    assert commits(spark, demo, table_format) == committed


@pytest.mark.iceberg_only
def test_a_notebook_reads_the_marts_without_spark(
    spark: SparkSession, demo: DbtProject, warehouse: Path
) -> None:
    """The lines of docs/querying.md, cell by cell."""
    (read,) = python_of("docs/querying.md", "## Without Spark")
    count, _ = python_of("docs/querying.md", "## In a notebook")
    cells: dict[str, Any] = {}
    exec(read.replace("/path/to/warehouse", str(warehouse)), cells)
    assert cells["rows"].column_names == ["order_id", "status"]
    exec(count, cells)
    found = {tuple(row) for row in cells["by_status"].itertuples(index=False)}
    expected = spark.sql(f"select status, count(*) from {demo.schema}.orders_current group by 1")
    assert found == {tuple(row) for row in expected.collect()}
    assert len(found) > 1


@pytest.mark.parametrize(
    "model",
    [
        "stg_qlik__customers",
        "customers_changes",
        "customers_history",
        "customers_current",
        "customers_field_changes",
    ],
)
def test_descriptions_are_comments(spark: SparkSession, demo: DbtProject, model: str) -> None:
    described = spark.sql(f"describe table extended {demo.schema}.{model}").collect()
    end = next(number for number, row in enumerate(described) if row["col_name"][:1] in ("", "#"))
    without = [row["col_name"] for row in described[:end] if not row["comment"]]
    assert without == []
    # a Hive metastore holds no longer ones
    assert all(len(row["comment"]) <= 255 for row in described[:end]) or model[:4] != "stg_"
    about = {row["col_name"]: row["data_type"] for row in described[end:]}
    comment = about.get("Comment") or about["Table Properties"]
    assert "One row per" in comment
