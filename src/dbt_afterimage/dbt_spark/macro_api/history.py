"""The history step of `scd2_history`."""

from __future__ import annotations

from typing import Any

from dbt_afterimage.dbt_spark.macro_api.registry import dbt_errors, macro_method
from dbt_afterimage.dbt_spark.macro_api.tables import table_format
from dbt_afterimage.errors import AfterimageError
from dbt_afterimage.spark.session import current


@macro_method()
def whole_history(adapter: Any, log: Any, table: dict[str, Any]) -> dict[str, Any]:
    """The rows of a history that is created or replaced, and what they apply.

    Args:
        table: arguments of `history.table.history_table`, without those that come from the log.

    Raises:
        DbtRuntimeError: the table cannot have a history.
    """
    from dbt_afterimage.history import run
    from dbt_afterimage.history.table import history_table

    with dbt_errors(AfterimageError):
        changes = current().table(str(log))
        model = history_table(log=str(log), log_columns=changes.columns, **table)
        return _as_batch(run.whole_history(changes, model))


@macro_method()
def history_batch(
    adapter: Any,
    relation: Any,
    log: Any,
    table: dict[str, Any],
    applied: dict[str, Any],
    published: dict[str, Any],
    is_as_published: bool,
    force_full_replay: bool,
) -> dict[str, Any] | None:
    """The new changes of the log as a batch for `publish`; None without any.

    Args:
        table: as in `whole_history`.
        applied: the progress of the history, as `progress_since` gives it.
        published: the progress of the log since, likewise.

    Raises:
        DbtRuntimeError: a change cannot be applied; nothing was written.
    """
    from dbt_afterimage.history import run
    from dbt_afterimage.history.plan import Applied
    from dbt_afterimage.history.table import history_table
    from dbt_afterimage.storage.formats import format_named

    session = current()
    with dbt_errors(AfterimageError):
        changes, history = session.table(str(log)), session.table(str(relation))
        model = history_table(
            log=str(log), log_columns=changes.columns, stored_columns=history.columns, **table
        )
        found = run.next_batch(
            session,
            changes,
            history,
            model,
            Applied.of(applied),
            published["profile"],
            published["batches"],
            is_as_published=is_as_published,
            force_full_replay=force_full_replay,
            reads_arrays_apart=format_named(table_format(adapter)).reads_arrays_by_row,
        )
        return None if found is None else _as_batch(found)


def _as_batch(found: Any) -> dict[str, Any]:
    """A batch for the materialization: the rows as a statement over a view, which it frees."""
    from dbt_afterimage.storage.checkpoint import view_by_name

    view = view_by_name(found.rows, found.checkpoints)
    return {
        "path": found.plan.path,
        "why": found.plan.why,
        "changes": found.changes,
        "applied": {
            "recorded_at": found.applied.recorded_at,
            "change_seq": found.applied.change_seq,
            "changed_at": found.applied.changed_at,
            "path": found.plan.path,
            "unknown_columns": found.applied.unknown_columns,
        },
        "source": f"select * from {view}",
        "identity": list(found.identity),
        "where": found.where,
        "kept": [view],
        "counts": found.counts,
    }
