"""Rows that are computed once and read more than once.

Not `persist`: it turns rows into columns and back, with code that Spark generates and Java compiles
for each table. And a commit to a table makes Spark drop what it cached of the table, including rows
computed from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_afterimage.spark.session import current, unpersist
from dbt_afterimage.storage.temp_view import named_view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["checkpoint", "checkpoint_by_name", "unpersist", "unpersist_by_name", "view_by_name"]

_NAMED: dict[str, list[DataFrame]] = {}
"""The rows that each view keeps in memory."""


def checkpoint(rows: DataFrame) -> DataFrame:
    """The rows, computed now, in memory and where that is full on disk, until `unpersist`."""
    from pyspark.storagelevel import StorageLevel

    # as bytes: as objects, as many as rows, they would be in the way of Java's collector
    return rows.localCheckpoint(storageLevel=StorageLevel.MEMORY_AND_DISK)


def checkpoint_by_name(rows: DataFrame) -> str:
    """The name of a view of the rows, computed now, for statements of macros."""
    kept = checkpoint(rows)
    return view_by_name(kept, [kept])


def view_by_name(rows: DataFrame, checkpoints: list[DataFrame]) -> str:
    """The name of a view of rows, for statements of macros.

    Args:
        checkpoints: checkpointed rows that it reads, to be freed with it.
    """
    name = named_view(rows)
    _NAMED[name] = checkpoints
    return name


def unpersist_by_name(name: str) -> None:
    """Drop a view, and free what it keeps."""
    current().catalog.dropTempView(name)
    for kept in _NAMED.pop(name):
        unpersist(kept)
