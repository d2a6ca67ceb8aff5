"""`afterimage add-table`: writes source YAML, models and tests of raw tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from dbt_afterimage.cli.frame import TargetOption, UsageProblem, command
from dbt_afterimage.errors import AfterimageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt_afterimage.cli.commands.add_table.project import Project
    from dbt_afterimage.cli.commands.add_table.proposal import Proposal


class NotAddedError(AfterimageError):
    """Some tables were not added; each has its reason."""


@command(
    "add-table",
    example="""\
afterimage add-table sales.invoices sales.customers
afterimage add-table --all sales --key order_lines=order_id,line_no""",
)
def add_table(
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="SCHEMA.TABLE...", help="Raw tables: the change table or its base."),
    ] = None,
    every: Annotated[
        str | None, typer.Option("--all", metavar="SCHEMA", help="All tables of a raw schema.")
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE=COLUMN,...", help="Key of a table; without TABLE= if there is one table."
        ),
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Name of the dbt source. By default the schema's.")
    ] = None,
    prefix: Annotated[str, typer.Option(help="Begins the names of all models.")] = "",
    loaded_at: Annotated[
        str | None, typer.Option(help="Time of the full load of the base tables, UTC.")
    ] = None,
    base_kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[TABLE=]KIND",
            help="`frozen` if nothing changes the base table after its full load, `live` if the "
            "replication tool keeps it up to date; without TABLE= of all others.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show only what it would do.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that were edited.")
    ] = False,
    target: TargetOption = None,
) -> None:
    """Write source YAML, models and tests for raw tables, ready for `dbt build`.

    Key, header columns, mask settings, large objects and types are read from the raw schema and a
    sample of its data. Run it again at any time: it changes nothing that is as it would write it,
    and replaces no edited file.
    """
    from dbt_afterimage.cli.commands.add_table.keys_option import KeyOptions
    from dbt_afterimage.cli.commands.add_table.project import Project
    from dbt_afterimage.cli.commands.add_table.systems import propose_all
    from dbt_afterimage.cli.support.project_session import project_folder, project_session
    from dbt_afterimage.cli.support.working import working
    from dbt_afterimage.settings.timestamps import is_timestamp

    if bool(tables) == bool(every):
        raise UsageProblem(
            "`add-table`: name tables as SCHEMA.TABLE, or all of a schema with --all SCHEMA. Fix: "
            "give one of the two."
        )
    keys = KeyOptions.parse(key or [])
    if loaded_at is not None and not is_timestamp(loaded_at):
        raise UsageProblem(
            f"--loaded-at {loaded_at}: this is not a time. Allowed: a date or a time in UTC, such "
            "as '2026-03-02 07:30:00'. Fix: correct it."
        )
    kinds = dict(option.rpartition("=")[::2] for option in base_kind or [])
    for table, kind in kinds.items():
        if kind not in ("frozen", "live"):
            raise UsageProblem(
                f"--base-kind {table}={kind}: allowed: frozen, live. Fix: give one of the two."
            )
    project = Project(project_folder())
    with working("Starting Spark") as report:
        session: SparkSession = project_session(target)
        proposals, problems = propose_all(session, tables or [], every, source, prefix, report)
    keys.check([proposal.table for proposal in proposals], unread=len(problems))
    failures = [str(problem) for problem in problems]
    added: list[str] = []
    for proposal in proposals:
        try:
            own_kind = kinds.get(proposal.table, kinds.get(""))
            complete = with_settings(keys.apply(proposal), loaded_at, own_kind)
            _write(project, complete, dry_run, overwrite)
            added.append(complete.staging)
        except AfterimageError as error:
            typer.echo(f"{proposal.raw_name}: not added")
            failures.append(str(error))
    if failures:
        listed = "\n".join(failures)
        raise NotAddedError(
            f"{len(failures)} of {len(proposals) + len(problems)} tables were not added.\n{listed}"
        )
    if added and not dry_run:
        select = f" --select {' '.join(f'{name}+' for name in added)}" if len(added) <= 3 else ""
        typer.echo(f"Next: dbt build{select}")


def with_settings(proposal: Proposal, loaded_at: str | None, base_kind: str | None) -> Proposal:
    """The proposal with its key, and what the user says of its full load, among its settings."""
    settings = dict(proposal.entry.settings)
    notes = [*proposal.notes]
    if proposal.key.columns:
        settings = {"key": list(proposal.key.columns), **settings}
    if proposal.base:
        # a wrong kind makes a wrong history, so dbt stops at a question in its place
        kind = base_kind or "frozen or live? does anything change the base table after its load"
        settings["base"] = {"kind": kind}
        if loaded_at:
            settings["base"]["loaded_at"] = loaded_at
        else:
            notes.append(
                "the time of the full load is not in the data: set base.loaded_at, or history "
                "begins in 1900"
            )
        if not base_kind:
            notes.append(
                f"base.kind: {kind}. Answer in the YAML file, or give --base-kind: dbt stops until "
                "then"
            )
    elif loaded_at:
        notes.append("--loaded-at has no effect: the table has no full load of its own")
    return replace(proposal, entry=replace(proposal.entry, settings=settings), notes=notes)


def _write(project: Project, proposal: Proposal, dry_run: bool, overwrite: bool) -> None:
    from dbt_afterimage.cli.commands.add_table.render import files
    from dbt_afterimage.cli.support.file_changes import changes, write

    wanted = files(proposal, project.layout)
    project.check(proposal, wanted)
    found = changes(project.folder, wanted)
    edited = [change for change in found if change.old is not None]
    if edited and not overwrite and not dry_run:
        shown = "\n".join(change.diff() for change in edited)
        raise NotAddedError(
            f"{proposal.raw_name}: {len(edited)} of its files are not as "
            f"add-table would write them. Nothing was written for this table. Fix: keep the files "
            f"as they are, or replace them with --overwrite.\n{shown}"
        )
    done = "would be written" if dry_run else "written"
    state = (
        f"{len(found)} files {done}" if found else f"all {len(wanted)} files are as they should be"
    )
    typer.echo(f"{proposal.raw_name}: {state}")
    if found:
        key = ", ".join(proposal.key.columns) or "none: change log and field changes only"
        typer.echo(f"  key: {key} ({proposal.key.reason})")
        for note in proposal.notes:
            typer.echo(f"  {note}")
    if dry_run:
        for change in found:
            typer.echo(change.diff())
    else:
        write(project.folder, found)
