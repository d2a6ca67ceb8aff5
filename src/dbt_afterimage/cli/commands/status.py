"""`afterimage status`: whether each table is up to date, from progress and metadata."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Annotated

import typer

from dbt_afterimage.cli.frame import FAILED, JsonOption, TargetOption, command
from dbt_afterimage.cli.support.fail_if import Condition, parse_conditions
from dbt_afterimage.cli.support.runs import target_folder
from dbt_afterimage.cli.support.table_status import (
    MEASURES,
    MEASURES_OF_ACTIVITY,
    TableStatus,
    read_status,
)
from dbt_afterimage.cli.support.units import BYTES, SECONDS
from dbt_afterimage.cli.support.warehouse import (
    AllSchemas,
    Warehouse,
    WarehouseError,
    project_warehouse,
    similar,
)

_ACTIVITY = "change_activity"
_WIDTH = 180


@command(
    "status", example="afterimage status\nafterimage status --fail-if 'lag > 1h or unresolved > 0'"
)
def status(
    fail_if: Annotated[
        str | None, typer.Option(help="Exit with 1 if this holds of a table, such as 'lag > 1h'.")
    ] = None,
    activity: Annotated[
        str, typer.Option(help="The change_activity table; lag and late changes come from it.")
    ] = _ACTIVITY,
    as_json: JsonOption = False,
    target: TargetOption = None,
) -> None:
    """Show how up to date each table is, what was rejected, and which files need compaction.

    It reads the progress and activity tables, rejected records and table metadata; no mart is
    scanned. Measures of --fail-if are the names that --json prints.
    """
    conditions = parse_conditions(fail_if, MEASURES) if fail_if else []
    only, schema = project_warehouse(target)
    warehouse = AllSchemas(only, schema)
    _check_activity(warehouse, schema, activity, conditions)
    now = datetime.now(timezone.utc)
    tables = read_status(warehouse, schema, activity, target_folder(), now)
    violations = violated(tables, conditions)
    if as_json:
        shown = {"tables": [asdict(each) for each in tables], "violations": violations}
        typer.echo(json.dumps(shown, indent=2, ensure_ascii=False))
    else:
        _print(tables)
        for line in violations:
            typer.echo(f"failed: {line}")
    if violations:
        raise typer.Exit(FAILED)


def _check_activity(
    warehouse: Warehouse, schema: str, activity: str, conditions: list[Condition]
) -> None:
    """Refuse a condition that could never hold, for lack of the table that it is measured by."""
    needed = [each.measure for each in conditions if each.measure in MEASURES_OF_ACTIVITY]
    relations = warehouse.relations(schema)
    if activity in relations or not (needed or activity != _ACTIVITY):
        return
    reads = f"--fail-if reads {', '.join(needed)} from it" if needed else "--activity names it"
    raise WarehouseError(
        f"`status`: schema {schema} has no table {activity}, and {reads}. "
        f"{similar(activity, list(relations))} Fix: correct --activity, or build the model with "
        "`dbt run`."
    )


def violated(tables: list[TableStatus], conditions: list[Condition]) -> list[str]:
    """A line for each table and condition that holds of it."""
    return [
        f"{each.table}: {condition.text} ({_measured(each, condition.measure)})"
        for each in tables
        for condition in conditions
        if condition.holds(each.measures())
    ]


def summary(tables: list[TableStatus]) -> str:
    """All tables in one line."""
    behind = sum(bool(each.behind) for each in tables)
    failed = sum(bool(each.failed) for each in tables)
    unresolved = sum(each.unresolved for each in tables)
    due = sum(len(each.compaction_due) for each in tables)
    return (
        f"{len(tables)} tables, {behind} with marts behind their change log, {failed} failed in "
        f"their last run, {unresolved:,} unresolved rejected records, "
        f"{due} tables need `afterimage compact`"
    )


def _print(tables: list[TableStatus]) -> None:
    from rich.console import Console
    from rich.table import Table

    headings = {
        "table": "left",
        "last batch (UTC)": "left",
        "age": "right",
        "newest change (UTC)": "left",
        "lag": "right",
        "marts behind": "right",
        "path": "left",
        "late": "right",
        "rejected": "right",
        "unresolved": "right",
        "files": "right",
        "size": "right",
        "last run": "left",
    }
    grid = Table(box=None, pad_edge=False)
    for heading, side in headings.items():
        grid.add_column(heading, justify="left" if side == "left" else "right", no_wrap=True)
    for each in tables:
        grid.add_row(
            each.table,
            _minute(each.last_batch),
            SECONDS.text(each.age),
            _minute(each.newest_change),
            SECONDS.text(each.lag),
            SECONDS.text(each.behind),
            each.path or "-",
            "-" if each.late_share is None else f"{each.late_share:.1%}",
            f"{each.rejected:,}",
            f"{each.unresolved:,}",
            f"{each.files:,}" + ("!" if each.compaction_due else ""),
            BYTES.text(each.bytes),
            _result(each),
        )
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDTH)
    console.print(grid)
    typer.echo(summary(tables))


def _minute(time: str | None) -> str:
    return time[:16].replace("T", " ") if time else "-"


def _result(each: TableStatus) -> str:
    if each.failed is None:
        return "-"
    if not each.failed:
        return "success"
    # the others failed with it, or were skipped
    others = f" and {len(each.failed) - 1} more" if len(each.failed) > 1 else ""
    return f"failed: {each.failed[0]}{others}"


def _measured(each: TableStatus, measure: str) -> str:
    value = each.measures()[measure]
    if measure in ("age", "lag", "behind"):
        return f"{measure} is {SECONDS.text(value)}"
    return f"{measure} is {value:,}" if isinstance(value, int) else f"{measure} is {value:,g}"
