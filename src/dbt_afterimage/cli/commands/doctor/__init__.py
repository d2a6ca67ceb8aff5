"""`afterimage doctor`: checks the machine, the Spark session, the project and its raw tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict

import typer

from dbt_afterimage.cli.commands.doctor.change_logs import change_log_checks
from dbt_afterimage.cli.commands.doctor.check import Check, failed_by
from dbt_afterimage.cli.commands.doctor.machine import machine_checks, packages_check
from dbt_afterimage.cli.commands.doctor.project import declared_tables, project_checks
from dbt_afterimage.cli.commands.doctor.raw_tables import raw_table_checks
from dbt_afterimage.cli.commands.doctor.spark_session import session_checks
from dbt_afterimage.cli.frame import FAILED, JsonOption, TargetOption, command
from dbt_afterimage.cli.support.project_session import has_server, load_profile, project_session
from dbt_afterimage.cli.support.runs import target_folder
from dbt_afterimage.errors import AfterimageError
from dbt_afterimage.spark.session import server_address


@command("doctor", example="afterimage doctor\nafterimage doctor --target cluster --json")
def doctor(as_json: JsonOption = False, target: TargetOption = None) -> None:
    """Check Java, Spark, the catalog, the project's settings and its raw tables.

    Each line is ok, warning or failed, and what is not ok ends with a fix. It writes nothing but
    a small table, a view and a branch in the target's schema, which it drops again.
    """
    found = []
    for check in all_checks(target):
        found.append(check)
        if not as_json:
            typer.echo(shown(check))
    if as_json:
        typer.echo(json.dumps([asdict(check) for check in found], indent=2, ensure_ascii=False))
    else:
        typer.echo(summary(found))
    if any(check.state == "failed" for check in found):
        raise typer.Exit(FAILED)


def all_checks(target: str | None) -> Iterator[Check]:
    """The checks in order, each as soon as it is done, without those that need a failed one."""
    yield packages_check()
    try:
        profile = load_profile(target)
    except AfterimageError as error:
        yield from machine_checks(is_client=server_address({}) is not None)
        yield failed_by(error, "profile and Spark")
        return
    yield from machine_checks(is_client=has_server(profile))
    schema = str(profile.credentials.schema)
    yield Check("profile", "ok", f"target {profile.target_name}, schema {schema}")
    try:
        session = project_session(target)
    except AfterimageError as error:
        yield failed_by(error, "profile and Spark")
        return
    yield Check("Spark", "ok", f"Spark {session.version} runs")
    yield from session_checks(session, schema)
    tables, problem = declared_tables(target)
    yield from project_checks(tables, problem)
    yield from raw_table_checks(session, tables)
    if not problem:
        yield from change_log_checks(session, target_folder())


def shown(check: Check) -> str:
    """A check as the terminal shows it."""
    line = f"{check.state:<8} {check.name}: {check.text}"
    return f"{line}\n         Fix: {check.fix}" if check.fix else line


def summary(checks: list[Check]) -> str:
    """All checks in one line."""
    counts = Counter(check.state for check in checks)
    return (
        f"{len(checks)} checks: {counts['ok']} ok, {counts['warning']} warnings, "
        f"{counts['failed']} failed"
    )
