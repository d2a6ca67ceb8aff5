"""Which batch each model has applied."""

from __future__ import annotations

from typing import Any

from dbt_afterimage.dbt_spark.macro_api.registry import dbt_errors, macro_method
from dbt_afterimage.spark.session import current


@macro_method(while_parsing={})
def cached_progress(adapter: Any, progress: Any, models: list[str]) -> dict[str, Any]:
    """The last batch that models had applied when the command began, as text; None where unknown.

    Args:
        adapter: dbt's adapter.
        progress: the table of progress.
        models: their names there.
    """
    from dbt_afterimage.storage.progress_cache import cached_progress as read_cached

    session = current()
    with dbt_errors():
        found = {name: read_cached(session, str(progress), name) for name in models}
    return {name: {"recorded_at": each and each.recorded_at} for name, each in found.items()}


@macro_method()
def drop_cached_progress(adapter: Any, model: str) -> None:
    """Drop a model from the progress cache, after its progress was written."""
    from dbt_afterimage.storage.progress_cache import drop_cached_progress as drop

    drop(model)


@macro_method()
def reset_progress(adapter: Any, progress: Any, models: list[str]) -> None:
    """Remove the progress of models, so that their next run rebuilds them.

    Args:
        adapter: dbt's adapter.
        progress: the table of progress.
        models: their names there.
    """
    from dbt_afterimage.storage.progress import reset_progress as reset

    session = current()
    with dbt_errors():
        for model in models:
            reset(session, str(progress), model)
