"""The first changes after a full load cost what they are, not what the load was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.functional.dbt_project import DbtProject
from tests.functional.people import MODELS, PEOPLE, People, seq, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITH_BASE = "{{ stage_qlik_change_table('raw', 'people__ct', base='people') }}\n"


@pytest.fixture
def people(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path: Path,
    table_format: str,
) -> People:
    """Three rows of a base table, loaded by a first run."""
    models = {**MODELS, "staging/stg_people.sql": WITH_BASE}
    dbt = make_dbt_project(tmp_path, schema="loaded")
    people = start(dbt, spark, table_format, models)
    people.declare(base={"kind": "frozen"})
    people.land(PEOPLE, [])
    spark.sql(
        f"create or replace table loaded_raw.people using {table_format} as "
        "select id, name, 'old' as note, cast(0.5 as float) as score, "
        "cast(1 as decimal(5,2)) as fee "
        "from values (1, 'Ann'), (2, 'Bob'), (3, 'Cid') as rows_given(id, name)"
    )
    dbt("run")
    return people


def test_the_first_changes_after_a_load_take_the_incremental_path(people: People) -> None:
    people.land(
        PEOPLE,
        [
            (seq(1), "B", 1, "Ann", "old", 0.5, "1.00"),
            (seq(1), "U", 1, "Eve", "old", 0.5, "1.00"),
            (seq(2), "D", 2, "Bob", "old", 0.5, "1.00"),
            (seq(3), "I", 4, "Dan", "new", 0.5, "1.00"),
        ],
    )
    people.dbt("run")
    assert people.rows("history", "id, name, opened_by, closed_by", "id, valid_from_seq") == [
        (1, "Ann", "L", "U"),
        (1, "Eve", "U", None),
        (2, "Bob", "L", "D"),
        (3, "Cid", "L", None),
        (4, "Dan", "I", None),
    ]
    progress = people.spark.table("loaded.afterimage_progress").filter("model = 'people_history'")
    assert [row["path"] for row in progress.orderBy("recorded_at").collect()] == [
        "rebuild",
        "incremental",
    ]
