"""The macro `live`: what a run would make of the raw table now."""

from __future__ import annotations

from typing import Any

from dbt_afterimage.dbt_spark.macro_api.registry import dbt_errors, macro_method
from dbt_afterimage.dbt_spark.macro_api.tables import table_format
from dbt_afterimage.errors import AfterimageError
from dbt_afterimage.spark.session import current


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
