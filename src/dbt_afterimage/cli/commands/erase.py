"""`afterimage erase`: erases a person's data from every table that afterimage writes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from dbt_afterimage.cli.frame import TargetOption, UsageProblem, command, printable
from dbt_afterimage.cli.support.run_dbt import run_operation
from dbt_afterimage.cli.support.working import working

if TYPE_CHECKING:
    from dbt_afterimage.erasure.run import ErasurePlan

_EXAMPLE = """\
afterimage erase customers --key 13 --columns name,email --dry-run
afterimage erase customers --key id=13,region=EU --rows"""


@command("erase", example=_EXAMPLE)
def erase(
    table: Annotated[str, typer.Argument(help="Table, its change log without `_changes`.")],
    key: Annotated[
        list[str],
        typer.Option(help="Key of the rows: 13, or id=13,region=EU; may be given several times."),
    ],
    columns: Annotated[
        str | None, typer.Option(help="Columns to set to NULL, joined by commas.")
    ] = None,
    rows: Annotated[bool, typer.Option("--rows", help="Erase whole records.")] = False,
    follow_key_changes: Annotated[
        bool,
        typer.Option("--follow-key-changes", help="Also erase keys that the rows had, or got."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be erased, and write nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    target: TargetOption = None,
) -> None:
    """Erase the data of keys from change log, rejected records, marts and their old states.

    Let the source erase it first and run dbt build. Raw tables, logs and backups are not reached.
    Later runs do not bring the data back; later changes of the keys are kept.
    """
    names = column_names(columns, rows=rows)
    # the keys stay out of dbt, which writes the arguments of a macro to its log
    run_operation("erasable_tables", {"table": table}, target, quiet=True)
    from dbt_afterimage.cli.support.project_session import project_session
    from dbt_afterimage.dbt_spark.macro_api.erasure import take_erasable_tables
    from dbt_afterimage.erasure.request import ErasureRequest
    from dbt_afterimage.erasure.run import erase as erase_data
    from dbt_afterimage.erasure.run import plan_erasure
    from dbt_afterimage.erasure.tables import ErasableTables

    session = project_session(target)
    request = ErasureRequest(key, names, follow_key_changes)
    with working(f"Searching the tables of {table}"):
        plan = plan_erasure(session, ErasableTables.of(take_erasable_tables()), request)
    for line in preview(plan):
        typer.echo(printable(line))
    if dry_run:
        typer.echo("Nothing was erased: --dry-run")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise UsageProblem(
                "`erase`: there is no terminal to confirm on. Nothing was erased. Fix: add --yes, "
                "or --dry-run to see what would be erased."
            )
        typer.confirm("Erase this? It cannot be undone.", abort=True)
    with working(f"Erasing from the tables of {table}"):
        erase_data(session, plan, typer.echo)
    typer.echo(f"Erased; {plan.tables.erasures} has the record")


def column_names(columns: str | None, *, rows: bool) -> list[str] | None:
    """The columns that `--columns` names, None for whole records.

    Raises:
        UsageProblem: neither columns nor rows are given, or both.
    """
    names = [name.strip() for name in (columns or "").split(",") if name.strip()]
    if bool(names) == rows:
        got = "--columns and --rows" if rows else "neither --columns nor --rows"
        raise UsageProblem(
            f"`erase`: got {got}. Allowed: one of the two. Nothing was erased. Fix: give --columns "
            "name,... to set columns to NULL, or --rows to erase whole records."
        )
    return names or None


def preview(plan: ErasurePlan) -> list[str]:
    """The rows that a plan erases and those that it does not reach, line by line."""
    from dbt_afterimage.erasure.keys import shown

    tables = plan.tables
    what = "whole records" if plan.columns is None else f"columns {', '.join(plan.columns)}"
    keys = "this key" if len(plan.keys.texts) == 1 else "these keys"
    lines = [f"Erase {what} up to change_seq {plan.up_to} of {keys}:"]
    for texts in plan.keys.texts:
        more = "  (from a key change)" if texts in plan.keys.followed else ""
        lines.append(f"  {shown(tables.key, texts)}{more}")
    width = max(map(len, plan.counts))
    lines += [
        f"{table.ljust(width)}  {count:>7,} {'row' if count == 1 else 'rows'}"
        for table, count in plan.counts.items()
    ]
    lines.append("Old states and files of these tables are removed, too.")
    lines.append(f"Not reached: raw tables ({', '.join(tables.raw_tables)}), backups and copies")
    lines.append(
        "Not reached: logs and files in dbt's target folder, whose errors may quote values"
    )
    if tables.downstream:
        lines.append(f"Not reached: {', '.join(tables.downstream)}; rebuild them")
    if tables.table_format == "delta":
        lines.append(
            "Not reached: least and greatest values of old files in Delta's transaction log, of "
            "texts 32 characters, which Delta removes with a checkpoint after "
            "`delta.logRetentionDuration` (30 days); docs/commands.md has the statement that ends "
            "it on the next UTC day"
        )
    if plan.without_key:
        lines.append(
            f"Not reached: {plan.without_key:,} rejected records without a key; see afterimage "
            "rejects"
        )
    return lines
