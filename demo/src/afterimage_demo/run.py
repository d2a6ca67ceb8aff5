"""The demo from end to end: land, build, land, build, docs; one process, so Spark starts once."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table as Grid

from afterimage_demo.systems import DemoSystem, demo_system
from afterimage_demo.transport import Operation
from dbt_afterimage.spark.session import current, environment_variable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEMOS = "AFTERIMAGE_DEMOS"
"""Environment variable: names of the demos whose models are enabled, joined by commas."""

_WITHOUT_TESTS = ("--exclude-resource-type", "test", "--exclude-resource-type", "unit_test")


class DemoFailedError(RuntimeError):
    """A step of the demo failed; dbt has said why."""


def run_demo(*, system: str, scale: int, seed: int, target: str | None, docs: bool) -> None:
    """Run all steps of a system's demo and print a summary.

    Raises:
        ValueError: the system has no demo.
        DemoFailedError: a dbt command did not succeed.
    """
    demo = demo_system(system)
    options = ["--target", target] if target else []
    with environment_variable(DEMOS, system), demo.transport.running(scale) as (given, following):
        own = {"scale": scale, "seed": seed, "system": system, **given}
        first, second = (
            [_operation(each) for each in [("land_demo", {"batch": batch, **own}), *following]]
            for batch in (1, 2)
        )
        steps = [
            ("Land the first batch of raw change tables", first),
            ("Build staging, change logs and marts", [["build", *_WITHOUT_TESTS]]),
            ("Land a second batch", second),
            ("Build again, only what is new, and test everything", [["build"]]),
        ]
        if docs:
            steps.append(("Build the dbt docs", [["docs", "generate"]]))
        typer.echo(f"{len(steps)} steps, about four minutes on two cores")
        warned: list[str] = []
        for number, (what, commands) in enumerate(steps, 1):
            typer.echo(f"{number}/{len(steps)} {what} ... ", nl=False)
            begun = monotonic()
            results = [_dbt(system, [*each, *options], warned) for each in commands]
            typer.echo("; ".join([f"{monotonic() - begun:.0f} s", *filter(None, results)]))
    session = current()
    typer.echo("\nWhat was built:")
    Console().print(_summary(session, demo))
    typer.echo(
        "Open rows are the versions that are valid now. <table>_current also has deleted rows"
    )
    typer.echo("where the setting `keep_deleted` says so.")
    _show_rejected(session, demo, warned)
    for story in demo.stories:
        typer.echo(f"\n{story.title}")
        Console().print(_grid(session.sql(story.query)))
    typer.echo("\nThe log of all dbt commands is in logs/dbt.log.")
    typer.echo("What to try next:")
    for what, command in _next_steps(session, demo, system, options, docs):
        typer.echo(f"  {what}:\n    {command}")


def _next_steps(
    session: SparkSession, demo: DemoSystem, system: str, options: list[str], docs: bool
) -> Iterator[tuple[str, str]]:
    """What a user may do now, each with its command."""
    environment = "scripts/with_env.sh"
    chosen = "".join(f" {option}" for option in options)
    # the catalog of the target `iceberg`, which is a file
    if "sqlite" in str(session.conf.get("spark.sql.catalog.lake.uri", "")):
        yield (
            "See one row's versions, without Spark (PyIceberg and DuckDB read the same tables)",
            f'{environment} afterimage query "{demo.query}"',
        )
    if docs:
        yield (
            "Walk the lineage from raw table to mart, in a browser",
            f"{environment} dbt docs serve{chosen}",
        )
    yield (
        "See the health of the pipeline: writes target/afterimage_report.html",
        f"{DEMOS}={system} {environment} afterimage report{chosen}",
    )
    yield (
        "Run dbt on the demo",
        f"{DEMOS}={system} {environment} dbt build{chosen}",
    )
    yield ("Add your own change table", "docs/add_table.md")


def _operation(operation: Operation) -> list[str]:
    name, arguments = operation
    return ["run-operation", name, "--args", json.dumps(arguments)]


def _dbt(system: str, arguments: list[str], warned: list[str]) -> str:
    """Run a dbt command; return a summary of its results, empty except for a build.

    Args:
        system: whose demo.
        arguments: of dbt.
        warned: gains the names of tests that warned.

    Raises:
        DemoFailedError: the command failed; dbt has said why.
    """
    from dbt.cli.main import dbtRunner

    result: Any = dbtRunner().invoke(["--quiet", *arguments])
    if not result.success:
        command = f"{DEMOS}={system} {shlex.join(['dbt', *arguments])}"
        raise DemoFailedError(
            f"`{command}` failed; dbt's lines above say why, and logs/dbt.log and "
            "logs/spark.log say more."
        )
    if arguments[0] != "build":
        return ""
    nodes = [each for each in result.result.results if each.node.resource_type != "operation"]
    statuses = Counter(str(each.status) for each in nodes)
    warned += [each.node.name for each in nodes if str(each.status) == "warn"]
    tests = f", {statuses['pass']} tests passed" if statuses["pass"] else ""
    return f"{statuses['success']} models built{tests}"


def _show_rejected(session: SparkSession, demo: DemoSystem, warned: list[str]) -> None:
    """What was rejected, by reason, and the tests that warn of it."""
    found: Counter[tuple[str, str]] = Counter()
    for table in demo.tables:
        reasons = session.table(f"afterimage.{table}_changes_rejected").groupBy("reject_reason")
        found.update({(row[0], table): row[1] for row in reasons.count().collect()})
    if not found:
        return
    typer.echo(
        f"\n{found.total()} records were rejected on purpose: the demo's source sends what real "
        "sources send."
    )
    for (reason, table), count in sorted(found.items()):
        typer.echo(f"  {count:>3}  {reason}, in {table}")
    if warned:
        typer.echo(f"  {len(warned)} data tests warn of them, as they should.")


def _grid(rows: DataFrame) -> Grid:
    grid = Grid(box=None, pad_edge=False)
    for name in rows.columns:
        grid.add_column(name)
    for row in rows.collect():
        grid.add_row(*("" if value is None else str(value) for value in row))
    return grid


def _summary(session: SparkSession, demo: DemoSystem) -> Grid:
    grid = Grid(box=None, pad_edge=False)
    for heading in ("table", "changes", "versions", "open rows", "field changes", "rejected"):
        grid.add_column(heading, justify="left" if heading == "table" else "right")
    for table in demo.tables:
        counts = [
            _count(session, f"{table}_changes"),
            _count(session, f"{table}_history"),
            # not of current, which may keep deleted rows too
            _count(session, f"{table}_history", "is_current"),
            _count(session, f"{table}_field_changes"),
            _count(session, f"{table}_changes_rejected"),
        ]
        grid.add_row(table, *[f"{count:,}" for count in counts])
    return grid


def _count(session: SparkSession, table: str, condition: str = "true") -> int:
    return session.table(f"afterimage.{table}").filter(condition).count()
