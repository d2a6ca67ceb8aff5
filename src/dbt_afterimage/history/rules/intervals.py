"""Versions and their intervals (R1 to R7, R10)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from dbt_afterimage.history.names import (
    ANCHOR,
    ANCHOR_VERSION,
    IS_PRIOR,
    IS_UPDATED_IN_PLACE,
    KEY_CHANGE_OUT,
    KIND,
    ROW,
    UNKNOWN,
    VERSION_ID,
    own,
)
from dbt_afterimage.history.sql import by_key, columns, is_upsert
from dbt_afterimage.history.table import HistoryTable
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.spark.literals import text

_FIRST_KIND = own("first_kind")
_WAS_OPEN = own("was_open")
_PREVIOUS = own("previous_row")
_PREVIOUS_UNKNOWN = own("previous_unknown_columns")
_OPENS = own("opens_version")
_CLOSES = own("closes_version")
_LATEST = own("latest")
_BOUNDARY_AT = own("boundary_at")
_CLOSING_KIND = own("closing_kind")


def last_upsert_of_change_seq(events: DataFrame, table: HistoryTable) -> DataFrame:
    """Of several events of a key at one change_seq, drops all upserts but the last (R1).

    Invariant: no version is empty. The first of them is the event that opened the version.
    """
    window = by_key(table.key)
    next_seq = own("next_seq")
    previous = f"lag({KIND}) over ({window})"
    return (
        events.selectExpr(
            "*",
            f"lead(change_seq) over ({window}) as {next_seq}",
            f"case when lag(change_seq) over ({window}) = change_seq and {is_upsert(previous)}"
            f" then {previous} else {KIND} end as {_FIRST_KIND}",
        )
        .where(f"not ({is_upsert()}) or {next_seq} is null or {next_seq} <> change_seq")
        .drop(next_seq)
    )


def opening_and_closing_events(
    events: DataFrame, table: HistoryTable, forward_filled: Sequence[str]
) -> DataFrame:
    """Marks the events that open a version (R2, R3, R7), and those that only close one (R5, R6).

    Invariant: an upsert on an open version opens the next one exactly where a tracked column
    differs; what was unknown and becomes known does not differ (R9). A key-change-in always does.
    """
    window = by_key(table.key)
    differs = f"not ({_PREVIOUS} <=> {ROW})"
    if _in_place(table, forward_filled):
        differences = [_differs(name, name in forward_filled) for name in table.tracked]
        differs = " or ".join(["false", *differences])
    previous_unknown = [f"lag({UNKNOWN}) over ({window}) as {_PREVIOUS_UNKNOWN}"]
    return events.selectExpr(
        "*",
        f"{is_upsert(f'(lag({KIND}) over ({window}))')} as {_WAS_OPEN}",
        f"lag({ROW}) over ({window}) as {_PREVIOUS}",
        *(previous_unknown if forward_filled else []),
    ).selectExpr(
        "*",
        f"{is_upsert()} and (not coalesce({_WAS_OPEN}, false) or {KIND} = 'K' or {differs})"
        f" as {_OPENS}",
        f"not ({is_upsert()}) and coalesce({_WAS_OPEN}, false) as {_CLOSES}",
    )


def update_in_place(
    events: DataFrame, table: HistoryTable, forward_filled: Sequence[str]
) -> DataFrame:
    """Adds the last state of a version to its events: a struct of ROW, and UNKNOWN.

    Invariant: upserts without a tracked difference write into the open version; the last value
    counts (R4).
    """
    if not _in_place(table, forward_filled):
        return events
    number = own("version_number")
    return events.selectExpr(
        "*",
        f"sum(if({_OPENS}, 1, 0)) over ({by_key(table.key)}) as {number}",
    ).selectExpr(
        "*",
        f"last_value(case when {is_upsert()} then {_state(forward_filled)} end, true)"
        f" over ({by_key(table.key, number)}"
        f" rows between unbounded preceding and unbounded following) as {_LATEST}",
    )


def intervals(events: DataFrame, table: HistoryTable) -> DataFrame:
    """Only events that open or close a version, with the interval that begins there (R10).

    Invariant: along a key times never run back, even when clocks did; change_seq grows.
    """
    window = by_key(table.key)
    return (
        events.where(f"{_OPENS} or {_CLOSES}")
        .selectExpr(
            "*",
            f"coalesce(max(changed_at) over ({window}"
            f" rows between unbounded preceding and current row), {table.beginning})"
            f" as {_BOUNDARY_AT}",
        )
        .selectExpr(
            "*",
            f"lead({_BOUNDARY_AT}) over ({window}) as valid_to",
            f"lead(change_seq) over ({window}) as valid_to_seq",
            f"lead({KIND}) over ({window}) as {_CLOSING_KIND}",
            f"lead(transaction_id) over ({window}) as closed_by_transaction_id",
        )
    )


def as_versions(
    opened: DataFrame, table: HistoryTable, forward_filled: Sequence[str], *, has_prior: bool
) -> DataFrame:
    """A version, VERSION_ID and IS_PRIOR; with prior versions also IS_UPDATED_IN_PLACE."""
    in_place = _in_place(table, forward_filled)
    state = _state(forward_filled)
    updated = f"not ({_LATEST} <=> {state})" if in_place else "false"
    opened_by = f"coalesce({ANCHOR}.opened_by, {_FIRST_KIND})" if has_prior else _FIRST_KIND
    anchor = f"when {KIND} = '{ANCHOR_VERSION}' then {ANCHOR}.changed_columns" if has_prior else ""
    changed = ", ".join(
        f"case when not ({_PREVIOUS}.{quoted(name)} <=> {ROW}.{quoted(name)}) then {text(name)} end"
        for name in table.tracked
    )
    # an empty array() is one of nulls to Spark, which no table can store
    changed = f"array_compact(array({changed}))" if changed else "cast(array() as array<string>)"
    unknown = f"{_LATEST}.unknown_columns" if forward_filled else "cast(null as array<string>)"
    return opened.where(_OPENS).selectExpr(
        f"{version_id(table)} as {VERSION_ID}",
        *columns(table.key),
        f"{_BOUNDARY_AT} as valid_from",
        "valid_to",
        "change_seq as valid_from_seq",
        "valid_to_seq",
        "valid_to_seq is null as is_current",
        f"{opened_by} as opened_by",
        f"case when {_CLOSING_KIND} in ('I', 'L', 'U') then 'U'"
        f" when {_CLOSING_KIND} in ('K', '{KEY_CHANGE_OUT}') then 'K'"
        f" else {_CLOSING_KIND} end as closed_by",
        "transaction_id",
        "closed_by_transaction_id",
        *columns(table.metadata),
        f"case {anchor} when {_WAS_OPEN} then {changed} end as changed_columns",
        f"{unknown} as unknown_columns",
        *(
            f"{f'{_LATEST}.row' if name in in_place else ROW}.{quoted(name)} as {quoted(name)}"
            for name in table.values
        ),
        f"{KIND} = '{ANCHOR_VERSION}' as {IS_PRIOR}",
        *([f"{updated} as {IS_UPDATED_IN_PLACE}"] if has_prior else []),
    )


def version_id(table: HistoryTable) -> str:
    """The surrogate key of a version: lengths before values, so that no two keys run together."""
    parts = [
        f"length(cast({name} as string)), ':', cast({name} as string)"
        for name in columns(table.key)
    ]
    return f"md5(concat({', '.join(parts)}, ':', change_seq))"


def _in_place(table: HistoryTable, forward_filled: Sequence[str]) -> set[str]:
    """Columns whose value may change within a version (R4, R9)."""
    return set(table.values).difference(set(table.tracked).difference(forward_filled))


def _state(forward_filled: Sequence[str]) -> str:
    unknown = f", {UNKNOWN} as unknown_columns" if forward_filled else ""
    return f"struct({ROW} as row{unknown})"


def _differs(name: str, may_be_unknown: bool) -> str:
    differs = f"not ({_PREVIOUS}.{quoted(name)} <=> {ROW}.{quoted(name)})"
    if may_be_unknown:
        differs += f" and not coalesce(array_contains({_PREVIOUS_UNKNOWN}, {text(name)}), false)"
    return f"({differs})"
