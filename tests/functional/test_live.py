"""The macro `live`: what a run would make of the raw table now, and what it could not decide."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from tests.functional.comparing import last_commits
from tests.functional.dbt_project import DbtProject
from tests.functional.people import (
    HEADERS,
    MODELS,
    PEOPLE,
    People,
    record,
    seq,
    start,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.both_formats, pytest.mark.delta_nightly]

LIVE = """\
{{ config(materialized='table', file_format='FORMAT') }}
select * from {{ live(ref('people_MART')) }}
"""


@pytest.fixture
def people(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> People:
    """Nothing is built yet."""
    project = make_dbt_project(tmp_path, schema=f"live_{uuid4().hex[:8]}")
    lives = {
        f"live/people_{mart}_live.sql": LIVE.replace("FORMAT", table_format).replace("MART", mart)
        for mart in ("history", "current", "changes")
    }
    models = {name: text for name, text in MODELS.items() if "field_changes" not in name}
    return start(project, spark, table_format, {**models, **lives})


def live(people: People, mart: str = "current", columns: str = "id, name, live_state") -> Any:
    """The rows of `live`; nothing is written to the tables that it reads."""
    names = [people.name(table) for table in ("changes", "history", "current")]
    names.append(f"{people.dbt.schema}.afterimage_progress")
    before = last_commits(people.spark, names, people.table_format)
    people.dbt("run", "--select", f"people_{mart}_live")
    assert last_commits(people.spark, names, people.table_format) == before
    return people.rows(f"{mart}_live", columns, columns)


def test_keys_that_a_run_could_not_decide_are_labelled(people: People) -> None:
    people.land(PEOPLE, [record(number, "I", number, "Ann") for number in range(1, 6)])
    message = people.dbt.error_of("run", "--select", "people_current_live")
    assert "people_changes does not exist yet. Fix: run dbt build first" in message
    people.dbt("run", "--exclude", "live")
    assert live(people) == [(number, "Ann", "merged") for number in range(1, 6)]
    people.append(
        PEOPLE,
        [
            record(11, "D", 1, "Ann"),
            # late, and before the records that are there
            record(0, "I", 2, "Ada"),
            record(12, "B", 2, "Ann"),
            record(12, "U", 2, "Anna"),
            # without its before image
            record(13, "U", 3, "Ann Lee"),
            # another insert at a place where one is
            record(4, "I", 4, "Amy"),
            record(14, "I", 6, "Eve"),
        ],
    )
    shown = [
        (2, "Anna", "unmerged"),
        (3, "Ann", "pending"),
        (4, "Ann", "rejected"),
        (5, "Ann", "merged"),
        (6, "Eve", "unmerged"),
    ]
    assert live(people) == shown
    versions = live(people, "history", "id, name, valid_from_seq, valid_to_seq, live_state")
    assert versions[:4] == [
        (1, "Ann", seq(1), seq(11), "unmerged"),
        (2, "Ada", seq(0), seq(2), "unmerged"),
        (2, "Ann", seq(2), seq(12), "unmerged"),
        (2, "Anna", seq(12), None, "unmerged"),
    ]
    people.dbt("run", "--exclude", "live")
    assert people.rows("current", "id, name", "id") == [row[:2] for row in shown]
    # rejected once; what waits still waits
    states = ["merged", "pending", "merged", "merged", "merged"]
    assert [row[2] for row in live(people)] == states
    message = people.dbt.error_of("run", "--select", "people_changes_live")
    assert "neither a history of a change log nor its current table. Allowed: ref(" in message


def test_a_log_that_no_history_has_read_counts_too(people: People) -> None:
    people.declare(before_images=False, keep_deleted=True)
    people.land(PEOPLE, [record(1, "I", 1, "Ann"), record(2, "I", 2, "Bob")])
    people.dbt("run", "--exclude", "live")
    people.append(PEOPLE, [record(3, "U", 1, "Anna")])
    people.dbt("run", "--select", "people_changes")
    people.append(PEOPLE, [record(4, "D", 2, "Bob")])
    shown = [(1, "Anna", False, "unmerged"), (2, "Bob", True, "unmerged")]
    assert live(people, "current", "id, name, is_deleted, live_state") == shown


def test_columns_that_only_a_run_would_add(people: People) -> None:
    people.declare(before_images=False)
    people.land(PEOPLE, [record(1, "I", 1, "Ann"), record(2, "I", 2, "Bob")])
    people.dbt("run", "--exclude", "live")
    wider = {**HEADERS, "id": "bigint", "name": "string", "city": "string"}
    people.land(
        wider, [(seq(3), "U", 1, "Ann", "Oslo"), (seq(4), "I", 3_000_000_000, "Cid", "Rome")]
    )
    people.dbt("run", "--select", "stg_people")
    shown = [
        (1, "Ann", "Oslo", "unmerged"),
        (2, "Bob", None, "merged"),
        (3_000_000_000, "Cid", "Rome", "unmerged"),
    ]
    assert live(people, "current", "id, name, city, live_state") == shown
    people.dbt("run", "--exclude", "live")
    assert people.rows("current", "id, name, city", "id") == [row[:3] for row in shown]
    # as a run would stop, so does the reader
    people.land({**wider, "name": "int"}, [(seq(5), "I", 4, 1, "Rome")])
    people.dbt("run", "--select", "stg_people")
    message = people.dbt.error_of("run", "--select", "people_current_live")
    assert "the column `name` is string in the table and int in staging" in message
