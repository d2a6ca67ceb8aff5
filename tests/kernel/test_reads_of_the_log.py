"""How often the chain of history reads the change log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.history_versions import versions_of
from tests.log_lines import COLUMNS, SCHEMA, brief, change
from tests.log_reader import read_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def counted(spark: SparkSession, rows: list[tuple[Any, ...]]) -> tuple[DataFrame, Any]:
    """The rows, and a counter of those that are read."""
    reads = spark.sparkContext.accumulator(0)

    def read(row: tuple[Any, ...]) -> tuple[Any, ...]:
        reads.add(1)
        return row

    return spark.createDataFrame(spark.sparkContext.parallelize(rows, 1).map(read), SCHEMA), reads


@pytest.mark.parametrize("moves", [2, 12])
def test_reads_do_not_grow_with_the_number_of_key_changes_of_a_row(
    spark: SparkSession, moves: int
) -> None:
    """A row that moves from key to key, and no key change has its city."""
    lines = ["0100 I 0 Ann Rome"]
    lines += [f"{101 + to:04} U {to + 1} Ann ? <- {to} Ann ?" for to in range(moves)]
    log, reads = counted(spark, [change(line) for line in lines])
    found = versions_of(
        log,
        COLUMNS,
        ["id"],
        forward_filled=("name", "city"),
        has_key_changes=True,
        has_incomplete_key_changes=True,
    )
    versions = sorted(brief(row) for row in read_rows(found))
    assert len(versions) == moves + 1
    assert all("Ann Rome" in version for version in versions)
    assert reads.value <= 4 * len(lines)
