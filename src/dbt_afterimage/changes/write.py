"""Writes a change batch: rejected records, then the log, then the progress row.

Each is one commit and is safe to repeat: a run that is killed between two of them finds on the next
run what it has already recorded.
"""

from __future__ import annotations

from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.changes.batch import ChangeBatch
from dbt_afterimage.changes.progress import Progress, write_progress

logger = AdapterLogger("afterimage")


class ChangedTypeError(RuntimeError):
    """A column of a table has another type than the batch that is to be appended."""


def write_batch(session: SparkSession, context: dict[str, Any], batch: ChangeBatch) -> None:
    """Append a batch to the log and to the rejected table.

    Args:
        session: the live Spark session.
        context: names of the tables, table format and model, as the materialization gives them.
        batch: what to write.
    """
    table_format = context["file_format"]
    _append(session, context["rejected"], batch.rejected, batch.empty_rejected, table_format, None)
    wrote = _append(
        session, context["log"], batch.accepted, batch.empty_log, table_format, "change_date"
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
    partition: str | None,
) -> bool:
    """One commit, or none when there is nothing to write. A missing table is created."""
    if not session.catalog.tableExists(table):
        writer = (rows if rows is not None else empty).writeTo(table).using(table_format)
        if partition:
            writer = writer.partitionedBy(F.col(partition))
        writer.create()
        return rows is not None
    if rows is None:
        return False
    _fit_columns(session, table, rows)
    # `by name`, so that a column that staging gained in the middle lands in its own place
    view = f"afterimage_append_{table.replace('.', '_').replace('`', '')}"
    rows.createOrReplaceTempView(view)
    session.sql(f"insert into {table} by name select * from {view}")
    session.catalog.dropTempView(view)
    return True


def _fit_columns(session: SparkSession, table: str, rows: DataFrame) -> None:
    """Add the columns that the table lacks; a changed type stops the run before it writes."""
    old = {field.name: field.dataType for field in session.table(table).schema.fields}
    new = {field.name: field.dataType for field in rows.schema.fields}
    for name, kind in new.items():
        if name != "before" and name in old and old[name] != kind:
            raise ChangedTypeError(
                f"{table}: the column `{name}` is {old[name].simpleString()} in the change log and "
                f"{kind.simpleString()} in staging. Nothing was written. Cure: give the column its "
                "old type in the source's `columns`."
            )
    added = [name for name in new if name not in old]
    if added:
        columns = [f"`{name}` {new[name].simpleString()}" for name in added]
        columns += [f"before.`{name}` {new[name].simpleString()}" for name in added]
        session.sql(f"alter table {table} add columns ({', '.join(columns)})")
