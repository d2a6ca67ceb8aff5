"""The command line `afterimage`: commands/ over one frame (`frame.py`).

A new command is a module of commands/ with a function under `@command`, and a name in the import
here, by which it registers.
"""

from __future__ import annotations

from dbt_afterimage.cli.commands import (  # noqa: F401  registers them
    add_table,
    compact,
    doctor,
    erase,
    init,
    land,
    package_path,
    publish,
    query,
    rejects,
    report,
    server,
    spark_sql,
    status,
)
from dbt_afterimage.cli.frame import app, load_commands_of_other_distributions, main

__all__ = ["app", "main"]

load_commands_of_other_distributions()
