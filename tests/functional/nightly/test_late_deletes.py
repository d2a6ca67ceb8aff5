"""Late deletes: of the only version of a key, and of a version that has been updated since."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.functional.comparing import checkpointed_rows
from tests.functional.dbt_project import DbtProject
from tests.functional.people import MODELS, PEOPLE, People, seq, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN_TIME = [
    (seq(1), "I", 1, "Ann", "old", 0.5, "1.00"),
    (seq(2), "I", 2, "Bob", "old", 0.5, "1.00"),
    (seq(3), "I", 3, "Cid", "old", 0.5, "1.00"),
    (seq(5), "B", 3, "Cid", "old", 0.5, "1.00"),
    (seq(5), "U", 3, "Cid", "new", 0.5, "1.00"),
]
OF_ITS_ONLY_CHANGE = (seq(1), "D", 1, "Ann", "old", 0.5, "1.00")
BEFORE_THE_UPDATE = (seq(4), "D", 3, "Cid", "old", 0.5, "1.00")


@pytest.fixture(scope="module")
def people(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    table_format: str,
) -> People:
    """Three rows, one of them updated; then two late deletes, each in a batch of its own."""
    dbt = make_dbt_project(tmp_path_factory.mktemp("late_deletes"), schema="late_deletes")
    people = start(dbt, spark, table_format, MODELS)
    people.declare(ignore=["note"])
    people.land(PEOPLE, IN_TIME)
    dbt("run")
    people.land(PEOPLE, [*IN_TIME, OF_ITS_ONLY_CHANGE])
    dbt("run")
    people.land(PEOPLE, [*IN_TIME, OF_ITS_ONLY_CHANGE, BEFORE_THE_UPDATE])
    dbt("run")
    return people


def test_r11_a_version_that_was_never_open_goes(people: People) -> None:
    """At one change_seq the delete counts, so nothing was ever there (R1)."""
    assert people.rows("history", "id, name, opened_by", "id, valid_from_seq") == [
        (2, "Bob", "I"),
        (3, "Cid", "I"),
        (3, "Cid", "U"),
    ]
    assert people.rows("current", "id, name", "id") == [(2, "Bob"), (3, "Cid")]


def test_r4_a_version_that_ends_late_has_the_untracked_values_of_its_time(people: People) -> None:
    """The update came after the end, so its note is none of the ended version's."""
    versions = people.rows("history", "note, opened_by, closed_by", "id, valid_from_seq")
    assert versions[1:] == [("old", "I", "D"), ("new", "U", None)]


def test_rows_that_a_run_keeps_for_itself_are_freed(people: People) -> None:
    """The replay path works out its keys, and the versions that may change, once."""
    held = checkpointed_rows(people.spark)
    again = (seq(4), "I", 1, "Ann", "old", 0.5, "1.00")
    people.land(PEOPLE, [*IN_TIME, OF_ITS_ONLY_CHANGE, BEFORE_THE_UPDATE, again])
    people.dbt("run")
    assert people.rows("current", "id, name", "id") == [(1, "Ann"), (2, "Bob"), (3, "Cid")]
    assert checkpointed_rows(people.spark) <= held
