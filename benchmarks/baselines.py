"""The baselines of the steps: plain writes of the same rows, and hand-written MERGEs.

Each function returns one SQL statement or query. A baseline reads the same tables as its step and
writes to a table of its own.
"""

from __future__ import annotations

from collections.abc import Sequence


def append(table: str, rows: str) -> str:
    """A plain append: the lower bound for writing these rows."""
    return f"insert into {table} {rows}"


def unpaired_log(raw: str, columns: Sequence[str], after: str) -> str:
    """The new raw records as rows of a change log, neither paired nor checked."""
    named = ", ".join(columns)
    image = ", ".join(f"'{name}', {name}" for name in columns)
    return (
        "select header__change_seq as change_seq, header__change_oper as change_oper,"
        " header__timestamp as changed_at, header__transaction_id as transaction_id,"
        f" {named}, named_struct({image}) as before,"
        " timestamp '2026-03-05' as recorded_at"
        f" from {raw} where header__change_seq > '{after}' and header__change_oper <> 'B'"
    )


def history_columns(columns: Sequence[str]) -> str:
    """The columns of the hand-written history."""
    own = "valid_from, valid_to, valid_from_seq, valid_to_seq, is_current, opened_by, closed_by"
    return ", ".join([*columns, own])


def closed_copies(table: str, names: Sequence[str], number: int) -> str:
    """A query for a copy of each open version, closed long before that version began."""
    changed = {
        "items_history_id": f"md5(concat(items_history_id, ' {number}'))",
        "valid_from": f"timestamp '2000-01-01' + interval {number} days",
        "valid_to": f"timestamp '2000-01-01' + interval {number + 1} days",
        "valid_from_seq": f"'{20000101 + number:08}{0:027}'",
        "valid_to_seq": f"'{20000101 + number + 1:08}{0:027}'",
        "is_current": "false",
        "closed_by": "'U'",
    }
    columns = ", ".join(f"{changed.get(name, name)} as {name}" for name in names)
    return f"select {columns} from {table} where is_current"


def history_merge(table: str, log: str, columns: Sequence[str], is_new: str) -> str:
    """SCD2 in one MERGE, as tutorials show it: the source has both closing rows and new rows."""
    named = ", ".join(columns)
    change = "change_seq, change_oper, changed_at, next_seq, next_at, next_oper"
    return f"""
merge into {table} as target
using (
    with ordered as (
        select {named}, change_seq, change_oper, changed_at,
            row_number() over (partition by id order by change_seq) as number,
            lead(change_seq) over (partition by id order by change_seq) as next_seq,
            lead(changed_at) over (partition by id order by change_seq) as next_at,
            lead(change_oper) over (partition by id order by change_seq) as next_oper
        from {log} where {is_new}
    )
    select id as merge_key, {named}, {change}
    from ordered where number = 1
    union all
    select null as merge_key, {named}, {change}
    from ordered where change_oper <> 'D'
) as source
    on target.id = source.merge_key and target.is_current
when matched then update set
    target.valid_to = source.changed_at, target.valid_to_seq = source.change_seq,
    target.is_current = false, target.closed_by = source.change_oper
when not matched and source.merge_key is null then
    insert ({history_columns(columns)})
    values ({", ".join(f"source.{name}" for name in columns)}, source.changed_at, source.next_at,
        source.change_seq, source.next_seq, source.next_seq is null,
        source.change_oper, source.next_oper)
"""


def current_merge(table: str, log: str, columns: Sequence[str], is_new: str) -> str:
    """The current state in one MERGE, from the last change of each key."""
    named = ", ".join(columns)
    updates = ", ".join(f"target.{name} = source.{name}" for name in columns)
    return f"""
merge into {table} as target
using (
    select {named}, change_oper from (
        select {named}, change_oper,
            row_number() over (partition by id order by change_seq desc) as number
        from {log} where {is_new}
    ) where number = 1
) as source
    on target.id = source.id
when matched and source.change_oper = 'D' then delete
when matched then update set {updates}
when not matched and source.change_oper <> 'D' then
    insert ({named}) values ({", ".join(f"source.{name}" for name in columns)})
"""


def state_after(current: str, columns: Sequence[str], instant: str) -> str:
    """The source table as `dbt snapshot` reads it, with the time of each row's last change."""
    return f"select {', '.join(columns)}, {instant} as updated_at from {current}"
