"""Random streams as the history engine takes them, and the history expected of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_afterimage.history.profile import ChangeContent
from dbt_afterimage.history.table import HistoryTable
from tests.streams.comparison import by_stream
from tests.streams.shapes import Shape
from tests.streams.tables import COLUMNS, KEY, LOG_SCHEMA, StreamTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def log_of(spark: SparkSession, table: StreamTable, *batches: int) -> DataFrame:
    """The change log of some batches."""
    rows = [row for batch in batches for row in table.rows(batch)]
    return spark.createDataFrame(rows, LOG_SCHEMA)


def expected_history(table: StreamTable) -> dict[int, list[str]]:
    """The versions of the whole log, as `by_stream` groups them."""
    return by_stream(row for stream in table.streams for row in table.expected_history(stream))


def history_table(shape: Shape) -> HistoryTable:
    """The table of a shape's streams."""
    return HistoryTable(
        columns=tuple(COLUMNS),
        key=tuple(KEY),
        tracked=tuple(
            name for name in COLUMNS if name not in KEY and name in shape.options.tracked
        ),
        base=shape.base,
    )


def whole_log_content(shape: Shape) -> ChangeContent:
    """What the whole log of a shape's streams may hold."""
    return ChangeContent(
        forward_filled=tuple(shape.partly_known),
        has_boundary_events=bool(shape.events),
        truncate_scopes=("a",) if "truncate some" in dict(shape.events).values() else (),
        has_loads=shape.base is not None,
        has_key_changes=shape.moves,
        has_incomplete_key_changes=shape.has_incomplete_key_changes,
    )
