"""`afterimage publish`: runs `dbt run-operation publish_tables`, which moves tags.

macros/operations/publish_tables.sql chooses the tables; storage/published.py publishes them.
"""

from __future__ import annotations

from typing import Annotated

import typer

from dbt_afterimage.cli.frame import TargetOption, command
from dbt_afterimage.cli.support.run_dbt import run_operation


@command("publish", example="AFTERIMAGE_RUN=2026-03-04 afterimage publish")
def publish(
    accept: Annotated[
        bool, typer.Option("--accept", help="Publish although models or tests have failed.")
    ] = False,
    target: TargetOption = None,
) -> None:
    """Publish the tables of a run that is more than one dbt command, or that was held back.

    The environment variable AFTERIMAGE_RUN names the run. Without it, --accept publishes all tables
    of the project as they are.
    """
    run_operation("publish_tables", {"accept": accept}, target)
