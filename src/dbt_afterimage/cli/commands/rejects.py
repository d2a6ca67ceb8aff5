"""`afterimage rejects`: lists, shows, resolves and replays rejected records."""

from __future__ import annotations

import json
from collections import Counter
from typing import Annotated, Any

import typer

from dbt_afterimage.cli.frame import JsonOption, TargetOption, UsageProblem, command, printable
from dbt_afterimage.cli.support.project_session import project_session
from dbt_afterimage.cli.support.run_dbt import run_dbt
from dbt_afterimage.cli.support.table_status import CHANGES, REJECTED
from dbt_afterimage.cli.support.warehouse import (
    AllSchemas,
    Warehouse,
    WarehouseError,
    project_warehouse,
    similar,
)

_WITHOUT_PLACE = ("null_change_seq", "malformed_change_seq")
_SHOWN = 50
_WIDTH = 180


@command(
    "rejects",
    example="afterimage rejects orders\n"
    "afterimage rejects orders --show 7226120381226551341\n"
    "afterimage rejects orders --resolve 7226120381226551341 --why 'a test row of the source'\n"
    "afterimage rejects orders --replay",
)
def rejects(
    table: Annotated[
        str | None, typer.Argument(help="Table whose records to list; by default all tables.")
    ] = None,
    show: Annotated[
        int | None, typer.Option(metavar="HASH", help="Show this record as a whole.")
    ] = None,
    resolve: Annotated[
        int | None, typer.Option(metavar="HASH", help="Mark this record as resolved.")
    ] = None,
    why: Annotated[str | None, typer.Option(help="Why it is resolved; kept with the user.")] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Run the table again from its first rejected record.")
    ] = False,
    include_resolved: Annotated[
        bool, typer.Option("--all", help="List resolved records too.")
    ] = False,
    as_json: JsonOption = False,
    target: TargetOption = None,
) -> None:
    """List the records that broke a rule, with the reason and the place in the source's order.

    A record is resolved by itself when a repaired copy of it arrives. --replay is for records that
    are right once settings or the raw table are mended, --resolve for those that nothing repairs.
    """
    if resolve is not None and not (table and why and why.strip()):
        raise UsageProblem(
            "`rejects`: --resolve needs a table and a reason. Fix: afterimage rejects TABLE "
            "--resolve HASH --why 'the reason'"
        )
    if replay and not table:
        raise UsageProblem(
            "`rejects`: --replay needs a table. Fix: afterimage rejects TABLE --replay"
        )
    if (show is not None) + (resolve is not None) + replay > 1:
        raise UsageProblem(
            "`rejects`: got two of --show, --resolve and --replay. Fix: give one of them."
        )
    only, schema = project_warehouse(target)
    warehouse = AllSchemas(only, schema)
    found = read_rejects(warehouse, schema, table)
    if resolve is not None and table and why:
        from dbt_afterimage.cli.commands.resolve_reject import resolve_reject

        one_record(found, resolve, table)
        session = project_session(target)
        typer.echo(resolve_reject(session, schema, table, resolve, why.strip()))
    elif replay and table:
        run_again(found, table, target)
        again = AllSchemas(only, schema)
        typer.echo(outcome(table, found, read_rejects(again, schema, table)))
    elif show is not None:
        record = one_record(found, show, table)
        _show(record, accepted_beside(warehouse, schema, record), as_json=as_json)
    else:
        wanted = [row for row in found if include_resolved or row["resolved_at"] is None]
        _list(wanted, as_json=as_json)


def read_rejects(warehouse: Warehouse, schema: str, table: str | None) -> list[dict[str, Any]]:
    """Rejected records, the newest batch first, each with its `table`.

    Raises:
        WarehouseError: there is no such table.
    """
    relations = warehouse.relations(schema)
    tables = [name.removesuffix(REJECTED) for name in relations if name.endswith(REJECTED)]
    if table is not None and table not in tables:
        raise WarehouseError(
            f"`rejects`: schema {schema} has no table {table}{REJECTED}. "
            f"{similar(table, tables)} Fix: name a table that has a change log, without `_changes`."
        )
    found = [
        {"table": name, **row}
        for name in ([table] if table else tables)
        for row in warehouse.arrow(schema, f"{name}{REJECTED}").to_pylist()
    ]
    found.sort(key=lambda row: (row["table"], row["change_seq"] or "", row["record_hash"]))
    return sorted(found, key=lambda row: row["recorded_at"], reverse=True)


