"""Functions that macros call on the adapter, by subject."""

from dbt_afterimage.dbt_spark.macro_api import (  # noqa: F401  registers them
    columns,
    erasure,
    history,
    ingest,
    joins,
    maintenance,
    progress,
    publication,
    settings,
    tables,
)
