"""A late delete takes away the only version that a key had: it is gone from every mart."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.functional.dbt_project import DbtProject
from tests.functional.people import MODELS, PEOPLE, People, seq, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def people(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    table_format: str,
) -> People:
    """Two inserts; then, late, a delete with the position of the first one."""
    dbt = make_dbt_project(tmp_path_factory.mktemp("late_deletes"), schema="late_deletes")
    people = start(dbt, spark, table_format, MODELS)
    inserts = [
        (seq(1), "I", 1, "Ann", "old", 0.5, "1.00"),
        (seq(2), "I", 2, "Bob", "old", 0.5, "1.00"),
    ]
    people.land(PEOPLE, inserts)
    dbt("run")
    people.land(PEOPLE, [*inserts, (seq(1), "D", 1, "Ann", "old", 0.5, "1.00")])
    dbt("run")
    return people


def test_r11_a_version_that_was_never_open_goes(people: People) -> None:
    """At one change_seq the delete counts, so nothing was ever there (R1)."""
    assert people.rows("history", "id, name, opened_by", "id") == [(2, "Bob", "I")]
    assert people.rows("current", "id, name", "id") == [(2, "Bob")]
