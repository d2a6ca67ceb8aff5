"""The open versions that a batch continues."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructType

from dbt_afterimage.history.affected_keys import FEW_KEYS, changes_by_key
from dbt_afterimage.history.sql import columns, equal
from dbt_afterimage.history.table import HistoryTable
from dbt_afterimage.log_rows.profile import BatchProfile

_ARRAYS = ("changed_columns", "unknown_columns")
_FEW_NAMES = 5_000_000
"""Broadcast limit: up to this many column names in these arrays are broadcast, about 80 MB."""


def open_versions(history: DataFrame, unknown_columns: tuple[str, ...] | None) -> DataFrame:
    """The open versions; `unknown_columns` is not read if it is NULL in all of them.

    Args:
        unknown_columns: columns that some open version does not know; None if not recorded.
    """
    opened = history.where("is_current")
    if unknown_columns == ():
        opened = opened.withColumn("unknown_columns", F.expr("cast(null as array<string>)"))
    return opened


def prior_versions(
    batch: DataFrame,
    opened: DataFrame,
    table: HistoryTable,
    profile: BatchProfile,
    unknown_columns: tuple[str, ...],
    *,
    reads_arrays_apart: bool,
) -> DataFrame:
    """The open versions that a batch continues.

    Args:
        unknown_columns: columns that some open version does not know.
        reads_arrays_apart: see `open_versions_of`; done only where the arrays are few.
    """
    if profile.truncates or profile.loads:
        return opened
    named = changes_by_key(batch, table, has_key_changes=profile.key_changes > 0)
    keys = named.select(*columns(table.key))
    # a key change names two
    count = profile.changes + profile.key_changes
    are_few = reads_apart(count, len(table.tracked) + len(unknown_columns))
    return open_versions_of(keys, opened, table, reads_arrays_apart=reads_arrays_apart and are_few)


def reads_apart(keys: int, names: int) -> bool:
    """Whether the arrays of ``keys`` keys, with ``names`` names in each, fit in memory."""
    return keys <= FEW_KEYS and keys * names <= _FEW_NAMES


def open_versions_of(
    keys: DataFrame, opened: DataFrame, table: HistoryTable, *, reads_arrays_apart: bool
) -> DataFrame:
    """The open versions of some keys, with all columns in their order.

    Args:
        opened: the open versions of all keys, one per key.
        reads_arrays_apart: read history's arrays in a scan of their own, and send them to every
            task. Iceberg does not read in vectors, but row by row, as soon as a scan has an array
            (its SparkBatch); that takes twice as long (docs/decisions/0071).
    """
    of_keys = opened.alias("opened").join(
        keys.alias("keys"), F.expr(equal(table.key, "opened", "keys", "=")), "left_semi"
    )
    if not reads_arrays_apart or _has_nested_data(opened):
        return of_keys
    found = of_keys.select(*columns(table.key), *_ARRAYS)
    others = opened.select(*columns(name for name in opened.columns if name not in _ARRAYS))
    return (
        others.alias("opened")
        .join(
            F.broadcast(found).alias("found"),
            F.expr(equal(table.key, "opened", "found", "=")),
        )
        .selectExpr(
            *(
                f"{'found' if name in _ARRAYS else 'opened'}.{column}"
                for name, column in zip(opened.columns, columns(opened.columns), strict=True)
            )
        )
    )


def _has_nested_data(opened: DataFrame) -> bool:
    """Whether other columns are nested, too: then no scan of values can be in vectors."""
    return any(
        isinstance(field.dataType, ArrayType | MapType | StructType) and field.name not in _ARRAYS
        for field in opened.schema.fields
    )
