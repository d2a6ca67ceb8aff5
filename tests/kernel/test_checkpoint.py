"""Rows that are computed once, and aggregates of them from the same job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from dbt_afterimage.spark.session import unpersist
from dbt_afterimage.storage.checkpoint import checkpoint_observed

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession


def aggregates() -> dict[str, Column]:
    ids = "array_union(collect_set(id), array(7L))"
    return {
        "odd": F.count_if(F.expr("id % 2 = 1")),
        "packed": F.expr(f"struct(max(id) as last, {ids} as ids)"),
    }


@pytest.mark.parametrize("count", [0, 1, 5])
def test_aggregates_come_with_the_rows(spark: SparkSession, count: int) -> None:
    rows, found = checkpoint_observed(spark.range(count).coalesce(1), aggregates())
    assert found["odd"] == count // 2
    assert found["packed"]["last"] == (count - 1 if count else None)
    assert sorted(found["packed"]["ids"]) == [*range(count), 7]
    assert sorted(row["id"] for row in rows.collect()) == [*range(count)]
    unpersist(rows)


def test_aggregates_take_no_job_of_their_own(spark: SparkSession) -> None:
    def jobs() -> int:
        return int(spark._jsparkSession.sparkContext().dagScheduler().nextJobId())

    before = jobs()
    rows, _ = checkpoint_observed(spark.range(5), aggregates())
    assert jobs() == before + 1
    unpersist(rows)
