"""Which row leaves at a key change (R7): a transaction may permute keys."""

from __future__ import annotations

from pyspark.sql import DataFrame

from dbt_afterimage.history.names import KIND, MOVE_GROUP, own
from dbt_afterimage.history.sql import UPSERTS, by_key, columns
from dbt_afterimage.history.table import HistoryTable

DEPARTURE = own("departure")
"""Of a key-change-out: struct<change_seq, row_started_seq, is_displaced> of the row that leaves."""

MOVE_GROUP_OF_EVENT = (
    "coalesce(concat('id ', transaction_id), concat('at ', cast(changed_at as string)))"
)
"""The transaction of a key change; without its id, the changes of one time."""


def resolve_departures(
    events: DataFrame, table: HistoryTable, *, fills_along_key_changes: bool
) -> DataFrame:
    """Adds DEPARTURE, the row that leaves at a key-change-out, by a fold over the key's events.

    Invariant: rows displaced by one transaction leave in the order in which they were displaced; a
    key waits for displaced rows of one transaction only, that of the newest key-change-in.
    """
    key_events = own("key_events")
    needed = f"{KIND} = 'X'"
    if not fills_along_key_changes:
        partition = ", ".join(columns(table.key))
        needed += f" and count_if({KIND} = 'K') over (partition by {partition}) > 0"
    departures = (
        f"aggregate({key_events}, {_START}, (state, event) -> {_STEP}, state -> state.left)"
    )
    return (
        events.selectExpr("*", f"{MOVE_GROUP_OF_EVENT} as {MOVE_GROUP}")
        .selectExpr(
            "*",
            f"case when {needed} then collect_list(struct("
            f"change_seq, {KIND} as kind, {MOVE_GROUP} as move_group)) over ({by_key(table.key)}"
            f" rows between unbounded preceding and unbounded following) end as {key_events}",
        )
        .selectExpr(
            "*",
            f"try_element_at(filter({departures},"
            f" departure -> departure.change_seq = change_seq), 1) as {DEPARTURE}",
        )
        .drop(key_events, MOVE_GROUP)
    )


def without_displaced_departures(resolved: DataFrame) -> DataFrame:
    """The events without departures of displaced rows: the key belongs to the row that came in."""
    return resolved.where(f"not coalesce({DEPARTURE}.is_displaced, false)").drop(DEPARTURE)


_IS_DISPLACED = (
    "event.kind = 'X' and size(state.displaced) > 0 and state.move_group <=> event.move_group"
)
_START = """named_struct(
    'started', cast(null as string),
    'move_group', cast(null as string),
    'displaced', cast(array() as array<string>),
    'left', cast(array() as
        array<struct<change_seq: string, row_started_seq: string, is_displaced: boolean>>)
)"""
"""started: where the row on the key began, NULL when there is none; displaced: where the rows began
that the newest key-changes-in have displaced."""
_STEP = f"""named_struct(
    'started', case
        when event.kind = 'K' then event.change_seq
        when event.kind in {UPSERTS} then coalesce(state.started, event.change_seq)
        when {_IS_DISPLACED} then state.started
    end,
    'move_group', if(event.kind = 'K', event.move_group, state.move_group),
    'displaced', case
        when event.kind = 'K' then concat(
            if(state.move_group <=> event.move_group, state.displaced, array()),
            if(state.started is null, array(), array(state.started)))
        when {_IS_DISPLACED} then slice(state.displaced, 2, size(state.displaced))
        else state.displaced
    end,
    'left', if(event.kind = 'X', concat(state.left, array(named_struct(
        'change_seq', event.change_seq,
        'row_started_seq', if({_IS_DISPLACED}, state.displaced[0], state.started),
        'is_displaced', {_IS_DISPLACED}))), state.left)
)"""
