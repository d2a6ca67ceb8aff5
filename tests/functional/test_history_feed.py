"""The feed of a history: what each publication did, in a table that only grows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from dbt_afterimage.history import feed as feed_module
from tests.functional.comparing import last_commits
from tests.functional.dbt_project import DbtProject
from tests.functional.people import (
    BIG,
    LATER,
    PEOPLE,
    PEOPLE_LATER,
    STAGING,
    People,
    record,
    seq,
    start,
)
from tests.functional.project_files import changes_model

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.both_formats, pytest.mark.delta_nightly]

WITH_FEED = {"people_history.sql": "{{ history(ref('people_changes'), feed=true) }}\n"}
KNOWN = "select * from {{ known_at(ref('people_history'), var('at', 'current_timestamp()')) }}\n"
WITHOUT_OLD_IMAGES = """\
merge into {feed} as feed
using (
    select people_history_id, feed_at, feed_image
    from (
        select
            people_history_id, feed_at, feed_image,
            row_number() over (
                partition by people_history_id order by feed_at desc, feed_image
            ) as place_from_end
        from {feed}
        where feed_at < timestamp '{before}'
    )
    where place_from_end > 1 or feed_image = 'before'
) as old
    on feed.people_history_id = old.people_history_id
    and feed.feed_at = old.feed_at
    and feed.feed_image = old.feed_image
