"""`afterimage compact`: runs `dbt run-operation compact`, which makes fewer and larger files.

macros/operations/compact.sql chooses the tables; storage/compaction.py and storage/formats/ do it.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dbt_afterimage.cli.frame import TargetOption, command
from dbt_afterimage.cli.support.run_dbt import run_operation


@command("compact", example="afterimage compact --model orders_history --keep-days 7")
def compact(
    model: Annotated[
        list[str] | None,
        typer.Option(help="A model to compact; may be given several times. By default all."),
    ] = None,
    keep_days: Annotated[
        int, typer.Option(help="Days for which old states of a table stay readable.", min=0)
    ] = 7,
    max_files: Annotated[
        int, typer.Option(help="Data files of a table that one call rewrites.", min=1)
    ] = 1000,
    target: TargetOption = None,
) -> None:
    """Merge small files and drop old states of the tables that afterimage writes.

    The work of one call is bounded; the next call continues. Do not run it while a dbt run writes
    to the same tables.
    """
    arguments: dict[str, Any] = {"keep_days": keep_days, "max_files": max_files}
    if model:
        arguments["models"] = model
    run_operation("compact", arguments, target)
