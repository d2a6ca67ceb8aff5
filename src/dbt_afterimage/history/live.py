"""A history as a run would leave it now: the stored versions with what the run would write."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.history.affected_keys import FEW_KEYS
from dbt_afterimage.history.plan import Applied
from dbt_afterimage.history.run import next_batch
from dbt_afterimage.history.table import ADDED_COLUMNS, HistoryError, HistoryTable
from dbt_afterimage.internal_columns import UNDECIDED
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.storage.checkpoint import checkpoint, unpersist
from dbt_afterimage.storage.mart_batch import ACTION
from dbt_afterimage.storage.schema_evolution import column_types

LIVE_STATE = "live_state"
"""`merged`: the table has the version; `unmerged`: a run would write it; or why its key is open."""


def live_versions(
    session: SparkSession,
    log: DataFrame,
    history: DataFrame,
    table: HistoryTable,
    applied: Applied,
    undecided: DataFrame,
    *,
    reads_arrays_apart: bool = False,
) -> tuple[DataFrame, list[DataFrame]]:
    """The versions after a run, with LIVE_STATE, and rows to free once they are read.

    Args:
        log: the change log, with the changes that a run would append.
        history: the stored versions.
        applied: what they have applied of the log.
        undecided: keys with changes that a run would not append, with UNDECIDED.
        reads_arrays_apart: see `open_versions_of`.

    Raises:
        HistoryError: a data column has the name of LIVE_STATE.
    """
    if LIVE_STATE in map(str.lower, table.columns):
        raise HistoryError(
            f"`live`: {table.name} has a column `{LIVE_STATE}`, a name that `live` adds. Fix: "
            "rename the column in a view over the raw table, and declare that view as the source."
        )
    stored = _with_new_columns(history, log, table)
    found = next_batch(
        session,
        log,
        stored,
        table,
        applied,
        force_full_replay=False,
        reads_arrays_apart=reads_arrays_apart,
    )
    checkpoints: list[DataFrame] = []
    rows = stored.withColumn(LIVE_STATE, F.lit("merged"))
    if found is not None:
        changed = _checkpoint(found.rows, checkpoints)
        for each in found.checkpoints:
            unpersist(each)
        replaced = changed.where(f"{ACTION} <> 'insert'").select(quoted(table.version_id))
        new = changed.where(f"{ACTION} <> 'delete'").drop(ACTION)
        rows = rows.join(_sent_if_few(replaced), table.version_id, "left_anti").unionByName(
            new.withColumn(LIVE_STATE, F.lit("unmerged"))
        )
    reasons = undecided.groupBy(*map(quoted, table.key)).agg(F.max(UNDECIDED).alias(UNDECIDED))
    reasons = _sent_if_few(_checkpoint(reasons, checkpoints))
    live = rows.join(reasons, list(table.key), "left").selectExpr(
        *map(quoted, table.history_columns), f"coalesce({UNDECIDED}, {LIVE_STATE}) as {LIVE_STATE}"
    )
    return live, checkpoints


def _with_new_columns(history: DataFrame, log: DataFrame, table: HistoryTable) -> DataFrame:
    """The history with the columns and types that a run would alter it to."""
    types = {**column_types(history.schema), **ADDED_COLUMNS}
    of_log = column_types(log.schema)
    types |= {name: of_log[name] for name in table.history_columns if name in of_log}
    stored = set(history.columns)
    return history.selectExpr(
        *(
            f"cast({quoted(name) if name in stored else 'null'} as {types[name]}) as {quoted(name)}"
            for name in table.history_columns
        )
    )


def _checkpoint(rows: DataFrame, checkpoints: list[DataFrame]) -> DataFrame:
    kept = checkpoint(rows)
    checkpoints.append(kept)
    return kept


def _sent_if_few(rows: DataFrame) -> DataFrame:
    return F.broadcast(rows) if rows.count() <= FEW_KEYS else rows
