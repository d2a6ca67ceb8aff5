"""Table formats: everything that differs between Iceberg and Delta, and nothing else."""

from __future__ import annotations

from dbt_afterimage.storage.formats.base import TableFormat
from dbt_afterimage.storage.formats.delta import Delta
from dbt_afterimage.storage.formats.iceberg import Iceberg

_FORMATS: dict[str, TableFormat] = {each.name: each for each in (Iceberg(), Delta())}


def format_named(name: str) -> TableFormat:
    """The table format of a name: `iceberg` or `delta`."""
    return _FORMATS[name]
