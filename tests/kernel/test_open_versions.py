"""The open versions of a batch's keys, with arrays read apart and in one scan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dbt_afterimage.history.open_versions import open_versions_of, reads_apart
from dbt_afterimage.history.table import HistoryTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = HistoryTable(
    columns=("area", "no.", "name", "tags"), key=("area", "no."), tracked=("name", "tags")
)
OPENED = (
    "area string, `no.` int, valid_from_seq string, changed_columns array<string>,"
    " name string, tags {tags}, unknown_columns array<string>"
)


@pytest.mark.parametrize("tags", ["string", "struct<first: string>"])
@pytest.mark.parametrize("reads_arrays_apart", [False, True])
def test_open_versions_of_keys_have_all_columns_in_order(
    spark: SparkSession, tags: str, reads_arrays_apart: bool
) -> None:
    tag = "x" if tags == "string" else ("x",)
    ann = ("n", 1, "5", ["name"], "Ann", tag, None)
    bob = ("n", 2, "6", None, None, None, ["name", "tags"])
    others = [("s", 1, "7", ["tags"], "Cid", tag, None), ("s", 2, "8", None, "Dan", None, None)]
    opened = spark.createDataFrame([ann, bob, *others], OPENED.format(tags=tags))
    keys = spark.createDataFrame([("n", 1), ("n", 2), ("s", 3)], "area string, `no.` int")
    found = open_versions_of(keys, opened, TABLE, reads_arrays_apart=reads_arrays_apart)
    assert found.columns == opened.columns
    assert sorted(tuple(row) for row in found.collect()) == [ann, bob]


@pytest.mark.parametrize(
    ("keys", "names", "expected"),
    [(250_000, 20, True), (250_001, 1, False), (10_001, 500, False), (10_000, 500, True)],
)
def test_arrays_are_read_apart_where_they_fit_in_memory(
    keys: int, names: int, expected: bool
) -> None:
    assert reads_apart(keys, names) is expected
