"""Appends a batch to a table once, although another run may append it at the same moment.

Plain appends never conflict: two runs that found the same new changes would both add them. Here
the table format itself refuses the second one.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from dbt_afterimage.errors import conflicts_explained
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.storage.formats import format_named


def append_once(
    session: SparkSession,
    table: str,
    rows: DataFrame,
    table_format: str,
    after: str | None,
    batch_column: str = "recorded_at",
    *,
    gather: bool = True,
    base_version: str | None = None,
) -> None:
    """Append a batch, unless another batch was recorded meanwhile; one commit, or none.

    Args:
        table: name of an existing table with a column ``batch_column``.
        rows: its columns, in any order; ``batch_column`` of each is greater than ``after``.
        after: the greatest ``batch_column`` of the table when ``rows`` were computed, ISO text in
            UTC; None when it had none.
        batch_column: the column with the time of a batch.
        gather: shuffle the rows of a partition to one task first. Otherwise each task writes its
            own rows, which is faster, but makes a file per task and partition.
        base_version: a version of the table that has no batch after ``after``; None where none is
            known.

    Raises:
        ConcurrentRunError: another run has recorded a batch since. Nothing was written.
    """
    rows = rows.selectExpr(*map(quoted, session.table(table).columns))
    with conflicts_explained(table):
        format_named(table_format).append_once(
            session, table, rows, after, batch_column, gather=gather, base_version=base_version
        )
