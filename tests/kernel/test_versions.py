"""R1 to R10 on random streams: the chain makes of a whole log what the oracle makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dbt_afterimage.history.names import IS_PRIOR, VERSION_ID
from dbt_afterimage.history.versions import versions
from tests.functional.log_reader import read_rows
from tests.functional.properties.comparison import assert_equal, by_stream
from tests.functional.properties.stream_shapes import SHAPES, Shape
from tests.functional.properties.stream_tables import BATCHES, LOG_SCHEMA
from tests.kernel.random_streams import StreamTable, history_table, whole_log_profile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAMS = 40


@pytest.mark.parametrize("shape", SHAPES, ids=[shape.name for shape in SHAPES])
def test_history_of_a_whole_log(spark: SparkSession, shape: Shape) -> None:
    table = StreamTable(shape, STREAMS, SHAPES.index(shape) + 1)
    expected = []
    for stream in table.streams:
        expected += table.rows_of(stream, table.history_of(stream))
    rows = [row for batch in range(1, BATCHES + 1) for row in table.rows(batch)]
    log = spark.createDataFrame(rows, LOG_SCHEMA)
    found = versions(log, history_table(shape), whole_log_profile(shape))
    assert_equal(table, by_stream(read_rows(found.drop(VERSION_ID, IS_PRIOR))), by_stream(expected))
