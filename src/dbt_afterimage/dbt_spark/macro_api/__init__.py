"""What macros call on the adapter, by subject."""

from dbt_afterimage.dbt_spark.macro_api import (
    columns,
    history,
    ingest,
    maintenance,
    progress,
    settings,
    tables,
)

__all__ = ["columns", "history", "ingest", "maintenance", "progress", "settings", "tables"]
