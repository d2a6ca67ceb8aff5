"""Writes a change batch: rejected records, then the log, then the progress row.

Each is one commit and is safe to repeat: a run that is killed between two of them finds on the next
run what it has already recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.changes.batch import ChangeBatch
from dbt_afterimage.changes.log_table import fitted, log_origin
from dbt_afterimage.changes.progress import Progress, write_progress

logger = AdapterLogger("afterimage")


def write_batch(session: SparkSession, context: dict[str, Any], batch: ChangeBatch) -> None:
    """Append a batch to the log and to the rejected table.

    Args:
        session: the live Spark session.
        context: names of the tables, table format and model, as the materialization gives them.
        batch: what to write.
    """
    table_format, log = context["file_format"], context["log"]
    _append(session, context["rejected"], batch.rejected, batch.empty_rejected, table_format)
    accepted = batch.accepted
    if accepted is not None and session.catalog.tableExists(log):
        accepted = fitted(accepted, session.table(log).schema)
    wrote = _append(
        session,
        log,
        accepted,
        batch.empty_log,
        table_format,
        partition="change_date",
        properties=log_origin(context).properties(),
    )
    if wrote or batch.is_progress_behind:
        progress = Progress(batch.recorded_at, batch.change_seq, batch.changed_at)
        write_progress(session, context["progress"], context["model"], progress)
    if wrote or batch.rejected is not None:
        logger.info(f"{context['model']}: {batch.counts}")
    if batch.cached is not None:
        batch.cached.unpersist()


def _append(
    session: SparkSession,
    table: str,
    rows: DataFrame | None,
    empty: DataFrame,
    table_format: str,
    partition: str | None = None,
    properties: Mapping[str, str] = MappingProxyType({}),
) -> bool:
    """One commit, or none when there is nothing to write. A missing table is created."""
    if not session.catalog.tableExists(table):
        writer = (rows if rows is not None else empty).writeTo(table).using(table_format)
        for name, value in properties.items():
            writer = writer.tableProperty(name, value)
        if partition:
            writer = writer.partitionedBy(F.col(partition))
        writer.create()
        return rows is not None
    if rows is None:
        return False
    # `by name`, so that a column that staging gained in the middle lands in its own place
    view = f"afterimage_append_{table.replace('.', '_').replace('`', '')}"
    rows.createOrReplaceTempView(view)
    session.sql(f"insert into {table} by name select * from {view}")
    session.catalog.dropTempView(view)
    return True
