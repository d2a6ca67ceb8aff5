"""A history that is built batch by batch with the functions that a run calls, without dbt.

Python keeps the rows of the table, and Spark gets them as the history that the next batch finds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from dbt_afterimage.history.live import LIVE_STATE, live_versions
from dbt_afterimage.history.plan import Applied
from dbt_afterimage.history.run import HistoryRows, next_batch, whole_history
from dbt_afterimage.internal_columns import UNDECIDED
from dbt_afterimage.storage.local_relation import local_rows
from dbt_afterimage.storage.mart_batch import ACTION
from tests.log_reader import read_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dbt_afterimage.history.table import HistoryTable


Versions: TypeAlias = dict[str, dict[str, Any]]
"""Rows of a history by their ids."""


class BatchedHistory:
    """A history that grows by batches.

    Args:
        spark: a session.
        table: its columns and settings.
        schema: names and types of the log's columns.

    Attributes:
        plans: of each batch the path and why, as in a run's log.
    """

    def __init__(self, spark: SparkSession, table: HistoryTable, schema: str) -> None:
        self.plans: list[str] = []
        self._spark, self._table, self._schema = spark, table, schema
        self._changes: list[tuple[Any, ...]] = []
        self._stored: Versions = {}
        self._stored_schema = ""
        self._applied: Applied | None = None

    @property
    def log(self) -> DataFrame:
        """All changes so far."""
        return local_rows(self._spark, self._changes, self._schema)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The stored versions."""
        return list(self._stored.values())

    def apply(self, changes: Iterable[tuple[Any, ...]]) -> None:
        """Append changes with a new `recorded_at`, and apply them as the next run would."""
        self._changes += changes
        found = self._next_rows()
        if found is None:
            self.plans.append("nothing new")
            return
        self.plans.append(f"{found.plan.path}: {found.plan.why}")
        self._write(found.rows)
        self._applied = found.applied
        for rows in found.checkpoints:
            rows.unpersist()

    def live(self, changes: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
        """The versions with changes that are not applied; before the first batch there are none."""
        if self._applied is None:
            return []
        log = local_rows(self._spark, [*self._changes, *changes], self._schema)
        stored = local_rows(self._spark, self._stored.values(), self._stored_schema)
        nothing = log.limit(0).selectExpr(*self._table.key, f"'' as {UNDECIDED}")
        rows, checkpoints = live_versions(
            self._spark, log, stored, self._table, self._applied, nothing
        )
        found = read_rows(rows.drop(LIVE_STATE))
        for each in checkpoints:
            each.unpersist()
        return found

    def _next_rows(self) -> HistoryRows | None:
        if self._applied is None:
            return whole_history(self.log, self._table)
        stored = local_rows(self._spark, self._stored.values(), self._stored_schema)
        return next_batch(
            self._spark, self.log, stored, self._table, self._applied, force_full_replay=False
        )

    def _write(self, written: DataFrame) -> None:
        if not self._stored_schema:
            fields = (f"`{field.name}` {field.dataType.simpleString()}" for field in written.schema)
            self._stored_schema = ", ".join(fields)
            written = written.selectExpr("*", f"'insert' as {ACTION}")
        self._stored = after_write(self._stored, written, self._table.version_id)


def after_write(stored: Versions, written: DataFrame, version_id: str) -> Versions:
    """The stored versions after a write; each row is of another version, and new ones are inserted.

    Args:
        stored: the versions before.
        written: rows with ACTION.
        version_id: the column that identifies a version.
    """
    rows = read_rows(written)
    assert len({row[version_id] for row in rows}) == len(rows)
    result = dict(stored)
    for row in rows:
        action, identity = row.pop(ACTION), row[version_id]
        assert (identity in stored) == (action != "insert"), f"{action} of {row}"
        if action == "delete":
            del result[identity]
        else:
            result[identity] = row
    return result
