"""Appends batches to logs: change logs, rejected records, decoded logs; and records progress.

Each is one commit and is safe to repeat: a run that is killed between them finds on the next run
what it has already recorded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession

from dbt_afterimage.errors import ConcurrentRunError, conflicts_explained
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.storage.append import append_once
from dbt_afterimage.storage.create import table_writer
from dbt_afterimage.storage.descriptions import describe_columns
from dbt_afterimage.storage.formats import format_named
from dbt_afterimage.storage.progress import (
    Progress,
    reset_progress_after,
    spark_text,
    write_progress,
)
from dbt_afterimage.storage.progress_cache import batch_json


@dataclass(frozen=True)
class LogRows:
    """The rows of a batch, and the table that they belong to.

    Attributes:
        rows: the rows; None for none.
        empty: no rows, with the table's columns: a missing table is created all the same.
        after: the newest batch that the table had when this one was decided; None for none.
        partition_by: columns that the table is partitioned by.
        properties: table properties of a new table.
        gather: shuffle the rows of a partition to one task first.
        base_version: of `append_once`.
        descriptions: comments of columns of a new table; dbt writes those of its models.
    """

    rows: DataFrame | None
    empty: DataFrame
    after: str | None
    partition_by: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    gather: bool = True
    base_version: str | None = None
    descriptions: Mapping[str, str] = field(default_factory=dict)


def append_rows(session: SparkSession, table: str, table_format: str, batch: LogRows) -> bool:
    """Append a batch in one commit, or none without rows; whether there were any.

    Raises:
        ConcurrentRunError: another run has recorded a batch since this one was decided.
    """
    if not session.catalog.tableExists(table):
        first = batch.empty if batch.rows is None else batch.rows
        with conflicts_explained(table):
            described = describe_columns(first, batch.descriptions)
            _writer(described, table, table_format, batch).create()
        return batch.rows is not None
    if batch.rows is None:
        return False
    append_once(
        session,
        table,
        batch.rows,
        table_format,
        batch.after,
        gather=batch.gather,
        base_version=batch.base_version,
    )
    return True


def write_log(
    session: SparkSession,
    context: RunContext,
    batch: LogRows,
    progress: Progress | None,
    *,
    is_rebuild: bool,
    only_with_rows: bool = False,
    profile: str | None = None,
) -> bool:
    """Append a batch to a log, or replace the log, then add the progress row.

    Args:
        progress: what the log has read then; None where nothing is new.
        is_rebuild: the rows replace those of the log.
        only_with_rows: progress is recorded only if there are rows.
        profile: what the rows hold, as `log_rows.profile` says; None where it is not known.

    Returns:
        Whether rows were written.

    Raises:
        ConcurrentRunError: another run has recorded a batch since this one was decided.
    """
    log, others_wrote = context.log, False
    if is_rebuild:
        rows = batch.empty if batch.rows is None else batch.rows
        with conflicts_explained(log):
            _writer(rows, log, context.file_format, batch).createOrReplace()
        # what another run has recorded meanwhile is not in the log any more
        others_wrote = reset_progress_after(session, context.progress, context.model, batch.after)
        wrote = True
    else:
        wrote = append_rows(session, log, context.file_format, batch)
    if progress is not None and (wrote or not only_with_rows):
        # after a rebuild, marts look at the log
        is_batch = wrote and not is_rebuild
        description = batch_json(spark_text(batch.after), profile) if is_batch else None
        version = format_named(context.file_format).version(session, log)
        progress = replace(progress, table_version=version)
        write_progress(session, context.progress, context.model, progress, batch=description)
    if others_wrote:
        raise ConcurrentRunError.while_replaced(log)
    return wrote


def _writer(rows: DataFrame, table: str, table_format: str, batch: LogRows) -> DataFrameWriterV2:
    return table_writer(rows, table, table_format, batch.partition_by, batch.properties)
