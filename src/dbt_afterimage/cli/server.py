"""`afterimage server`: a Spark Connect server with the settings of a target."""

from __future__ import annotations

from typing import Annotated

import typer

from dbt_afterimage.cli.frame import TargetOption, command
from dbt_afterimage.cli.session import load_profile


@command(
    "server",
    example="afterimage server --port 15002\n"
    "SPARK_REMOTE=sc://localhost:15002 dbt build    # in another terminal",
)
def server(
    port: Annotated[int, typer.Option(help="Port of Spark Connect.")] = 15002,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on. Anyone who reaches it can read and write all tables."
        ),
    ] = "127.0.0.1",
    thrift_port: Annotated[
        int | None,
        typer.Option(help="Also start a Thrift server for BI tools, on this port, such as 10000."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--print", help="Print the command of spark-submit; start nothing.")
    ] = False,
    target: TargetOption = None,
) -> None:
    """Start a Spark Connect server with the settings of the target, until it is interrupted.

    A run on a server that is already warm does not wait for Spark to start. --print shows secrets
    that the profile has.
    """
    from dbt_afterimage.dbt_spark.server import (
        Listen,
        run_server,
        server_settings,
        shown_command,
        target_parameters,
    )

    listen = Listen(host, port, thrift_port)
    settings = server_settings(target_parameters(load_profile(target)), listen)
    if show:
        typer.echo(shown_command(settings, listen))
        return
    typer.echo(f"Spark Connect: sc://{host}:{port}   Stop it with Ctrl+C.", err=True)
    raise typer.Exit(run_server(settings, listen))
