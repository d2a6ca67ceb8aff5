"""The optimistic concurrency check: no run overwrites what another run has recorded meanwhile."""

from __future__ import annotations

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.errors import ConcurrentRunError


def check_unchanged(
    session: SparkSession, table: str, after: str | None, batch_column: str = "recorded_at"
) -> None:
    """Stop where a batch was recorded after the last one that a run knows.

    Args:
        table: name of an existing table with a column ``batch_column``.
        after: the greatest ``batch_column`` that the run knows, ISO text in UTC; None for none.
        batch_column: the column with the time of a batch.

    Raises:
        ConcurrentRunError: there is such a batch.
    """
    if session.table(table).filter(is_newer(after, batch_column)).limit(1).count():
        raise ConcurrentRunError.of(table)


def is_newer(after: str | None, batch_column: str) -> Column:
    """Condition: recorded in a batch after this one; in any batch where it is None."""
    recorded = F.col(batch_column)
    return recorded > F.lit(after).cast("timestamp") if after else recorded.isNotNull()
