"""Reconstructs the load image from a base table that was read some time after its load (R8).

What a key held at the load follows from its first change after the load, before the next load or
truncate:

insert          nothing, the row came later
key-change-in   frozen base: the base row. Live base: nothing; or, where the same transaction then
                moves another row away from the key, as when two rows swap keys, that row
update, key-change-out, delete with a before image
                frozen base: the base row. Live base: the before image, and the base row where the
                before image does not know a column; also for a key that the base has lost since
update without a before image
                frozen base: the base row. Live base: the key alone
delete without a before image
                the base row. Live base that has lost the key since: the key alone
others          the base row
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from dbt_afterimage.history.names import (
    ANCHOR_VERSION,
    KEY_CHANGE_OUT,
    KIND,
    LOADS,
    MOVE_GROUP,
    RANK,
    ROW,
    TRUNCATES,
    own,
)
from dbt_afterimage.history.rules.boundaries import (
    boundaries_between,
    boundaries_up_to,
    may_reach,
)
from dbt_afterimage.history.rules.key_changes import MOVE_GROUP_OF_EVENT
from dbt_afterimage.history.sql import by_key, by_key_backwards, columns, leading
from dbt_afterimage.history.table import HistoryTable
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.spark.literals import text, texts

LOAD_EPOCH = own("load_epoch")
DISPLACED = own("displaced")
"""Of a key-change-out of a row that its transaction did not bring to the key: struct<move_group,
before, before_known_columns>."""

_FIRST_CHANGE = own("first_change")
_LOST_ROW = own("lost_row")
_LOAD = own("load")
_NEXT_KIND = own("next_kind")
_NEXT_BEFORE = own("next_before")
_NEXT_KNOWN = own("next_before_known_columns")
_NEXT_GROUP = own("next_move_group")
_NEXT_DISPLACED = own("next_displaced")

_ALL_ROWS = "rows between unbounded preceding and unbounded following"
_PRECEDING_ROWS = "rows between unbounded preceding and 1 preceding"


def reconstruct_load_image(
    events: DataFrame,
    boundaries: DataFrame,
    table: HistoryTable,
    truncate_scopes: Sequence[str],
    forward_filled: Sequence[str],
    *,
    has_key_changes: bool,
) -> DataFrame:
    """Replaces each load's rows by what its keys held at the load.

    Args:
        truncate_scopes: columns that some truncate names in its scope.
        has_key_changes: whether key changes are among the events.
    """
    names = events.columns
    has_displaced = table.base == "live" and has_key_changes
    if has_displaced:
        events = displaced_rows(events, boundaries, table, forward_filled)
    first = first_changes(events, boundaries, table, truncate_scopes, has_displaced=has_displaced)
    if table.base == "frozen":
        return first.where(f"coalesce({_FIRST_CHANGE} <> 'I', true)").select(*names)
    return live_load_image(first, table, forward_filled, names, has_displaced=has_displaced)


def displaced_rows(
    events: DataFrame, boundaries: DataFrame, table: HistoryTable, forward_filled: Sequence[str]
) -> DataFrame:
    """Adds MOVE_GROUP and DISPLACED, for a live base.

    A row that leaves a key differs from those that its transaction brought there, or the key held a
    row before the transaction: then it is a displaced row, and the key held it at the load.
    """
    key = table.key
    in_base, number, left, same, net = (
        own("is_in_base"),
        own("number_in_transaction"),
        own("left_the_key"),
        own("same_as_left"),
        own("net"),
    )
    is_other, has_other, held, held_later = (
        own("is_other_row"),
        own("has_other_row"),
        own("held_a_row"),
        own("held_a_row_later"),
    )
    epoch = f"partition by {', '.join([*columns(key), LOAD_EPOCH])}"
    transaction = f"{epoch}, {MOVE_GROUP}"
    order = f"order by change_seq, {RANK}"
    same_row = " and ".join(_same_value(name, name in forward_filled) for name in table.values)
    return (
        events.crossJoin(boundaries)
        # a load, or a truncate, concerns every key: what follows proves nothing about earlier loads
        .selectExpr(
            "*",
            f"{MOVE_GROUP_OF_EVENT} as {MOVE_GROUP}",
            f"{_loads_up_to('change_seq')} + {_truncates_up_to('change_seq')} as {LOAD_EPOCH}",
        )
        .drop(*boundaries.columns)
        .selectExpr(
            "*",
            f"count_if({KIND} = 'L') over ({epoch}) > 0 as {in_base}",
            f"row_number() over ({transaction}, {KIND} = 'L' {order}) as {number}",
            f"collect_list(case when {KIND} = '{KEY_CHANGE_OUT}' then struct(change_seq, before,"
            f" before_known_columns) end) over ({transaction} {order} {_ALL_ROWS}) as {left}",
            f"count_if({KIND} in ('K', 'I')) over ({transaction})"
            f" - count_if({KIND} in ('{KEY_CHANGE_OUT}', 'D')) over ({transaction}) as {net}",
        )
        # each brought row names the departures that it agrees with: one transaction may update a
        # key many times, but few rows leave it
        .selectExpr(
            "*",
            f"case when {KIND} in ('K', 'I', 'U') then transform("
            f"filter({left}, gone -> {same_row or 'true'}), gone -> gone.change_seq) end as {same}",
        )
        .selectExpr(
            "*",
            f"{KIND} = '{KEY_CHANGE_OUT}' and not exists("
            f"collect_set(if(size({same}) > 0, {same}, null)) over ({transaction} {order}"
            f" {_PRECEDING_ROWS}), seqs -> array_contains(seqs, change_seq)) as {is_other}",
        )
        .selectExpr("*", f"bool_or({is_other}) over ({transaction}) as {has_other}")
        # on a transaction's first event of a key: whether the key held a row before the
        # transaction; NULL where the transaction does not prove it
        .selectExpr(
            "*",
            f"case when {number} > 1 then null"
            f" when {KIND} in ('U', '{KEY_CHANGE_OUT}', 'D') then true"
            f" when {KIND} = 'I' then false"
            f" when {KIND} = 'K' and {has_other} then true"
            f" when {KIND} = 'K' and {net} <> 0 then {net} < 0 end as {held}",
        )
        .selectExpr(
            "*",
            f"last_value({held}, true) over ({by_key_backwards(key, LOAD_EPOCH)} {_PRECEDING_ROWS})"
            f" as {held_later}",
        )
        .selectExpr(
            "*",
            f"case when {KIND} = '{KEY_CHANGE_OUT}' and case when {has_other} then {is_other}"
            f" when {net} <> 0 then {net} < 0"
            f" else coalesce(last_value({held_later}) over ({transaction} {order} {_ALL_ROWS}),"
            f" {in_base}) end then struct({MOVE_GROUP} as move_group, before as before,"
            f" before_known_columns as before_known_columns) end as {DISPLACED}",
        )
        .drop(LOAD_EPOCH, in_base, number, left, same, net, is_other, has_other, held, held_later)
    )


def first_changes(
    events: DataFrame,
    boundaries: DataFrame,
    table: HistoryTable,
    truncate_scopes: Sequence[str],
    *,
    has_displaced: bool,
) -> DataFrame:
    """Adds to a load's row the kind of its key's first change; to a first change the row it proves.

    A truncate in between is the first change of every key. A truncate with a scope is that of the
    rows in its scope, unless the row's next change shows that it was still there.
    """
    is_live = table.base == "live"
    window = by_key(table.key)
    next_seq, previous_seq, previous_kind = (
        own("next_seq"),
        own("previous_seq"),
        own("previous_kind"),
    )
    next_load = own("next_load")
    live = [f"lead(before) over ({window}) as {_NEXT_BEFORE}"]
    live.append(f"lead(before_known_columns) over ({window}) as {_NEXT_KNOWN}")
    displaced = [f"lead({MOVE_GROUP}) over ({window}) as {_NEXT_GROUP}"] if has_displaced else []
    if has_displaced:
        displaced.append(
            f"last_value({DISPLACED}, true) over ({by_key_backwards(table.key)} {_PRECEDING_ROWS})"
            f" as {_NEXT_DISPLACED}"
        )
    neighbours = events.crossJoin(boundaries).selectExpr(
        "*",
        f"lag(change_seq) over ({window}) as {previous_seq}",
        f"lag({KIND}) over ({window}) as {previous_kind}",
        f"lead(change_seq) over ({window}) as {next_seq}",
        f"lead({KIND}) over ({window}) as {_NEXT_KIND}",
        *(live if is_live else []),
        *displaced,
        f"get({LOADS}, {_loads_up_to('change_seq')} - 1) as {_LOAD}",
        f"get({LOADS}, {_loads_up_to('change_seq')}) as {next_load}",
    )
    between = boundaries_between(boundaries_up_to("change_seq"), boundaries_up_to(next_seq))
    truncated = "boundary.change_oper = 'T'"
    if truncate_scopes:
        truncated += f" and (boundary.truncate_scope is null or {_NEXT_KIND} in ('I', 'K'))"
        for name in truncate_scopes:
            truncated += f" and {may_reach(table, name)}"
    kind = _NEXT_KIND
    if has_displaced:
        kind = (
            f"if({_NEXT_KIND} = 'K' and {_NEXT_DISPLACED}.move_group <=> {_NEXT_GROUP},"
            f" 'displaced', {_NEXT_KIND})"
        )
    first_change = (
        f"case when {KIND} = 'L' and {_NEXT_KIND} <> 'L'"
        f" and ({next_load} is null or {next_seq} < {next_load}.change_seq)"
        f" and not exists({between}, boundary -> {truncated}) then {kind} end"
    )
    if not is_live:
        return neighbours.selectExpr("*", f"{first_change} as {_FIRST_CHANGE}")
    lost_row = (
        f"case when {_LOAD} is null or {KIND} = 'L' or {previous_seq} >= {_LOAD}.change_seq"
        f" or {previous_kind} = '{ANCHOR_VERSION}' or {_truncates_up_to('change_seq')}"
        f" > {_truncates_up_to(_LOAD + '.change_seq')} then null"
        f" when {KIND} in ('U', '{KEY_CHANGE_OUT}', 'D') and before is not null then {_image('')}"
        f" when {KIND} in ('U', 'D') then struct(before as before,"
        f" {texts(table.key)} as before_known_columns)"
    )
    if has_displaced:
        lost_row += (
            f" when {KIND} = 'K' and {_NEXT_DISPLACED}.move_group <=> {MOVE_GROUP}"
            f" then {_image(_NEXT_DISPLACED + '.')}"
        )
    return neighbours.selectExpr(
        "*", f"{first_change} as {_FIRST_CHANGE}", f"{lost_row} end as {_LOST_ROW}"
    )


def live_load_image(
    first: DataFrame,
    table: HistoryTable,
    forward_filled: Sequence[str],
    names: Sequence[str],
    *,
    has_displaced: bool,
) -> DataFrame:
    """The load's rows as they were at the load, and those that the base has lost since.

    Args:
        names: the columns of a key event, in order.
        has_displaced: whether rows may have been displaced from their keys.
    """
    kind, is_lost, is_incomplete, image = (
        own("load_or_change"),
        own("is_lost"),
        own("is_incomplete"),
        own("image_at_load"),
    )
    at_load = (
        f"case when {_FIRST_CHANGE} in ('U', '{KEY_CHANGE_OUT}', 'D')"
        f" and {_NEXT_BEFORE} is not null then"
        f" struct({_NEXT_BEFORE} as before, {_NEXT_KNOWN} as before_known_columns)"
    )
    if has_displaced:
        at_load += f" when {_FIRST_CHANGE} = 'displaced' then {_image(_NEXT_DISPLACED + '.')}"

    def value(name: str) -> str:
        from_image = f"{image} is not null"
        if name in forward_filled:
            # what the before image does not know comes from the base row (decision 7)
            from_image += (
                f" and ({image}.before_known_columns is null"
                f" or array_contains({image}.before_known_columns, {text(name)}))"
            )
        column = quoted(name)
        return (
            f"case when {is_lost} then {_LOST_ROW}.before.{column}"
            f" when {from_image} then {image}.before.{column} else {ROW}.{column} end as {column}"
        )

    replaced = {
        KIND: kind,
        RANK: f"if({kind} = 'L', 1, {RANK})",
        "change_seq": f"if({is_lost}, {_LOAD}.change_seq, change_seq)",
        "changed_at": f"if({is_lost}, coalesce({_LOAD}.changed_at, {table.beginning}), changed_at)",
        "known_columns": f"case when {is_lost} then {_LOST_ROW}.before_known_columns"
        f" when {is_incomplete} then {texts(table.key)}"
        f" when {image}.before_known_columns is not null"
        f" then array_union(known_columns, {image}.before_known_columns)"
        f" when {image} is not null then null else known_columns end",
    }
    for name in ("transaction_id", *table.metadata):
        replaced[name] = f"if({is_lost}, null, {quoted(name)})"
    if table.values:
        replaced[ROW] = f"struct({', '.join(map(value, table.values))})"
    return (
        first.where(f"coalesce({_FIRST_CHANGE} not in ('I', 'K'), true)")
        .selectExpr(
            "*",
            f"explode(case when {_LOST_ROW} is null then array({KIND})"
            f" else array('L', {KIND}) end) as {kind}",
        )
        .selectExpr(
            "*",
            f"{kind} = 'L' and {_LOST_ROW} is not null as {is_lost}",
            f"coalesce({_FIRST_CHANGE} = 'U' and {_NEXT_BEFORE} is null, false) as {is_incomplete}",
            f"{at_load} end as {image}",
        )
        .selectExpr(
            *(
                f"{replaced[name]} as {quoted(name)}" if name in replaced else quoted(name)
                for name in names
            )
        )
    )


def _loads_up_to(change_seq: str) -> str:
    return leading(LOADS, lambda load: f"{load}.change_seq <= {change_seq}")


def _truncates_up_to(change_seq: str) -> str:
    return leading(TRUNCATES, lambda truncated_at: f"{truncated_at} <= {change_seq}")


def _image(prefix: str) -> str:
    return f"struct({prefix}before as before, {prefix}before_known_columns as before_known_columns)"


def _same_value(name: str, may_be_unknown: bool) -> str:
    """True where a brought row and one that left, `gone`, agree on a column that both know."""
    same = f"{ROW}.{quoted(name)} <=> gone.before.{quoted(name)}"
    if not may_be_unknown:
        return same
    unknown = [
        f"({known} is not null and not array_contains({known}, {text(name)}))"
        for known in ("known_columns", "gone.before_known_columns")
    ]
    return f"({' or '.join([*unknown, same])})"
