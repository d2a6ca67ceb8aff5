"""The history step of `scd2_history`, and the same for `live`: what a run would make of it now."""

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


@macro_method()
def live_history(
    adapter: Any,
    context: dict[str, Any],
    staging: str,
    relation: Any,
    version: str | None,
    table: dict[str, Any],
    applied: dict[str, Any],
) -> dict[str, Any]:
    """A view of a history as a run would leave it now, its name and its columns.

    Args:
        context: of the change log, see `RunContext`.
        staging: what the change log reads.
        relation: the history.
        version: its version, of `current_version`.
        table: arguments of `history.table.history_table`, without those that come from the log.
        applied: the progress of the history, as `progress_since` gives it.

    Raises:
        DbtRuntimeError: a run would stop.
    """
    from dbt_afterimage.change_log.deciding.full_load import LoadPositionError
    from dbt_afterimage.change_log.deciding.gaps import GapError
    from dbt_afterimage.change_log.deciding.quarantine import RejectedRecordsError
    from dbt_afterimage.change_log.model import preview_changes
    from dbt_afterimage.change_log.writing.log_schema import data_columns_of_log
    from dbt_afterimage.history.live import live_versions
    from dbt_afterimage.history.plan import Applied
    from dbt_afterimage.history.table import history_table
    from dbt_afterimage.run_context import RunContext
    from dbt_afterimage.storage.checkpoint import unpersist, view_by_name
    from dbt_afterimage.storage.formats import format_named
    from dbt_afterimage.storage.schema_contract import SchemaContractError

    session = current()
    run = RunContext(**context, is_preview=True)
    of_runs = (GapError, LoadPositionError, RejectedRecordsError, SchemaContractError)
    with dbt_errors(AfterimageError, *of_runs):
        # another run may publish before the view is read
        pinned = f" version as of {version}" if version is not None else ""
        history = session.sql(f"select * from {relation}{pinned}")
        preview = preview_changes(session, run, session.table(staging))
        model = history_table(
            log=run.log,
            log_columns=preview.log.columns,
            stored_columns=history.columns,
            **{**table, "data_columns": data_columns_of_log(preview.log.columns, run.settings)},
        )
        rows, checkpoints = live_versions(
            session,
            preview.log,
            history,
            model,
            Applied.of(applied),
            preview.undecided,
            reads_arrays_apart=format_named(table_format(adapter)).reads_arrays_by_row,
        )
        unpersist(preview.kept)
        return {"view": view_by_name(rows, checkpoints), "columns": rows.columns}


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
