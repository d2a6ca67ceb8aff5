"""The demo from end to end: land, build, land, build, docs; one process, so Spark starts once."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table as Grid

from afterimage_demo.systems import DemoSystem, demo_system
from afterimage_demo.transport import Operation
from dbt_afterimage.spark.session import current, environment_variable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    with environment_variable(DEMOS, system), demo.transport.running() as (given, following):
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
        for number, (what, commands) in enumerate(steps, 1):
            typer.echo(f"\n=== {number}/{len(steps)} {what}")
            for arguments in commands:
                _dbt(system, [*arguments, *options])
    session = current()
    typer.echo("\n=== What was built")
    Console().print(_summary(session, demo))
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
        "Run dbt on the demo",
        f"{DEMOS}={system} {environment} dbt build{chosen}",
    )
    yield ("Add your own change table", 'README.md, "Add your own table"')


def _operation(operation: Operation) -> list[str]:
    name, arguments = operation
    return ["run-operation", name, "--args", json.dumps(arguments)]


def _dbt(system: str, arguments: list[str]) -> None:
    """Run a dbt command, and print it so that it can be run again."""
    from dbt.cli.main import dbtRunner

    command = f"{DEMOS}={system} {shlex.join(['dbt', *arguments])}"
    typer.echo(command)
    result: Any = dbtRunner().invoke(arguments)
    if not result.success:
        raise DemoFailedError(
            f"`{command}` failed; dbt's lines above say why, and logs/dbt.log and "
            "logs/spark.log say more."
        )


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
