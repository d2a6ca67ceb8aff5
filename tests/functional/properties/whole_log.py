"""The history of many streams, from the whole log at once, without dbt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.functional.properties.stream_tables import (
    BATCHES,
    COLUMNS,
    KEY,
    LOG_SCHEMA,
    StreamTable,
)
from tests.history_versions import versions_of
from tests.log_reader import read_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def history_of_all(spark: SparkSession, table: StreamTable) -> list[dict[str, Any]]:
    """The versions of all streams of a table, by the transforms that the table's shape needs."""
    rows = [row for batch in range(1, BATCHES + 1) for row in table.rows(batch)]
    shape = table.shape
    data = [name for name in COLUMNS if name not in KEY]
    versions = versions_of(
        spark.createDataFrame(rows, LOG_SCHEMA),
        COLUMNS,
        KEY,
        tracked=[name for name in data if name in shape.options.tracked],
        base=shape.base,
        forward_filled=tuple(shape.partly_known),
        has_boundary_events=bool(shape.events),
        truncate_scopes=("a",) if "truncate some" in dict(shape.events).values() else (),
        has_key_changes=shape.moves,
        has_incomplete_key_changes=shape.has_incomplete_key_changes,
    )
    return read_rows(versions)
