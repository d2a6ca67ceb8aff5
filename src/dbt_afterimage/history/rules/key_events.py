"""Changes and anchor versions as events of keys (R1, R7).

Shape of a key event: the key columns, ROW, KIND, RANK, change_seq, changed_at, transaction_id,
metadata, known_columns, before, before_known_columns; ANCHOR with prior versions; REPLAY_FROM with
replayed keys.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt_afterimage.history.names import (
    ANCHOR,
    ANCHOR_VERSION,
    KEY_CHANGE_OUT,
    KIND,
    RANK,
    REPLAY_FROM,
    ROW,
)
from dbt_afterimage.history.sql import RANK_OF_KIND, columns, equal
from dbt_afterimage.history.table import HistoryTable
from dbt_afterimage.log_rows.conditions import is_key_change
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.spark.literals import texts

_ANCHOR_TYPE = "struct<opened_by: string, changed_columns: array<string>>"


def by_affected_key(
    changes: DataFrame, table: HistoryTable, *, has_key_changes: bool = True
) -> DataFrame:
    """Changes of rows, each once per key that it concerns, with that key and KIND."""
    kinds = "array(change_oper)"
    if has_key_changes:
        both = f"array('{KEY_CHANGE_OUT}', 'K')"
        kinds = f"case when {is_key_change(table.key)} then {both} else {kinds} end"
    key_events = changes.selectExpr("*", f"explode({kinds}) as {KIND}")
    if not has_key_changes:
        return key_events
    return key_events.withColumns(
        {
            name: F.expr(
                f"case when {KIND} = '{KEY_CHANGE_OUT}' then before.{column} else {column} end"
            )
            for name, column in zip(table.key, columns(table.key), strict=True)
        }
    )


def key_events(changes: DataFrame, table: HistoryTable, *, has_key_changes: bool) -> DataFrame:
    """One event per change; two per key change: X at the old key, K at the new one.

    Invariant: every change of a row occurs exactly once at each key it concerns. Truncates and load
    markers concern all keys, so they are not key events yet.
    """
    rows = changes.where("change_oper <> 'T' and load_rows is null")
    return by_affected_key(rows, table, has_key_changes=has_key_changes).selectExpr(
        *columns(table.key),
        f"{_packed(table)} as {ROW}",
        KIND,
        f"{RANK_OF_KIND} as {RANK}",
        "change_seq",
        # a load without a time begins at the beginning of time (R8)
        f"case when {KIND} = 'L' then coalesce(changed_at, {table.beginning})"
        " else changed_at end as changed_at",
        "transaction_id",
        *columns(table.metadata),
        "known_columns",
        "before",
        "before_known_columns",
    )


def with_anchor_versions(
    events: DataFrame, prior: DataFrame, table: HistoryTable, *, replays: bool
) -> DataFrame:
    """The events, and the version that was open before them on each key as its first event, S.

    Invariant: at most one anchor version per key, before all its other events.
    """
    replay_from = [REPLAY_FROM] if replays else []
    anchors = prior.selectExpr(
        *columns(table.key),
        f"{_packed(table)} as {ROW}",
        f"'{ANCHOR_VERSION}' as {KIND}",
        f"0 as {RANK}",
        "valid_from_seq as change_seq",
        "valid_from as changed_at",
        "transaction_id",
        *columns(table.metadata),
        "case when unknown_columns is not null then"
        f" array_except({texts(table.columns)}, unknown_columns) end as known_columns",
        "null as before",
        "null as before_known_columns",
        f"struct(opened_by as opened_by, changed_columns as changed_columns) as {ANCHOR}",
        *replay_from,
    )
    return events.selectExpr(
        "*",
        f"cast(null as {_ANCHOR_TYPE}) as {ANCHOR}",
        *(f"cast(null as string) as {name}" for name in replay_from),
    ).union(anchors)


def of_affected_keys(
    events: DataFrame, keys: DataFrame, table: HistoryTable, *, replays: bool, has_few_keys: bool
) -> DataFrame:
    """The events of some keys; of replayed keys those from REPLAY_FROM on, and the anchor version.

    Args:
        keys: the key columns, and REPLAY_FROM when `replays`.
        replays: whether keys are replayed from a change_seq of their own.
        has_few_keys: whether all keys fit in memory, so that the events are not shuffled.
    """
    same = equal(table.key, "events", "affected_keys", "=")
    if replays:
        replay_from = f"affected_keys.{REPLAY_FROM}"
        same += (
            f" and (events.{KIND} = '{ANCHOR_VERSION}' or {replay_from} is null"
            f" or events.change_seq >= {replay_from})"
        )
    affected = (F.broadcast(keys) if has_few_keys else keys).alias("affected_keys")
    return events.alias("events").join(affected, F.expr(same), "left_semi")


def _packed(table: HistoryTable) -> str:
    """The values as one struct: the size of each later transform does not follow their number."""
    if not table.values:
        return "struct(true as none)"
    return f"struct({', '.join(f'{quoted(name)} as {quoted(name)}' for name in table.values)})"
