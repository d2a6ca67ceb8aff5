"""Functions that macros call on the adapter, by subject."""

from dbt_afterimage.dbt_spark.macro_api import (  # noqa: F401  registers them
    columns,
    cuts,
    erasure,
    history,
    ingest,
    joins,
    live,
    maintenance,
    progress,
    publication,
    settings,
    tables,
)
