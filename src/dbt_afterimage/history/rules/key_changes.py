"""Which row leaves at a key change (R7): a transaction may permute keys."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from dbt_afterimage.history.names import KEY_CHANGE_OUT, KIND, MOVE_GROUP, ROW, own
from dbt_afterimage.history.sql import UPSERTS, by_key
from dbt_afterimage.history.table import HistoryTable
from dbt_afterimage.log_rows.conditions import knows
from dbt_afterimage.spark.identifiers import quoted

DEPARTURE = own("departure")
"""Of a key-change-out: struct<row_started_seq, is_displaced> of the row that leaves."""

MOVE_GROUP_OF_EVENT = (
    "coalesce(concat('id ', transaction_id), concat('at ', cast(changed_at as string)))"
)
"""The transaction of a key change; without its id, the changes of one time."""

_IS_MOVED = own("is_moved")
_STARTS_OR_ENDS = own("starts_or_ends")
_PREVIOUS = own("previous_event")
_IS_OTHER = own("is_other_row")
_EARLIER = own("earlier_events")


def resolve_departures(
    events: DataFrame,
    table: HistoryTable,
    *,
    fills_along_key_changes: bool,
    forward_filled: Sequence[str],
) -> DataFrame:
    """Adds DEPARTURE, the row that leaves at a key-change-out, by a fold over the key's events.

    Invariant: rows displaced by one transaction leave in the order in which they were displaced; a
    key waits for displaced rows of one transaction only, that of the newest key-change-in. A row
    that no change has named yet is displaced, too, if its before image shows that it is another
    row than the one that came.
    """
    in_order = by_key(table.key)
    of_key = f"{in_order} rows between unbounded preceding and unbounded following"
    counts = [f"count_if({KIND} = '{KEY_CHANGE_OUT}') over ({of_key}) > 0"]
    if not fills_along_key_changes:
        counts.append(f"count_if({KIND} = 'K') over ({of_key}) > 0")
    # An upsert of an open row starts none. Without these, a row of many updates costs no more.
    starts_or_ends = (
        f"({KIND} not in {UPSERTS} or {KIND} = 'K'"
        f" or not coalesce(lag({KIND}) over ({in_order}) in {UPSERTS}, false))"
    )
    return (
        events.selectExpr(
            "*",
            f"lag(struct({ROW} as row, known_columns)) over ({in_order}) as {_PREVIOUS}",
            f"{MOVE_GROUP_OF_EVENT} as {MOVE_GROUP}",
            f"{' and '.join(counts)} as {_IS_MOVED}",
            f"{starts_or_ends} as {_STARTS_OR_ENDS}",
        )
        .selectExpr("*", f"{_is_other_row(table, forward_filled)} as {_IS_OTHER}")
        .drop(_PREVIOUS)
        .selectExpr(
            "*",
            f"collect_list(case when {_IS_MOVED} and {_STARTS_OR_ENDS} then struct("
            f"change_seq, {KIND} as kind, {MOVE_GROUP} as move_group, {_IS_OTHER} as is_other) end)"
            f" over ({in_order} rows between unbounded preceding and 1 preceding) as {_EARLIER}",
        )
        .selectExpr(
            "*",
            f"case when {KIND} = '{KEY_CHANGE_OUT}' and {_IS_MOVED}"
            f" then aggregate({_EARLIER}, {_START}, (state, event) -> {_STEP}, state -> {_LEAVES})"
            f" end as {DEPARTURE}",
        )
        .drop(_EARLIER, _IS_MOVED, _STARTS_OR_ENDS, _IS_OTHER, MOVE_GROUP)
    )


def without_displaced_departures(resolved: DataFrame) -> DataFrame:
    """The events without departures of displaced rows: the key belongs to the row that came in."""
    return resolved.where(f"not coalesce({DEPARTURE}.is_displaced, false)").drop(DEPARTURE)


def _is_other_row(table: HistoryTable, forward_filled: Sequence[str]) -> str:
    """True where the row of a key-change-out is not the one that the event before it left.

    Untracked columns are not compared: the tool may fill them differently in each record.
    """

    def differs(name: str) -> str:
        differs = f"not ({_PREVIOUS}.row.{quoted(name)} <=> before.{quoted(name)})"
        if name in forward_filled:
            differs += f" and {knows(f'{_PREVIOUS}.known_columns', name)}"
            differs += f" and {knows('before_known_columns', name)}"
        return differs

    compared = ", ".join(["false", *map(differs, table.tracked)])
    return f"case when {KIND} = '{KEY_CHANGE_OUT}' then array_contains(array({compared}), true) end"


def _is_displaced(kind: str, move_group: str, is_other: str) -> str:
    """True where a key-change-out moves a row away that a key-change-in has displaced."""
    has_left = f"size(state.displaced) > 0 or state.is_unnamed and coalesce({is_other}, false)"
    return f"({kind} = '{KEY_CHANGE_OUT}' and state.move_group <=> {move_group} and ({has_left}))"


_OF_EVENT = _is_displaced("event.kind", "event.move_group", "event.is_other")
_OF_ROW = _is_displaced(KIND, MOVE_GROUP, _IS_OTHER)
_START = """named_struct(
    'started', cast(null as string),
    'is_unnamed', false,
    'move_group', cast(null as string),
    'displaced', cast(array() as array<string>)
)"""
"""started: where the row on the key began, NULL when there is none; is_unnamed: it came to a key
without a known row; displaced: where the rows began that the newest key-changes-in have
displaced."""
_STEP = f"""named_struct(
    'started', case
        when event.kind = 'K' then event.change_seq
        when event.kind in {UPSERTS} then coalesce(state.started, event.change_seq)
        when {_OF_EVENT} then state.started
    end,
    'is_unnamed', case
        when event.kind = 'K' then state.started is null
        else event.kind in {UPSERTS} and state.is_unnamed
    end,
    'move_group', if(event.kind = 'K', event.move_group, state.move_group),
    'displaced', case
        when event.kind = 'K' then concat(
            if(state.move_group <=> event.move_group, state.displaced, array()),
            if(state.started is null, array(), array(state.started)))
        when {_OF_EVENT}
            then slice(state.displaced, 2, size(state.displaced))
        else state.displaced
    end
)"""
_LEAVES = f"""named_struct(
    'row_started_seq', if({_OF_ROW}, get(state.displaced, 0), state.started),
    'is_displaced', {_OF_ROW}
)"""
