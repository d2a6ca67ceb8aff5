"""Whether a table has the rows that it should have, and what a run has changed or left behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = Iterable[dict[str, Any]]

# Both change with every commit: the newest metadata file, the version.
_LAST_COMMIT = {
    "iceberg": "select max_by(file, timestamp) from {}.metadata_log_entries",
    "delta": "describe history {} limit 1",
}


def assert_same(found: Rows, expected: Rows, *left_out: str) -> None:
    """Equal as bags of rows; the message shows the first rows that only one side has.

    Args:
        found: rows of a mart.
        expected: at least one.
        left_out: columns that are not compared, beside `recorded_at`, the marts' own bookkeeping.
    """
    left, right = bag(found, *left_out), bag(expected, *left_out)
    surplus, missing = left - right, right - left
    shown = "\n".join(
        [f"only in the table: {row}" for row in sorted(surplus)[:3]]
        + [f"only expected:     {row}" for row in sorted(missing)[:3]]
    )
    assert right
    assert not surplus and not missing, (
        f"{surplus.total()} surplus, {missing.total()} missing\n{shown}"
    )


def bag(rows: Rows, *left_out: str) -> Counter[str]:
    """Rows as texts that can be compared, each with the number of its copies."""
    without = {"recorded_at", *left_out}
    return Counter(
        repr({name: row[name] for name in sorted(row) if name not in without}) for row in rows
    )


def last_commits(spark: SparkSession, tables: Iterable[str], table_format: str) -> dict[str, Any]:
    """What every commit to a table changes, by table."""
    query = _LAST_COMMIT[table_format]
    return {table: spark.sql(query.format(table)).collect()[0][0] for table in tables}


def checkpointed_rows(spark: SparkSession) -> set[str]:
    """What Spark holds in memory: the ids of sets of rows, and the names of temporary views.

    Those of earlier tests may go at any time, with Java's garbage: a run left nothing behind if it
    added nothing.
    """
    catalog = spark._jsparkSession.sessionState().catalog()
    views = catalog.listLocalTempViews("afterimage_*").mkString("\n").splitlines()
    rows = spark.sparkContext._jsc.getPersistentRDDs().keySet()
    return {*views, *(str(row_id) for row_id in rows)}
