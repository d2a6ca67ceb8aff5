"""The command `afterimage demo`."""

from __future__ import annotations

from typing import Annotated

import typer

from dbt_afterimage.cli.frame import command


@command("demo", example="afterimage demo --system openedge")
def demo(
    system: Annotated[str, typer.Option(help="Source system: whose demo.")] = "qlik",
    scale: Annotated[int, typer.Option(help="Size of the data; 1 has about 2,500 changes.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the generator.")] = 7,
    target: Annotated[str | None, typer.Option(help="Target in profiles.yml.")] = None,
    docs: Annotated[bool, typer.Option(help="Build the dbt docs as well.")] = True,
) -> None:
    """Land the demo's raw change tables in two batches, build after each, show the result."""
    from afterimage_demo.broker import BrokerError
    from afterimage_demo.connect import ConnectorError
    from afterimage_demo.mariadb.server import MariaDbError
    from afterimage_demo.postgres.server import PostgresError
    from afterimage_demo.run import DemoFailedError, run_demo
    from dbt_afterimage.dbt_spark.jars import JarsError

    try:
        run_demo(system=system, scale=scale, seed=seed, target=target, docs=docs)
    except (
        DemoFailedError,
        BrokerError,
        ConnectorError,
        MariaDbError,
        PostgresError,
        JarsError,
        ValueError,
    ) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error
