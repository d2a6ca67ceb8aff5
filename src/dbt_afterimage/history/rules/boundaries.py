"""Truncates and full loads as boundary events of the keys that they end (R6, R8)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from dbt_afterimage.history.names import (
    ANCHOR_VERSION,
    BISECTION_STEPS,
    BOUNDARY_EVENTS,
    KEY_CHANGE_OUT,
    KIND,
    LOADS,
    MISSING_FROM_LOAD,
    RANK,
    REPLAY_FROM,
    ROW,
    TRUNCATES,
    own,
)
from dbt_afterimage.history.sql import UPSERTS, bisection_steps, by_key, is_upsert, leading
from dbt_afterimage.history.table import HistoryTable
from dbt_afterimage.log_rows.conditions import knows
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.spark.literals import text

_ROW_NUMBER = own("row_number")
_IN_ORDER = (
    "(one, other) -> case"
    " when (one.change_seq, one.change_oper) < (other.change_seq, other.change_oper) then -1"
    " when (one.change_seq, one.change_oper) > (other.change_seq, other.change_oper) then 1"
    " else 0 end"
)
"""Sorts boundary events; a map among their fields has no order of its own."""


def boundary_events(changes: DataFrame, truncate_scopes: Sequence[str]) -> DataFrame:
    """One row: BOUNDARY_EVENTS, LOADS and TRUNCATES, in order of change_seq; BISECTION_STEPS."""
    fields = "change_seq, change_oper, changed_at, transaction_id"
    order = ""
    unscoped = "change_oper = 'T'"
    if truncate_scopes:
        fields, order = f"{fields}, truncate_scope", f", {_IN_ORDER}"
        unscoped += " and truncate_scope is null"
    loads = "collect_list(case when change_oper = 'L' then struct(change_seq, changed_at) end)"
    return (
        changes.where("change_oper = 'T' or load_rows is not null")
        .selectExpr(
            f"coalesce(array_sort(collect_list(struct({fields})){order}), array())"
            f" as {BOUNDARY_EVENTS}",
            f"coalesce(array_sort({loads}), array()) as {LOADS}",
            f"array_sort(collect_list(case when {unscoped} then change_seq end)) as {TRUNCATES}",
        )
        .selectExpr("*", f"{bisection_steps(BOUNDARY_EVENTS)} as {BISECTION_STEPS}")
    )


def boundaries_between(passed: str, reached: str) -> str:
    """The boundary events after the first `passed` ones, up to `reached`, both as SQL."""
    return f"slice({BOUNDARY_EVENTS}, {passed} + 1, greatest({reached} - {passed}, 0))"


def boundaries_up_to(change_seq: str) -> str:
    """How many boundary events are at a change_seq or before."""
    return leading(BOUNDARY_EVENTS, lambda boundary: f"{boundary}.change_seq <= {change_seq}")


def end_by_boundary_events(
    events: DataFrame,
    boundaries: DataFrame,
    table: HistoryTable,
    truncate_scopes: Sequence[str],
    *,
    has_key_changes: bool,
    replays: bool,
) -> DataFrame:
    """Adds an event T or R after each event whose version a truncate or a load ends.

    Invariant: between an event and the next one of its key at most one boundary event is added, the
    first that reaches the row. A key-change-out may be that of a displaced row (R7); its key is
    still open then, so a boundary event follows it as well.
    """
    next_seq, next_kind, boundary = own("next_seq"), own("next_kind"), own("boundary")
    passed, is_boundary = own("passed"), own("is_boundary")
    scopes = {name: own(f"scope_{number}") for number, name in enumerate(truncate_scopes)}
    rows = _with_row_number(events, table) if scopes else events
    neighbours = rows.selectExpr(
        "*",
        f"lead(change_seq) over ({by_key(table.key)}) as {next_seq}",
        f"lead({KIND}) over ({by_key(table.key)}) as {next_kind}",
        *(
            # the value that a scope is compared with, as text; NULL when it was never known
            f"last_value({_known_scope(table, name, has_key_changes=has_key_changes)}, true)"
            f" over ({by_key(table.key, _ROW_NUMBER)}"
            f" rows between unbounded preceding and current row) as {column}"
            for name, column in scopes.items()
        ),
    )
    passed_events = boundaries_up_to("change_seq")
    if replays:
        # an anchor version has outlived the boundary events before it
        outlived = leading(
            BOUNDARY_EVENTS, lambda boundary: f"{boundary}.change_seq < {REPLAY_FROM}"
        )
        passed_events = f"if({KIND} = '{ANCHOR_VERSION}', {outlived}, {passed_events})"
    up_to_next = boundaries_up_to(next_seq)
    if scopes:
        reached = f"if({next_seq} is null, size({BOUNDARY_EVENTS}), {up_to_next})"
    else:
        # nearly always the next one ends the row, and the others do not matter
        is_first = f"{next_seq} is null or get({BOUNDARY_EVENTS}, {passed}).change_seq < {next_seq}"
        reached = f"if({is_first}, {passed} + 1, {up_to_next})"
    conditions = [
        # a load that has the row does not end it
        f"not (boundary.change_seq <=> {next_seq} and boundary.change_oper = 'L'"
        f" and {next_kind} = 'L')",
        *(
            f"({_is_not_scoped(name)} or ({column} is not null"
            f" and {column}.value <=> boundary.truncate_scope[{text(name)}]))"
            for name, column in scopes.items()
        ),
    ]
    ended = UPSERTS[:-1] + f", '{KEY_CHANGE_OUT}')" if has_key_changes else UPSERTS
    candidates = boundaries_between(passed, reached)
    first = f"get(filter({candidates}, boundary -> {' and '.join(conditions)}), 0)"
    added = {
        KIND: f"if({boundary}.change_oper = 'T', 'T', '{MISSING_FROM_LOAD}')",
        RANK: "0",
        "change_seq": f"{boundary}.change_seq",
        "changed_at": f"{boundary}.changed_at",
        "transaction_id": f"{boundary}.transaction_id",
    }
    return (
        neighbours.crossJoin(boundaries)
        .selectExpr("*", f"{passed_events} as {passed}")
        .selectExpr("*", f"case when {KIND} in {ended} then {first} end as {boundary}")
        .selectExpr(
            "*",
            f"explode(case when {boundary} is null then array(false) else array(false, true) end)"
            f" as {is_boundary}",
        )
        .selectExpr(
            *(
                f"case when {is_boundary} then {added[name]} else {name} end as {name}"
                if name in added
                else quoted(name)
                for name in events.columns
            )
        )
    )


def _with_row_number(events: DataFrame, table: HistoryTable) -> DataFrame:
    """Adds _ROW_NUMBER: an insert, a key change, or what follows a close, begins another row."""
    previous = own("previous_kind")
    return events.selectExpr(
        "*", f"lag({KIND}) over ({by_key(table.key)}) as {previous}"
    ).selectExpr(
        "*",
        f"count_if({KIND} in ('I', 'K') or not coalesce({is_upsert(previous)}, false))"
        f" over ({by_key(table.key)} rows between unbounded preceding and current row)"
        f" as {_ROW_NUMBER}",
    )


def _known_scope(table: HistoryTable, name: str, *, has_key_changes: bool) -> str:
    """A column's value as an event knows it: struct<value>, or NULL; see R9 for a key change."""
    known = (
        f"when {knows('known_columns', name)}"
        f" then struct(cast({value_of(table, name)} as string) as value)"
    )
    if has_key_changes and name not in table.key:
        known += (
            f" when {KIND} = 'K' and {knows('before_known_columns', name)}"
            f" then struct(cast(before.{quoted(name)} as string) as value)"
        )
    return f"case when not {is_upsert()} then null {known} end"


def may_reach(table: HistoryTable, name: str) -> str:
    """True where the scope of `boundary` reaches the row, as far as one column shows."""
    return (
        f"({_is_not_scoped(name)} or ({knows('known_columns', name)} and"
        f" cast({value_of(table, name)} as string) <=> boundary.truncate_scope[{text(name)}]))"
    )


def value_of(table: HistoryTable, name: str) -> str:
    """A data column of a key event, as SQL."""
    return quoted(name) if name in table.key else f"{ROW}.{quoted(name)}"


def _is_not_scoped(name: str) -> str:
    return f"not coalesce(map_contains_key(boundary.truncate_scope, {text(name)}), false)"
