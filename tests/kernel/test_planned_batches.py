"""Random streams in batches, each planned as in a run, give the history of the whole log (R11).

properties/test_batches.py does so with dbt and tables, for fewer shapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.history_batches import BatchedHistory
from tests.streams.comparison import assert_equal, by_stream
from tests.streams.history_table import expected_history, history_table
from tests.streams.selection import chosen_shapes, stream_count, stream_table
from tests.streams.shapes import Shape
from tests.streams.tables import BATCHES, LOG_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOT_NIGHTLY = "unknown_at_first"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    shapes = [
        pytest.param(
            shape,
            id=shape.name,
            marks=() if shape.name == NOT_NIGHTLY else pytest.mark.nightly,
        )
        for shape in chosen_shapes(metafunc.config, few=True)
        # the log would gain a column between two batches, and here it has all from the beginning
        if not (shape.gains or shape.drops)
    ]
    metafunc.parametrize("shape", shapes)


def test_batches_give_the_history_of_the_whole_log(
    spark: SparkSession, shape: Shape, pytestconfig: pytest.Config
) -> None:
    table = stream_table(shape, stream_count(pytestconfig))
    history = BatchedHistory(spark, history_table(shape), LOG_SCHEMA)
    for batch in range(1, BATCHES + 1):
        history.apply(table.rows(batch))
    actual = by_stream(history.rows, "history_id", "recorded_at")
    assert_equal(table, actual, expected_history(table))


def test_live_versions_are_those_after_the_next_batch(
    spark: SparkSession, shape: Shape, pytestconfig: pytest.Config
) -> None:
    table = stream_table(shape, stream_count(pytestconfig))
    history = BatchedHistory(spark, history_table(shape), LOG_SCHEMA)
    for batch in range(1, BATCHES + 1):
        live = history.live(table.rows(batch))
        history.apply(table.rows(batch))
        if batch > 1:
            assert_equal(table, by_stream(live), by_stream(history.rows))
