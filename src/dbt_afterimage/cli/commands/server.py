"""`afterimage server`: a Spark Connect server with the settings of a target."""

from __future__ import annotations

from typing import Annotated

import typer

from dbt_afterimage.cli.frame import TargetOption, command
from dbt_afterimage.cli.support.project_session import load_profile


@command(
    "server",
    example="afterimage server --port 15002\n"
    "export SPARK_REMOTE='sc://localhost:15002/;token=...'    # as it prints it, elsewhere\n"
    "dbt build",
)
def server(
    port: Annotated[int, typer.Option(help="Port of Spark Connect.")] = 15002,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on; another one than of this machine itself needs "
            "--behind-tls-proxy."
        ),
    ] = "127.0.0.1",
    behind_tls_proxy: Annotated[
        bool,
        typer.Option(
            "--behind-tls-proxy",
            help="Other machines reach the server through a proxy with TLS only.",
        ),
    ] = False,
    thrift_port: Annotated[
        int | None,
        typer.Option(
            help="Also start a Thrift server for BI tools, on this port, such as 10000. Unless the "
            "target sets a login, every user of this machine runs code as you through it."
        ),
    ] = None,
    show: Annotated[
        bool, typer.Option("--print", help="Print the command of spark-submit; start nothing.")
    ] = False,
    target: TargetOption = None,
) -> None:
    """Start a Spark Connect server with the settings of the target, until it is interrupted.

    A run on a server that is already warm does not wait for Spark to start. A client runs code as
    the user of the server. It needs a token: by default each start makes one and prints it; set
    SPARK_CONNECT_AUTHENTICATE_TOKEN for both to choose it. --print shows the token and the
    profile's secrets.
    """
    from dbt_afterimage.dbt_spark.connect_server import (
        Listen,
        client_line,
        run_server,
        server_settings,
        shown_command,
        target_parameters,
    )

    listen = Listen(host, port, thrift_port, behind_tls_proxy)
    settings = server_settings(target_parameters(load_profile(target)), listen)
    if show:
        typer.echo(shown_command(settings, listen))
        return
    typer.echo(f"Spark Connect on {host}:{port}. Stop it with Ctrl+C.", err=True)
    typer.echo(f"For clients: {client_line(settings, listen)}", err=True)
    raise typer.Exit(run_server(settings, listen))
