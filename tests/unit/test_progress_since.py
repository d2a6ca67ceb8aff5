"""What a reader of a table learns from the progress of the model that writes it."""

from __future__ import annotations

import json
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_afterimage.log_rows.profile import BatchProfile, merged
from dbt_afterimage.spark.literals import is_of_batches
from dbt_afterimage.storage.progress import spark_text
from dbt_afterimage.storage.progress_cache import (
    ProgressSince,
    Publication,
    batch_json,
    progress_rows,
    seen_from,
)

FIRST, SECOND, THIRD = "2026-03-01 10:00:00", "2026-03-01 11:00:00.5", "2026-03-02 09:00:00"


def test_a_table_with_all_columns_is_read_as_it_is() -> None:
    """Spark Connect refuses `withColumns` without columns."""

    class Rows:
        columns = ("model", "batch", "table_version")

    rows = Rows()
    session = SimpleNamespace(table=lambda name: rows)
    assert cast(Any, progress_rows(cast(Any, session), "progress")) is rows


def published(recorded_at: str, after: str | None, profile: str | None = "{}") -> Publication:
    return Publication(recorded_at, batch=batch_json(after, profile))


def seen(applied: str | None, *since: Publication) -> ProgressSince:
    return seen_from(applied, since[-1], since)


def test_batches_that_follow_each_other_are_known() -> None:
    found = seen(FIRST, published(SECOND, FIRST, "a"), published(THIRD, SECOND, "b"))
    assert found.is_continued
    assert found.profiles == ["a", "b"]
    assert found.recorded_at == THIRD


def test_rows_are_in_the_order_of_their_batches() -> None:
    later, earlier = published(THIRD, SECOND, "b"), published(SECOND, FIRST, "a")
    assert seen_from(FIRST, later, [later, earlier]).profiles == ["a", "b"]


def test_what_the_reader_has_applied_is_left_out() -> None:
    found = seen(SECOND, published(SECOND, FIRST, "a"), published(THIRD, SECOND, "b"))
    assert found.profiles == ["b"]


@pytest.mark.parametrize(
    "since",
    [
        pytest.param([published(THIRD, SECOND)], id="a killed run recorded nothing"),
        pytest.param([Publication(SECOND)], id="an earlier version recorded no batch"),
        pytest.param([published(SECOND, None)], id="the table is a new one"),
        pytest.param([published(SECOND, FIRST), Publication(THIRD)], id="the log was rebuilt"),
    ],
)
def test_a_batch_without_progress_leaves_all_unknown(since: list[Publication]) -> None:
    found = seen(FIRST, *since)
    assert not found.is_continued
    assert found.profiles is None


def test_a_model_without_progress_is_not_known() -> None:
    assert not seen_from(FIRST, Publication(), []).is_continued


def test_a_reader_without_progress_knows_nothing() -> None:
    found = seen(None, published(FIRST, None), published(SECOND, FIRST))
    assert not found.is_continued
    assert found.profiles is None


def test_a_batch_without_a_profile_follows_all_the_same() -> None:
    found = seen(FIRST, published(SECOND, FIRST, None))
    assert found.is_continued
    assert found.profiles is None


def test_marks_that_are_recorded_later_are_no_batch() -> None:
    found = seen(FIRST, published(SECOND, FIRST, "a"), Publication(SECOND))
    assert found.is_continued
    assert found.profiles == ["a"]


def test_a_build_of_an_empty_table_is_no_batch() -> None:
    built = Publication(None, path="rebuild", batch=batch_json(None))
    found = seen(FIRST, built, published(SECOND, FIRST, "a"))
    assert found.is_continued
    assert found.profiles == ["a"]


def test_paths_are_those_since_the_last_batch_of_the_reader() -> None:
    since = [
        Publication(FIRST, path="rebuild"),
        Publication(SECOND, path="incremental"),
        Publication(THIRD, path="replay"),
    ]
    assert seen(FIRST, *since).paths == ["incremental", "replay"]


@pytest.mark.parametrize(
    ("applied", "after", "paths"),
    [
        pytest.param(FIRST, SECOND, ["incremental", "unknown"], id="older, and one is missing"),
        pytest.param(FIRST, FIRST, ["incremental"], id="older, and none is missing"),
        pytest.param(SECOND, FIRST, ["incremental"], id="of the days from which all are there"),
    ],
)
def test_paths_are_not_known_where_publications_were_deleted(
    applied: str, after: str, paths: list[str]
) -> None:
    last = Publication(THIRD, path="incremental", batch=batch_json(after))
    assert seen_from(applied, last, [last], SECOND).paths == paths


@pytest.mark.parametrize(
    ("iso", "cast"),
    [
        ("2026-03-01T10:00:00.120000", "2026-03-01 10:00:00.12"),
        ("2026-03-01T10:00:00.000000", "2026-03-01 10:00:00"),
        ("2026-03-01 10:00:00.5", "2026-03-01 10:00:00.5"),
        (None, None),
    ],
)
def test_times_are_written_as_spark_casts_them(iso: str | None, cast: str | None) -> None:
    assert spark_text(iso) == cast


def test_profiles_of_several_batches_add_up() -> None:
    first = BatchProfile(
        changes=3,
        recorded_at=FIRST,
        first_seq="02",
        change_seq="05",
        first_changed_at="2026-02-02 00:00:00",
        changed_at="2026-02-05 00:00:00",
        inserts=1,
        truncates=1,
        key_changes=1,
        scopes=("region",),
        known=("id", "name"),
        columns=3,
    )
    second = BatchProfile(
        changes=2,
        recorded_at=SECOND,
        first_seq="01",
        change_seq="04",
        first_changed_at="2026-02-01 00:00:00",
        incomplete_key_changes=1,
        key_changes=1,
        known=("city", "id"),
        columns=4,
    )
    assert merged([first, second]) == BatchProfile(
        changes=5,
        recorded_at=SECOND,
        first_seq="01",
        change_seq="05",
        first_changed_at="2026-02-01 00:00:00",
        changed_at="2026-02-05 00:00:00",
        inserts=1,
        truncates=1,
        key_changes=2,
        incomplete_key_changes=1,
        scopes=("region",),
        known=("id",),
        columns=3,
    )


def test_a_batch_that_knows_all_columns_leaves_those_that_others_know() -> None:
    partial, whole = BatchProfile(1, known=("id",)), BatchProfile(1)
    assert merged([partial, whole]).known == ("id",)
    assert merged([whole, whole]).known is None


def test_a_profile_of_another_version_is_not_read() -> None:
    written = asdict(BatchProfile(changes=1))
    assert BatchProfile.from_json(json.dumps(written)) == BatchProfile(changes=1)
    assert BatchProfile.from_json(json.dumps({**written, "of_a_later_version": 2})) is None
    del written["truncates"]  # as if an earlier version had not counted them
    assert BatchProfile.from_json(json.dumps(written)) is None


def test_batches_are_named_unless_they_are_many() -> None:
    """Iceberg skips no file by a set of more than 200 values."""
    assert is_of_batches(FIRST, None) == f"recorded_at > timestamp '{FIRST}'"
    assert is_of_batches(None, None) == "true"
    one = is_of_batches(FIRST, [SECOND])
    # of a single value, Spark makes a comparison
    assert one == f"recorded_at in (timestamp '1970-01-01 00:00:00', timestamp '{SECOND}')"
    many = [f"2026-03-01 10:{number // 60:02}:{number % 60:02}" for number in range(1, 500)]
    assert is_of_batches(FIRST, many) == (
        f"recorded_at > timestamp '{FIRST}' and recorded_at <= timestamp '2026-03-01 10:08:19'"
    )
