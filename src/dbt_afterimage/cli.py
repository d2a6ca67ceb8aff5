"""The command line `afterimage`: runs demos, and lands raw tables of systems that need it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    help="History, current state and field changes from the change tables of replication tools.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


land = typer.Typer(help="Land raw tables that nothing else lands.", no_args_is_help=True)
app.add_typer(land, name="land")


@app.command()
def demo(
    system: Annotated[str, typer.Option(help="Source system: whose demo.")] = "qlik",
    scale: Annotated[int, typer.Option(help="Size of the data; 1 has about 2,500 changes.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the generator.")] = 7,
    target: Annotated[str | None, typer.Option(help="Target in profiles.yml.")] = None,
    docs: Annotated[bool, typer.Option(help="Build the dbt docs as well.")] = True,
) -> None:
    """Land the demo's raw change tables in two batches, build after each, show the result."""
    from dbt_afterimage.demo.run import DemoFailedError, run_demo

    try:
        run_demo(system=system, scale=scale, seed=seed, target=target, docs=docs)
    except (DemoFailedError, ValueError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error


@land.command("openedge")
def land_openedge(
    source: Annotated[str, typer.Argument(help="dbt source that declares the tables.")],
    url: Annotated[str, typer.Option(help="JDBC address of the database.")],
    jar: Annotated[Path, typer.Option(help="The driver's jar.", exists=True, dir_okay=False)],
    driver: Annotated[
        str, typer.Option(help="The driver's class.")
    ] = "com.ddtek.jdbc.openedge.OpenEdgeDriver",
    owner: Annotated[str, typer.Option(help="Schema of the tables in the database.")] = "PUB",
    user: Annotated[str | None, typer.Option(help="User of the database.")] = None,
    init: Annotated[
        str, typer.Option(help="Statement that each connection runs first.")
    ] = "set transaction isolation level read committed",
    target: Annotated[str | None, typer.Option(help="Target in profiles.yml.")] = None,
) -> None:
    """Extract the tracking and change tables of an OpenEdge database: what is new, names kept.

    The password is read from the environment variable AFTERIMAGE_JDBC_PASSWORD.
    """
    from dbt.cli.main import dbtRunner

    # Spark takes it when it starts; a jar that is added later is not seen by every thread.
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {jar.resolve()} pyspark-shell"
    options = {"url": url, "driver": driver, "sessionInitStatement": init}
    given = {k: v for k, v in {**options, "user": user}.items() if v}
    arguments = json.dumps({"source_name": source, "options": given, "owner": owner})
    chosen = ["--target", target] if target else []
    result = dbtRunner().invoke(["run-operation", "land_openedge", "--args", arguments, *chosen])
    if not result.success:
        raise typer.Exit(1)


def main(arguments: list[str] | None = None) -> Any:
    """Entry point for `python -m dbt_afterimage.cli`."""
    return app(arguments if arguments is not None else sys.argv[1:])


if __name__ == "__main__":
    main()
