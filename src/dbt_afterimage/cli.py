"""The command line `afterimage`: runs the demo from raw change tables to marts and docs."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

app = typer.Typer(
    help="History, current state and field changes from the change tables of replication tools.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _main() -> None:
    """Keeps `demo` a subcommand while it is the only one."""


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


def main(arguments: list[str] | None = None) -> Any:
    """Entry point for `python -m dbt_afterimage.cli`."""
    return app(arguments if arguments is not None else sys.argv[1:])


if __name__ == "__main__":
    main()