def one_record(found: list[dict[str, Any]], record: int, table: str | None) -> dict[str, Any]:
    """The rejected record with this hash.

    Raises:
        WarehouseError: there is none.
    """
    for row in found:
        if row["record_hash"] == record:
            return row
    where = f"{table}{REJECTED}" if table else "Rejected records"
    raise WarehouseError(
        f"`rejects`: {where} has no record_hash {record}. Fix: copy it from `afterimage rejects`."
    )


def accepted_beside(
    warehouse: Warehouse, schema: str, record: dict[str, Any]
) -> list[dict[str, Any]]:
    """Changes that the change log has at the change_seq of a rejected record."""
    log, seq = record["table"] + CHANGES, record["change_seq"]
    # a malformed change_seq is not a place in the log, and may hold any character
    if log not in warehouse.relations(schema) or not (seq and seq.isalnum()):
        return []
    found: list[dict[str, Any]] = warehouse.arrow(
        schema, log, where=f"change_seq = '{seq}'"
    ).to_pylist()
    return found


def run_again(found: list[dict[str, Any]], table: str, target: str | None) -> None:
    """Build a table's models again; records are read from the first unresolved one on.

    Args:
        found: rejected records of the table, as `read_rejects` gives them.
        table: the table, without `_changes`.

    Raises:
        DbtFailedError: dbt failed, and has printed why.
    """
    name = table.rpartition(".")[2]
    places = [
        row["change_seq"]
        for row in found
        if row["resolved_at"] is None
        and row["change_seq"]
        and row["reject_reason"] not in _WITHOUT_PLACE
    ]
    # records without a place are read in every run
    first = ["--vars", json.dumps({"backfill_from": min(places)})] if places else []
    run_dbt(["run", "--select", f"+{name}_changes+", *first], target)


def outcome(table: str, before: list[dict[str, Any]], after: list[dict[str, Any]]) -> str:
    """The records that a replay resolved, in words."""
    unresolved = {row["record_hash"] for row in before if row["resolved_at"] is None}
    left = {row["record_hash"] for row in after if row["resolved_at"] is None}
    resolved = f"{table}: {len(unresolved - left):,} of {len(unresolved):,} resolved"
    return resolved + (f", {len(left):,} unresolved: afterimage rejects {table}" if left else "")


def _list(rows: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        typer.echo(_json(rows))
        return
    from rich.console import Console
    from rich.table import Table

    grid = Table(box=None, pad_edge=False)
    for heading in ("table", "record_hash", "reason", "operation", "change_seq", "key", "batch"):
        grid.add_column(
            heading, no_wrap=True, justify="right" if heading == "record_hash" else "left"
        )
    for row in rows[:_SHOWN]:
        cells = [
            row["table"],
            row["record_hash"],
            row["reject_reason"],
            row["change_oper"],
            row["change_seq"],
            row["record_key"],
            row["recorded_at"].strftime("%Y-%m-%d %H:%M"),
        ]
        grid.add_row(*("-" if cell is None else printable(cell) for cell in cells))
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, width=_WIDTH)
    if rows:
        console.print(grid)
    if len(rows) > _SHOWN:
        typer.echo(f"and {len(rows) - _SHOWN:,} more; --json prints all")
    typer.echo(summary(rows))


def summary(rows: list[dict[str, Any]]) -> str:
    """How many records there are of each reason, in one line."""
    unresolved = sum(row["resolved_at"] is None for row in rows)
    reasons = Counter(row["reject_reason"] for row in rows)
    by_reason = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))
    resolved = f", {len(rows) - unresolved:,} resolved" if unresolved < len(rows) else ""
    return f"{unresolved:,} unresolved{resolved}" + (f": {by_reason}" if by_reason else "")


def _show(record: dict[str, Any], beside: list[dict[str, Any]], *, as_json: bool) -> None:
    try:
        raw = json.loads(record["raw_record"])
    except (TypeError, ValueError):
        raw = record["raw_record"]
    if as_json:
        shown = {**record, "raw_record": raw, "accepted_at_the_same_change_seq": beside}
        typer.echo(_json(shown))
        return
    for name, value in record.items():
        if name != "raw_record":
            typer.echo(f"{name}: {'-' if value is None else printable(value)}")
    typer.echo(f"raw_record: {_json(raw)}")
    typer.echo(f"\n{len(beside)} changes of {record['table']}_changes at its change_seq")
    for row in beside:
        known = {name: value for name, value in row.items() if value is not None}
        typer.echo(_json(known))


def _json(value: Any) -> str:
    # JSON escapes the control characters of ASCII only
    return printable(json.dumps(value, indent=2, ensure_ascii=False, default=str))
