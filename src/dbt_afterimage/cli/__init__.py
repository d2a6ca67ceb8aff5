"""The command line `afterimage`: one module per command, over one frame (`frame.py`).

A new command is a module with a function under `@command`, and a line here that imports it.
"""

from __future__ import annotations

from dbt_afterimage.cli import add_table as _add_table
from dbt_afterimage.cli import compact as _compact
from dbt_afterimage.cli import doctor as _doctor
from dbt_afterimage.cli import erase as _erase
from dbt_afterimage.cli import init as _init
from dbt_afterimage.cli import land as _land
from dbt_afterimage.cli import package_path as _package_path
from dbt_afterimage.cli import query as _query
from dbt_afterimage.cli import rejects as _rejects
from dbt_afterimage.cli import report as _report
from dbt_afterimage.cli import server as _server
from dbt_afterimage.cli import spark_sql as _spark_sql
from dbt_afterimage.cli import status as _status
from dbt_afterimage.cli.frame import app, load_commands_of_other_distributions, main

__all__ = ["app", "main"]

COMMAND_MODULES = (
    _init,
    _package_path,
    _add_table,
    _doctor,
    _land,
    _query,
    _status,
    _report,
    _rejects,
    _compact,
    _erase,
    _spark_sql,
    _server,
)

load_commands_of_other_distributions()