when matched then delete
"""


@pytest.fixture
def people(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> People:
    """Nothing is built yet."""
    project = make_dbt_project(tmp_path, schema=f"history_feed_{uuid4().hex[:8]}")
    models = {**STAGING, **changes_model("people", "stg_people"), **WITH_FEED}
    people = start(project, spark, table_format, {**models, "people_known.sql": KNOWN})
    people.declare(before_images=False)
    return people


def told(people: People) -> list[tuple[str, ...]]:
    """Each publication after the other: what it did to which version, `id name begin end`."""
    people.spark.sql(f"refresh table {people.name('history_feed')}")
    rows = people.rows(
        "history_feed",
        "feed_at, concat_ws(' ', feed_change, feed_image, id, name,"
        " ltrim('0', right(valid_from_seq, 4)), ltrim('0', right(valid_to_seq, 4)))",
        "1, 2",
    )
    return [
        tuple(text for at, text in rows if at == moment)
        for moment in dict.fromkeys(at for at, _ in rows)
    ]


def known(people: People, at: Any) -> list[tuple[Any, ...]]:
    people.dbt("run", "--select", "people_known", at=str(at))
    return people.rows("known", "id, name, valid_from_seq, valid_to_seq", "id, valid_from_seq")


def history(people: People) -> list[tuple[Any, ...]]:
    people.spark.sql(f"refresh table {people.name('history')}")
    return people.rows("history", "id, name, valid_from_seq, valid_to_seq", "id, valid_from_seq")


def feed_at(people: People) -> list[Any]:
    return [row[0] for row in people.rows("history_feed", "distinct feed_at", "1")]


def killed(*_: Any, **__: Any) -> None:
    raise RuntimeError("killed")


def test_each_publication_says_what_it_did(people: People) -> None:
    people.land(PEOPLE, [record(1, "I", 1, "Ann"), record(2, "I", 2, "Bob")])
    people.dbt("run")
    states = [history(people)]
    people.append(PEOPLE, [record(10, "U", 1, "Anna"), record(11, "I", 3, "Cid")])
    people.dbt("run")
    states.append(history(people))
    # late: between the two names; and a delete in the place of an insert, which leaves nothing
    people.append(PEOPLE, [record(5, "U", 1, "Anne"), record(11, "D", 3, "Cid")])
    people.dbt("run")
    states.append(history(people))
    people.append(PEOPLE, [record(12, "U", 2, "Bob")])  # changes nothing
    people.dbt("run")
    assert told(people) == [
        ("inserted after 1 Ann 1", "inserted after 2 Bob 2"),
        (
            "closed after 1 Ann 1 10",
            "closed before 1 Ann 1",
            "inserted after 1 Anna 10",
            "inserted after 3 Cid 11",
        ),
        (
            "corrected after 1 Ann 1 5",
            "corrected before 1 Ann 1 10",
            "inserted after 1 Anne 5 10",
            "removed before 3 Cid 11",
        ),
    ]
    assert [known(people, at) for at in feed_at(people)] == states
    assert known(people, "2020-01-01") == []
    assert "Allowed: a UTC timestamp" in people.dbt.error_of(
        "run", "--select", "people_known", at=seq(1)
    )


@pytest.mark.parametrize("step", ["append_once", "_record"])
def test_a_run_that_was_killed_after_it_published_is_made_good(
    people: People, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    people.land(PEOPLE, [record(1, "I", 1, "Ann"), record(11, "I", 3, "Cid")])
    people.dbt("run")
    # nothing in the history tells of a version that was removed
    people.append(PEOPLE, [record(11, "D", 3, "Cid")])
    with monkeypatch.context() as patch:
        patch.setattr(feed_module, step, killed)
        people.dbt.error_of("run")
    assert history(people) == [(1, "Ann", seq(1), None)]
    people.dbt("run")
    expected = [("inserted after 1 Ann 1", "inserted after 3 Cid 11"), ("removed before 3 Cid 11",)]
    assert told(people) == expected
    people.append(PEOPLE, [record(12, "I", 4, "Dan")])
    people.dbt("run")
    assert told(people) == [*expected, ("inserted after 4 Dan 12",)]


@pytest.mark.nightly
def test_a_feed_that_was_switched_off_is_made_good(people: People) -> None:
    people.land(PEOPLE, [record(1, "I", 1, "Ann")])
    people.dbt("run")
    path = people.dbt.path / "models/people_history.sql"
    path.write_text("{{ history(ref('people_changes')) }}\n", encoding="utf-8")
    people.append(PEOPLE, [record(2, "U", 1, "Anna")])
    people.dbt("run")
    assert len(told(people)) == 1
    path.write_text(WITH_FEED["people_history.sql"], encoding="utf-8")
    people.dbt("run")
    second = ("closed after 1 Ann 1 2", "closed before 1 Ann 1", "inserted after 1 Anna 2")
    assert told(people) == [("inserted after 1 Ann 1",), second]
    tables = [people.name("history_feed"), f"{people.dbt.schema}.afterimage_progress"]
    before = last_commits(people.spark, tables, people.table_format)
    people.dbt("run")
    assert last_commits(people.spark, tables, people.table_format) == before
    people.dbt("run", "--full-refresh")
    people.dbt("run", rebuild_changes=True)
    assert told(people) == [("inserted after 1 Ann 1",), second]


@pytest.mark.nightly
def test_a_feed_gains_columns_and_wider_types(people: People) -> None:
    people.land(PEOPLE, [(seq(1), "I", 1, "Ann", None, 0.5, "1.25")])
    people.dbt("run")
    people.land(PEOPLE_LATER, [row for row in LATER if row[1] != "B"])
    people.dbt("run")
    people.append(PEOPLE_LATER, [(seq(6), "I", BIG + 1, "Eve", 0.5, "1.25", "Rome")])
    people.dbt("run")
    kinds = people.types("history")
    assert {name: people.types("history_feed")[name] for name in kinds} == kinds
    assert known(people, "current_timestamp()") == history(people)
    cities = people.rows("known", "distinct city", "1")
    assert cities == people.rows("history", "distinct city", "1")


@pytest.mark.nightly
def test_compaction_and_retention_leave_what_is_known(people: People) -> None:
    people.land(PEOPLE, [record(1, "I", 1, "Ann"), record(2, "I", 2, "Bob")])
    people.dbt("run")
    for number in (10, 20, 30):
        people.append(
            PEOPLE, [record(number, "U", 1, f"Ann{number}"), record(number, "D", 2, "Bob")]
        )
        people.dbt("run")
        people.dbt("run-operation", "compact", "--args", "{models: [people_history]}")
    publications = feed_at(people)
    assert len(publications) == 4
    states = [known(people, at) for at in publications[2:]]
    feed = people.name("history_feed")
    count = people.spark.table(feed).count()
    people.spark.sql(WITHOUT_OLD_IMAGES.format(feed=feed, before=publications[2]))
    assert people.spark.table(feed).count() < count
    assert [known(people, at) for at in publications[2:]] == states
    people.append(PEOPLE, [record(40, "D", 1, "Ann30")])
    people.dbt("run")
    assert [text.split()[0] for text in told(people)[-1]] == ["closed", "closed"]


@pytest.mark.nightly
def test_a_history_without_a_feed_is_not_queried_by_it(people: People) -> None:
    path = people.dbt.path / "models/people_history.sql"
    path.write_text("{{ history(ref('people_changes')) }}\n", encoding="utf-8")
    people.land(PEOPLE, [record(1, "I", 1, "Ann")])
    message = people.dbt.error_of("run")
    assert f"{people.name('history_feed')} does not exist" in message
    assert "feed=true" in message
