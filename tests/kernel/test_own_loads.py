"""Full loads that come among the changes: which ones a run finds, and their positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dbt_afterimage.change_log.deciding import full_load
from dbt_afterimage.change_log.deciding.full_load import Load, find_loads
from dbt_afterimage.settings import SourceSettings, positions
from dbt_afterimage.storage.local_relation import local_rows
from dbt_afterimage.storage.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: SourceSettings = {
    "system": "change_feed",
    "source_table": "shop.carts",
    "look_back": 0,
    "load_id": "load",
    "base": None,
}
COLUMNS = "change_seq string, change_oper string, load_id string, ends_load boolean, arrival string"


def loads(
    spark: SparkSession, arrival: str | None, *rows: tuple[object, ...], reads_all: bool = False
) -> list[Load]:
    """The new loads that a run finds which has read up to a mark of arrival."""
    staged = local_rows(spark, list(rows), COLUMNS)
    done = Progress(arrival=arrival)
    where = positions(SETTINGS)
    return find_loads(SETTINGS, staged, None, where, done, reads_all=reads_all).new


def test_a_load_whose_last_row_is_not_marked_is_warned_of_in_each_run(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(full_load.logger, "warning", warnings.append)
    first, change = ("1", "L", "full", False, "a1"), ("2", "U", None, None, "a2")
    staged = local_rows(spark, [first, change, ("3", "U", None, None, "a3")], COLUMNS)
    pending_from = None
    for arrival in (None, "a2", "a3"):
        done = Progress(arrival=arrival)
        where = positions(SETTINGS)
        found = find_loads(SETTINGS, staged, None, where, done, pending_from=pending_from)
        pending_from = found.pending_from
        assert (found.new, found.is_pending, pending_from) == ([], True, "a1")
    assert len(warnings) == 3
    parts = ["shop.carts: 1 rows of the full load full wait", "Fix: ", '`load_end: "true"`']
    assert [part for part in [*parts, "rebuild_changes: true"] if part not in warnings[2]] == []


def test_a_load_has_the_position_of_its_first_row_in_whatever_batches_its_rows_come(
    spark: SparkSession,
) -> None:
    first, change = ("1", "L", "full", False, "a1"), ("2", "U", None, None, "a2")
    last = ("3", "L", "full", True, "a3")
    assert loads(spark, None, first) == []
    assert loads(spark, "a1", first, change) == []
    assert loads(spark, "a2", first, change, last) == [Load("full", "1")]
    assert loads(spark, None, first, change, last) == [Load("full", "1")]


def test_a_load_whose_rows_all_came_before_is_not_looked_for(spark: SparkSession) -> None:
    old = ("1", "L", "old", True, "a1")
    assert loads(spark, "a2", old) == []
    assert loads(spark, "a2", old, ("5", "L", "new", True, "a2")) == [Load("new", "5")]


def test_a_run_that_reads_all_finds_loads_of_older_marks(spark: SparkSession) -> None:
    extracts = [("1", "L", "March 8", True, "a1"), ("2", "L", "March 9", True, "a2")]
    assert loads(spark, "a2", *extracts) == [Load("March 9", "2")]
    both = [Load("March 8", "1"), Load("March 9", "2")]
    assert loads(spark, "a2", *extracts, reads_all=True) == both
