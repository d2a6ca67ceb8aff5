"""Appends a batch to a table once, although another run may be appending it at the same moment.

Plain appends never conflict: of two runs that found the same new changes both would add them. Here
the table format itself refuses the second one. A table is replaced by whoever comes last: before
that, `check_unchanged` looks for what the rows that replace it cannot know.
"""

from __future__ import annotations

from datetime import datetime, timezone
from uuid import uuid4

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.errors import ConcurrentRunError, conflicts_explained
from dbt_afterimage.storage.create import EACH_TASK_WRITES
from dbt_afterimage.storage.schema_contract import quoted
from dbt_afterimage.storage.table_version import current_state


def append_once(
    session: SparkSession,
    table: str,
    rows: DataFrame,
    table_format: str,
    after: str | None,
    mark: str = "recorded_at",
    *,
    gather: bool = True,
) -> None:
    """Append a batch, unless some other batch was recorded meanwhile; one commit, or none.

    Args:
        session: the live Spark session.
        table: name of an existing table with a column ``mark``.
        rows: its columns, in any order; all of one ``mark``, which is greater than ``after``.
        table_format: `iceberg` or `delta`.
        after: the greatest ``mark`` of the table when ``rows`` were worked out, ISO text in
            UTC; None when it had none.
        mark: the column with the time of a batch.
        gather: the rows of a partition are brought to one task first. Otherwise each task writes
            what it has, which is faster, but makes a file per task and partition.

    Raises:
        ConcurrentRunError: another run has recorded a batch since. Nothing was written.
    """
    rows = rows.select(*[quoted(name) for name in session.table(table).columns])
    with conflicts_explained(table):
        if table_format == "iceberg":
            _append_to_iceberg(session, table, rows, after, mark, gather=gather)
        else:
            _append_to_delta(session, table, rows, after, mark)


def check_unchanged(
    session: SparkSession, table: str, after: str | None, mark: str = "recorded_at"
) -> None:
    """Stop where a batch was recorded after the last one that a run knows.

    Args:
        session: the live Spark session.
        table: name of an existing table with a column ``mark``.
        after: the greatest ``mark`` that the run knows, ISO text in UTC; None for none.
        mark: the column with the time of a batch.

    Raises:
        ConcurrentRunError: there is such a batch.
    """
    if session.table(table).filter(_is_newer(after, mark)).limit(1).count():
        raise ConcurrentRunError.of(table)


def _is_newer(after: str | None, mark: str) -> Column:
    recorded = F.col(mark)
    return recorded > F.lit(after).cast("timestamp") if after else recorded.isNotNull()


def _append_to_iceberg(
    session: SparkSession,
    table: str,
    rows: DataFrame,
    after: str | None,
    mark: str,
    *,
    gather: bool,
) -> None:
    # no `refresh table`: Spark would forget all that it cached of the table, the batch too
    snapshot = current_state(session, table, "iceberg")
    writer = rows.writeTo(table)
    if not gather:
        writer = writer.options(**EACH_TASK_WRITES)
    if snapshot is None:
        # nothing to validate from: first a commit of no rows, which any number of runs may make
        rows.limit(0).writeTo(table).append()
        snapshot = current_state(session, table, "iceberg")
    check_unchanged(session, table, after, mark)
    # An overwrite of what another run might have recorded: Iceberg refuses it when there is such.
    (
        writer.option("isolation-level", "serializable")
        .option("validate-from-snapshot-id", snapshot)
        .overwrite(_is_newer(after, mark))
    )


def _append_to_delta(
    session: SparkSession, table: str, rows: DataFrame, after: str | None, mark: str
) -> None:
    # a table that was made anew meanwhile knows nothing of the transaction
    check_unchanged(session, table, after, mark)
    number = _microseconds(after)
    if _is_committed(session, table, rows, f"afterimage {table}", number):
        return
    # Either another run has recorded the batch, or it was and its rows were taken back since, by
    # `restore table` for example: Delta remembers the transaction all the same.
    state = current_state(session, table, "delta")
    check_unchanged(session, table, after, mark)
    if not _is_committed(session, table, rows, f"afterimage {table} after version {state}", number):
        raise ConcurrentRunError.of(table)


def _is_committed(
    session: SparkSession, table: str, rows: DataFrame, transaction: str, number: int
) -> bool:
    """Append rows, unless the transaction of that number was committed before."""
    # Delta skips a second one without a word, so the commit gets a name to look for.
    name = f"afterimage {uuid4()}"
    (
        rows.write.format("delta")
        .mode("append")
        .option("txnAppId", transaction)
        .option("txnVersion", str(number))
        .option("userMetadata", name)
        .saveAsTable(table)
    )
    commits = session.sql(f"describe history {table} limit 50")
    return commits.filter(F.col("userMetadata") == name).count() > 0


def _microseconds(after: str | None) -> int:
    if after is None:
        return 0
    # Spark leaves out zeros at the end of a fraction, which Python 3.10 wants to have
    whole, _, fraction = after.partition(".")
    moment = datetime.fromisoformat(f"{whole}.{fraction:0<6}").replace(tzinfo=timezone.utc)
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond
