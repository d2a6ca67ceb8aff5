"""`afterimage report`: one HTML page about the health of the pipeline."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import typer
import yaml

from dbt_afterimage.cli.commands.status import violated
from dbt_afterimage.cli.frame import FAILED, TargetOption, UsageProblem, command
from dbt_afterimage.cli.support.fail_if import parse_conditions
from dbt_afterimage.cli.support.file_changes import FileChange, write
from dbt_afterimage.cli.support.project_session import load_profile, project_folder
from dbt_afterimage.cli.support.runs import target_folder
from dbt_afterimage.cli.support.table_status import MEASURES
from dbt_afterimage.cli.support.warehouse import project_warehouse
from dbt_afterimage.cli.support.working import working
from dbt_afterimage.errors import AfterimageError

FILE = "afterimage_report.html"


class ReportNotWrittenError(AfterimageError):
    """The page cannot be written where it should be."""


@command(
    "report",
    example="afterimage report\n"
    "afterimage report --output health.html --fail-if 'failed > 0 or unresolved > 0'",
)
def report(
    output: Annotated[
        Path | None,
        typer.Option(
            help=f"File to write; by default {FILE} in dbt's target folder.", show_default=False
        ),
    ] = None,
    days: Annotated[
        int, typer.Option(help="Days that the plots show, up to the newest change.", min=1)
    ] = 30,
    fail_if: Annotated[
        str | None, typer.Option(help="Exit with 1 if this holds of a table, as in `status`.")
    ] = None,
    activity: Annotated[
        str, typer.Option(help="The change_activity table; throughput and lag come from it.")
    ] = "change_activity",
    target: TargetOption = None,
) -> None:
    """Write one HTML page about the health of the pipeline, to send or to publish.

    It shows what needs attention, tables, flow, throughput, lag, rejected records, growth, and the
    last dbt runs with their slowest steps. It reads what `status` reads; no mart is scanned.
    """
    from dbt_afterimage.cli.commands.report.facts import Request, read_facts
    from dbt_afterimage.cli.commands.report.findings import findings
    from dbt_afterimage.cli.commands.report.page import render

    conditions = parse_conditions(fail_if, MEASURES) if fail_if else []
    file = output or target_folder() / FILE
    if file.is_dir():
        raise UsageProblem(
            f"`report`: --output is {file}, which is a folder. Fix: name a file, such as "
            f"{file / FILE}."
        )
    target_name = str(load_profile(target).target_name)
    warehouse, schema = project_warehouse(target)
    now = datetime.now(timezone.utc)
    with working("Reading progress, activity and table metadata"):
        facts = read_facts(warehouse, Request(schema, activity, days, now, target_folder()))
    violations = violated(facts.tables, conditions)
    found = findings(facts, violations)
    page = render(facts, found, _project_name(), target_name)
    try:
        write(file.parent, [FileChange(file.name, None, page)])
    except OSError as error:
        raise ReportNotWrittenError(
            f"`report`: {file} cannot be written: {error.strerror}. Fix: choose another --output."
        ) from error
    failed = sum(finding.state == "failed" for finding in found)
    typer.echo(
        f"{file}: {len(facts.flows)} tables, {failed} failures, {len(found) - failed} warnings"
    )
    for line in violations:
        typer.echo(f"failed: {line}")
    if violations:
        raise typer.Exit(FAILED)


def _project_name() -> str:
    project = yaml.safe_load((project_folder() / "dbt_project.yml").read_text(encoding="utf-8"))
    return str(project["name"])
