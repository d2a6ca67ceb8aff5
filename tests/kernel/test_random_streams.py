"""R1 to R10 on random streams: the history of a whole log is what the oracle makes of it.

Late changes do not matter here, the log is whole; tests/functional/properties builds it in batches,
by dbt. `--all-shapes --streams 510` is the whole suite, of more than 20,000 streams.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dbt_afterimage.history.names import IS_PRIOR, VERSION_ID
from dbt_afterimage.history.versions import versions
from tests.log_reader import read_rows
from tests.streams.comparison import assert_equal, by_stream
from tests.streams.history_table import (
    expected_history,
    history_table,
    log_of,
    whole_log_content,
)
from tests.streams.selection import chosen_shapes, stream_count, stream_table
from tests.streams.shapes import Shape
from tests.streams.tables import BATCHES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    shapes = chosen_shapes(metafunc.config)
    metafunc.parametrize("shape", shapes, ids=[shape.name for shape in shapes])


def test_history_of_a_whole_log(
    spark: SparkSession, shape: Shape, pytestconfig: pytest.Config
) -> None:
    table = stream_table(shape, stream_count(pytestconfig))
    log = log_of(spark, table, *range(1, BATCHES + 1))
    found = versions(log, history_table(shape), whole_log_content(shape), checkpoints=[])
    actual = read_rows(found.drop(VERSION_ID, IS_PRIOR))
    assert_equal(table, by_stream(actual), expected_history(table))
