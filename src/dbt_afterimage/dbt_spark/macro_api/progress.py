"""Which batch each model has applied, and up to when logs are complete, for cuts."""

from __future__ import annotations

from typing import Any

from dbt.adapters.events.logging import AdapterLogger

from dbt_afterimage.dbt_spark.macro_api.registry import dbt_errors, macro_function, macro_method
from dbt_afterimage.dbt_spark.macro_api.tables import table_format
from dbt_afterimage.settings import positions
from dbt_afterimage.spark.literals import is_of_batches, timestamp_as_text
from dbt_afterimage.spark.session import current

logger = AdapterLogger("afterimage")

macro_function(is_of_batches, while_parsing="")
macro_function(timestamp_as_text)


@macro_method(while_parsing={})
def progress_since(adapter: Any, progress: Any, reader: str, models: list[str]) -> dict[str, Any]:
    """The progress of models since the last batch of a reader, as `progress_cache.ProgressSince`.

    `profile` is that of all batches since, as `BatchProfile`; none where one is not known.
    """
    from dbt_afterimage.log_rows.profile import BatchProfile, merged
    from dbt_afterimage.storage import progress_cache

    with dbt_errors():
        found = progress_cache.progress_since(current(), str(progress), reader, models)
    since = {}
    for name, each in found.items():
        stored = [BatchProfile.from_json(profile) for profile in each.profiles or ()]
        profiles = [profile for profile in stored if profile is not None]
        is_known = profiles and len(profiles) == len(stored)
        since[name] = {**vars(each), "profile": merged(profiles) if is_known else None}
    return since


@macro_method()
def write_progress(
    adapter: Any,
    progress: Any,
    relation: Any,
    model: str,
    applied: dict[str, Any],
    after: str | None,
) -> None:
    """Record what has just been published.

    Args:
        applied: `recorded_at`, `change_seq`, `changed_at` and `path`; of a history also
            `unknown_columns`.
        after: the batch that the table had applied before; None where the table is new.
    """
    from dbt_afterimage.storage.formats import format_named
    from dbt_afterimage.storage.progress import Progress
    from dbt_afterimage.storage.progress import write_progress as write
    from dbt_afterimage.storage.progress_cache import batch_json

    moments = (applied["recorded_at"], applied["change_seq"], applied["changed_at"])
    session = current()
    with dbt_errors():
        version = format_named(table_format(adapter)).version(session, str(relation))
        write(
            session,
            str(progress),
            model,
            Progress(*moments, table_version=version),
            path=applied["path"],
            batch=batch_json(after, unknown_columns=applied.get("unknown_columns")),
        )


@macro_method()
def contradicts_progress(
    adapter: Any,
    relation: Any,
    version: str | None,
    applied: dict[str, Any],
    source: Any,
    published: str | None,
) -> bool:
    """Whether a mart is not what its progress says, and has to be rebuilt; a warning says why.

    Args:
        version: its version, of `current_version`.
        applied: its progress, as `progress_since` gives it.
        source: the table whose batches it applies.
        published: the last batch in the progress of that table, or None.
    """
    from dbt_afterimage.storage.contradictions import contradiction_of_mart
    from dbt_afterimage.storage.progress import Progress

    with dbt_errors():
        found = contradiction_of_mart(
            current(),
            str(relation),
            table_format(adapter),
            version,
            Progress(applied["recorded_at"], table_version=applied["table_version"]),
            str(source),
            published,
        )
    if found:
        logger.warning(f"{found}. It is rebuilt from {source}.")
    return bool(found)


@macro_method()
def begin_command(adapter: Any, progress: Any) -> None:
    """Keep what models publish in memory until dbt's command ends."""
    from dbt_afterimage.storage import progress_cache

    progress_cache.begin_command(str(progress), table_format(adapter))


@macro_method()
def write_pending_progress(adapter: Any) -> None:
    """Write what models have published so far, for a statement that reads the progress table."""
    from dbt_afterimage.storage.progress_cache import write_pending

    with dbt_errors():
        write_pending(current())


@macro_method()
def add_progress_column(adapter: Any, progress: Any, column: str, kind: str) -> None:
    """Add a column that a progress table of an earlier version lacks."""
    from dbt_afterimage.storage.progress import add_column

    with dbt_errors():
        add_column(current(), str(progress), column, kind)


@macro_method()
def reset_progress(adapter: Any, progress: Any, models: list[str]) -> None:
    """Remove the progress of models, so that their next run rebuilds them."""
    from dbt_afterimage.storage.progress import reset_progress as reset

    with dbt_errors():
        reset(current(), str(progress), *models)


@macro_method()
def read_up_to(adapter: Any, context: dict[str, Any]) -> str | None:
    """A log has read all that had landed by this time; None if that is not known.

    Args:
        context: what `_log_context` says of the log.
    """
    from dbt_afterimage.change_log.reading import read_times
    from dbt_afterimage.run_context import RunContext

    with dbt_errors():
        return read_times.read_up_to(current(), RunContext(**context))


@macro_method()
def complete_until(adapter: Any, read_at: str, landing_delay: str) -> str:
    """Every change before this time had landed by ``read_at``."""
    from dbt_afterimage.change_log.reading import read_times

    return read_times.complete_until(read_at, landing_delay)


@macro_method()
def first_position(adapter: Any, settings: Any) -> str:
    """The change_seq of a first full load: before every change."""
    return positions(settings).first
