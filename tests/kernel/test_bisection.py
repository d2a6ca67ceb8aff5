"""The search of a sorted array finds what a scan of all its elements would."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_afterimage.history.names import BISECTION_STEPS
from dbt_afterimage.history.sql import bisection_steps, leading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_how_many_elements_come_first(spark: SparkSession) -> None:
    numbers = spark.range(18).selectExpr(
        "array_repeat(2, cast(id % 3 as int)) || slice(sequence(2, 20), 1, cast(id as int))"
        " as numbers"
    )
    searched = numbers.selectExpr(
        "*",
        f"{bisection_steps('numbers')} as {BISECTION_STEPS}",
        "explode(sequence(-1, 20)) as wanted",
    )
    found = searched.selectExpr(
        "numbers", "wanted", leading("numbers", lambda number: f"{number} <= wanted")
    ).collect()
    assert len(found) == 18 * 22
    for elements, wanted, first in found:
        assert first == sum(element <= wanted for element in elements)


def test_steps_that_suffice_for_a_longer_array(spark: SparkSession) -> None:
    searched = spark.range(5).selectExpr(
        "id as wanted",
        "array(1, 2, 3) as numbers",
        f"{bisection_steps('sequence(1, 1000)')} as {BISECTION_STEPS}",
    )
    found = searched.selectExpr(
        "wanted", leading("numbers", lambda number: f"{number} <= wanted")
    ).collect()
    assert sorted(row[:] for row in found) == [(0, 0), (1, 1), (2, 2), (3, 3), (4, 3)]
