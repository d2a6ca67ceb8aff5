"""A warning of the first batch: declared columns that no record has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dbt_afterimage.change_log.deciding.summary import columns_in_no_record
from dbt_afterimage.storage.local_relation import local_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "outcome string, change_oper string, known_columns array<string>, a int, b int, c int"


@pytest.mark.parametrize(
    ("rows", "counts_nulls", "missing"),
    [
        ([("accepted", "I", ["a"], 1, None, None)], True, ["b", "c"]),
        ([("accepted", "I", ["a"], 1, None, None)] * 2, True, ["b", "c"]),
        (
            [("accepted", "I", ["a"], 1, None, None), ("accepted", "U", ["c"], None, None, None)],
            True,
            ["b"],
        ),
        # all are known: NULL is a value, or, where writers leave NULLs out, none
        ([("accepted", "I", None, 1, 2, None)], True, []),
        ([("accepted", "I", None, 1, 2, None)], False, ["c"]),
        # a delete and a rejected record say nothing
        (
            [("accepted", "D", None, 1, None, None), ("rejected", "I", ["a"], 1, None, None)],
            True,
            [],
        ),
    ],
)
def test_columns_in_no_record(
    spark: SparkSession,
    rows: list[tuple[object, ...]],
    counts_nulls: bool,
    missing: list[str],
) -> None:
    decided = local_rows(spark, rows, COLUMNS)
    found = columns_in_no_record(decided, ["a", "b", "c"], counts_nulls=counts_nulls)
    assert found == missing
