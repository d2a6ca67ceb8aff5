"""Columns of staged records and of rows of a change log."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from dbt_afterimage.sequence import ChangeSequence
from dbt_afterimage.spark.identifiers import quoted


def column_named(column: str) -> Column:
    """A data column, which may have any name."""
    return F.col(quoted(column))


def is_position(sequence: ChangeSequence) -> Column:
    """True for a change_seq that can be compared: neither NULL nor malformed."""
    seq = F.col("change_seq")
    if sequence.is_made_by_staging:
        return seq.isNotNull()
    return F.coalesce(seq.rlike(sequence.valid_pattern()), F.lit(False))
