"""A history that is built batch by batch with the functions that a run calls, without dbt.

The rows of the table are kept in Python: Spark's `createDataFrame` makes the history that the next
batch finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from dbt_afterimage.history.plan import Applied
from dbt_afterimage.history.run import HistoryRows, next_batch, whole_history
from dbt_afterimage.storage.local_relation import local_rows
from dbt_afterimage.storage.mart_batch import ACTION
from tests.log_lines import SCHEMA, change
from tests.log_reader import read_log, read_rows
from tests.oracle.history import TableOptions, build_history

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dbt_afterimage.history.table import HistoryTable

_FIRST_BATCH_AT = datetime(2026, 4, 1)


class BatchedHistory:
    """A history of people (log_lines.py), which grows by batches.

    Attributes:
        plans: of each batch the path and why, as in a run's log.
    """

    def __init__(self, spark: SparkSession, table: HistoryTable) -> None:
        self.plans: list[str] = []
        self._spark, self._table = spark, table
        self._changes: list[tuple[Any, ...]] = []
        self._stored: dict[str, dict[str, Any]] = {}
        self._schema = ""
        self._applied: Applied | None = None

    def apply(self, lines: str) -> None:
        """Append changes to the log, and apply them as the next run would."""
        self.plans.append("nothing new")
        recorded_at = _FIRST_BATCH_AT + timedelta(hours=len(self.plans))
        named = [change(line.strip()) for line in lines.strip().splitlines()]
        self._changes += [(*row, recorded_at) for row in named]
        made = self._next_rows()
        if made is None:
            return
        self.plans[-1] = f"{made.plan.path}: {made.plan.why}"
        self._write(made.rows)
        self._applied = made.applied
        for rows in made.checkpoints:
            rows.unpersist()

    def rows(self) -> list[dict[str, Any]]:
        """The stored versions, by key and position."""
        return sorted(self._stored.values(), key=lambda row: (row["id"], row["valid_from_seq"]))

    def expected(self) -> list[dict[str, Any]]:
        """The versions that the reference implementation makes of the whole log."""
        table = self._table
        options = TableOptions(table.key, table.columns, table.tracked, base_kind=table.base)
        return [version.as_row() for version in build_history(read_log(self._log()), options)]

    def _next_rows(self) -> HistoryRows | None:
        if self._applied is None:
            return whole_history(self._log(), self._table)
        stored = local_rows(self._spark, self._stored.values(), self._schema)
        return next_batch(
            self._spark, self._log(), stored, self._table, self._applied, force_full_replay=False
        )

    def _log(self) -> DataFrame:
        return local_rows(self._spark, self._changes, f"{SCHEMA}, recorded_at timestamp")

    def _write(self, written: DataFrame) -> None:
        if not self._schema:
            named = [f"`{field.name}` {field.dataType.simpleString()}" for field in written.schema]
            self._schema = ", ".join(named)
        for row in read_rows(written):
            action = row.pop(ACTION, "insert")
            version_id = row[self._table.version_id]
            assert (version_id in self._stored) == (action != "insert"), f"{action} of {row}"
            if action == "delete":
                del self._stored[version_id]
            else:
                self._stored[version_id] = row


def history_of_batches(
    spark: SparkSession, table: HistoryTable, batches: Sequence[str]
) -> BatchedHistory:
    """The history after all batches."""
    history = BatchedHistory(spark, table)
    for lines in batches:
        history.apply(lines)
    return history
