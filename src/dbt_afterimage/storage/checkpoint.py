"""Rows that are computed once and read more than once.

Not `persist`: it turns rows into columns and back, with code that Spark generates and Java compiles
for each table. And a commit to a table makes Spark drop what it cached of the table, including rows
computed from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbt_afterimage.spark.session import current, is_remote, unpersist
from dbt_afterimage.storage.temp_view import named_view

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = [
    "aggregated",
    "checkpoint",
    "checkpoint_by_name",
    "checkpoint_observed",
    "is_observed",
    "unpersist",
    "unpersist_by_name",
    "view_by_name",
]

_NAMED: dict[str, list[DataFrame]] = {}
"""The rows that each view keeps in memory."""


def checkpoint(rows: DataFrame) -> DataFrame:
    """The rows, computed now, in memory and where that is full on disk, until `unpersist`."""
    from pyspark.storagelevel import StorageLevel

    # as bytes: as objects, as many as rows, they would be in the way of Java's collector
    return rows.localCheckpoint(storageLevel=StorageLevel.MEMORY_AND_DISK)


def checkpoint_observed(
    rows: DataFrame, aggregates: Mapping[str, Column]
) -> tuple[DataFrame, dict[str, Any]]:
    """The rows of `checkpoint`, and aggregates of them, which the same job computes.

    Args:
        aggregates: by name, without `filter` and `distinct`.
    """
    from pyspark.sql import Observation

    if not is_observed(rows.sparkSession):
        kept = checkpoint(rows)
        return kept, aggregated(kept, aggregates)
    observation = Observation()
    kept = checkpoint(rows.observe(observation, *_named(aggregates)))
    return kept, observation.get


def is_observed(session: SparkSession) -> bool:
    """Whether a checkpoint yields the observations of its rows. That of Connect does not."""
    return not is_remote(session)


def aggregated(rows: DataFrame, aggregates: Mapping[str, Column]) -> dict[str, Any]:
    """Aggregates of rows, by name."""
    return rows.agg(*_named(aggregates)).collect()[0].asDict()


def _named(aggregates: Mapping[str, Column]) -> list[Column]:
    return [aggregate.alias(name) for name, aggregate in aggregates.items()]


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
