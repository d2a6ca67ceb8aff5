"""The command line `afterimage`: commands/ over one frame (`frame.py`).

A new command is a module of commands/ with a function under `@command`, and a line here that
imports it.
"""

from __future__ import annotations

from dbt_afterimage.cli.commands import add_table as _add_table
from dbt_afterimage.cli.commands import compact as _compact
from dbt_afterimage.cli.commands import doctor as _doctor
from dbt_afterimage.cli.commands import erase as _erase
from dbt_afterimage.cli.commands import init as _init
from dbt_afterimage.cli.commands import land as _land
from dbt_afterimage.cli.commands import package_path as _package_path
from dbt_afterimage.cli.commands import publish as _publish
from dbt_afterimage.cli.commands import query as _query
from dbt_afterimage.cli.commands import rejects as _rejects
from dbt_afterimage.cli.commands import report as _report
from dbt_afterimage.cli.commands import server as _server
from dbt_afterimage.cli.commands import spark_sql as _spark_sql
from dbt_afterimage.cli.commands import status as _status
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
    _publish,
    _compact,
    _erase,
    _spark_sql,
    _server,
)

load_commands_of_other_distributions()
