"""What later runs add to `change_activity`: each batch is counted once, also by two runs at a time.

The statements are rendered without dbt. Both runs have planned theirs before the first one commits.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tests.macro_renderer import MacroRenderer
from tests.tiers import nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.both_formats

SCHEMA = "activity"
TABLE, LOG, REJECTED = (f"{SCHEMA}.{name}" for name in ("counts", "changes", "rejected"))


class Activity:
    """A log of people, its rejected records, and the table that counts them."""

    def __init__(self, spark: SparkSession, table_format: str) -> None:
        self._spark = spark
        columns = "change_seq string, change_oper string, changed_at timestamp"
        spark.sql(f"create schema if not exists {SCHEMA}")
        for table, of_table in (
            (LOG, f"{columns}, recorded_at timestamp"),
            (REJECTED, "recorded_at timestamp"),
        ):
            spark.sql(f"drop table if exists {table}")
            spark.sql(f"create table {table} ({of_table}) using {table_format}")
        self._render = MacroRenderer(
            run_query=self._run_query,
            config={"counts_all_change_logs": True},
            _all_change_logs=lambda: [self._log()],
            _rejected_relation=lambda log: REJECTED,
            _settings_of=lambda node: {"key": ["id"]},
            _is_key_change=lambda key: "false",
        )
        rows = self._render("_change_activity_rows", [self._log()])
        self.change("09:00:00")
        self.reject("09:00:00")
        spark.sql(f"drop table if exists {TABLE}")
        spark.sql(f"create table {TABLE} using {table_format} as {rows}")

    def change(self, time: str) -> None:
        """A batch of one insert."""
        at = f"timestamp '2026-03-02 {time}'"
        seq = f"20260302{time.replace(':', '')}"
        self._spark.sql(f"insert into {LOG} values ('{seq}', 'I', {at}, {at})")

    def reject(self, time: str) -> None:
        """A batch of one rejected record."""
        self._spark.sql(f"insert into {REJECTED} values (timestamp '2026-03-02 {time}')")

    def statement(self) -> str | None:
        """What a run would execute that begins now; None where nothing is to be counted."""
        batch = self._render("_change_activity_batch", TABLE)
        return None if batch is None else str(batch["statement"])

    def counts(self) -> tuple[int, int]:
        """Changes and rejected records in all."""
        self._spark.sql(f"refresh table {TABLE}")
        (row,) = self._spark.sql(f"select sum(changes), sum(rejected) from {TABLE}").collect()
        return row[0], row[1]

    @staticmethod
    def _log() -> dict[str, object]:
        nothing = dict.fromkeys(["recorded_at", "rejects_recorded_at", "change_seq"])
        return {"table": "people", "changes": LOG, "node": None, "counted": nothing}

    def _run_query(self, statement: str) -> SimpleNamespace:
        return SimpleNamespace(rows=self._spark.sql(statement).collect())


@pytest.mark.parametrize(
    ("changes", "rejects", "counts"),
    [
        ([], ["10:00:00"], (1, 2)),
        (["10:00:00"], ["10:00:00"], (2, 2)),
        *nightly((["10:00:00"], [], (2, 1)), ([], ["09:30:00"], (1, 2))),
    ],
)
def test_of_two_runs_at_one_time_one_counts(
    spark: SparkSession,
    table_format: str,
    changes: list[str],
    rejects: list[str],
    counts: tuple[int, int],
) -> None:
    activity = Activity(spark, table_format)
    for time in changes:
        activity.change(time)
    for time in rejects:
        activity.reject(time)
    statements = [activity.statement() for _ in range(2)]
    for statement in statements:
        assert statement is not None
        spark.sql(statement)
    assert activity.counts() == counts
    assert activity.statement() is None


def test_what_was_recorded_meanwhile_is_counted_by_the_next_run(
    spark: SparkSession, table_format: str
) -> None:
    activity = Activity(spark, table_format)
    activity.reject("10:00:00")
    first = activity.statement()
    activity.change("10:30:00")
    second = activity.statement()
    for statement in (first, second):
        assert statement is not None
        spark.sql(statement)
    third = activity.statement()
    if third is not None:
        spark.sql(third)
    assert activity.counts() == (2, 2)
    assert activity.statement() is None
