"""Which batch each model has applied."""

from __future__ import annotations

from typing import Any

from dbt_afterimage.dbt_spark.macro_api.registry import dbt_errors, macro_method


@macro_method(while_parsing={})
def noted_at_start(adapter: Any, progress: Any, models: list[str]) -> dict[str, Any]:
    """The last batch that models had applied when the command began, as text; None where unknown.

    Args:
        adapter: dbt's adapter.
        progress: the table of progress.
        models: their names there.
    """
    from pyspark.sql import SparkSession

    from dbt_afterimage.storage.progress_cache import noted_at_start as noted_when_started

    session = SparkSession.builder.getOrCreate()
    with dbt_errors():
        found = {name: noted_when_started(session, str(progress), name) for name in models}
    return {name: {"recorded_at": noted and noted.recorded_at} for name, noted in found.items()}


@macro_method()
def forget_noted(adapter: Any, model: str) -> None:
    """Say that something was noted of a model: `noted_at_start` knows it no more."""
    from dbt_afterimage.storage.progress_cache import forget_noted as forget

    forget(model)


@macro_method()
def forget_progress(adapter: Any, progress: Any, models: list[str]) -> None:
    """Remove all that is noted of models: whatever they make begins anew.

    Args:
        adapter: dbt's adapter.
        progress: the table of progress.
        models: their names there.
    """
    from pyspark.sql import SparkSession

    from dbt_afterimage.storage.progress import forget_progress as forget

    session = SparkSession.builder.getOrCreate()
    with dbt_errors():
        for model in models:
            forget(session, str(progress), model)
