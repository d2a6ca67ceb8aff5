"""Functions that macros call on the adapter, by subject."""

from dbt_afterimage.dbt_spark.macro_api import (
    columns,
    erasure,
    history,
    ingest,
    joins,
    maintenance,
    progress,
    settings,
    tables,
)

__all__ = [
    "columns",
    "erasure",
    "history",
    "ingest",
    "joins",
    "maintenance",
    "progress",
    "settings",
    "tables",
]
