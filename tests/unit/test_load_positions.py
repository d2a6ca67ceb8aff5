"""The place of a base table's full load among the changes, and how far its log has read then."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_afterimage.change_log.deciding.full_load import LoadPositionError, find_loads, read_up_to
from dbt_afterimage.sequence import OpenEdgeChangeSequence, QlikChangeSequence
from dbt_afterimage.settings import SourceSettings
from dbt_afterimage.storage.progress import Progress

WHERE = QlikChangeSequence("15 minutes")
NO_TABLE: Any = None


def seq(text: str) -> str:
    return text.ljust(35, "0")


def settings(position: str) -> SourceSettings:
    return {
        "system": "qlik_change_table",
        "source_table": "raw.things__ct",
        "base": {"kind": "frozen", "load_id": "first", "position": position, "loaded_at": None},
    }


@pytest.mark.parametrize(
    ("changes", "load", "expected"),
    [
        (None, WHERE.first, WHERE.first),
        (None, seq("20260302"), WHERE.first),
        (seq("20260302"), seq("20260301"), seq("20260302")),
        (seq("20260302"), seq("20260303"), f"20260302{1:027d}"),
    ],
    ids=["nothing", "a declared position", "before the changes", "beyond the changes"],
)
def test_a_load_counts_as_directly_behind_the_changes(
    changes: str | None, load: str, expected: str
) -> None:
    assert read_up_to(WHERE, changes, [load]) == expected


def test_without_a_load_the_changes_decide() -> None:
    assert read_up_to(WHERE, None, []) is None
    assert read_up_to(WHERE, seq("20260302"), []) == seq("20260302")


def test_a_position_in_the_future_is_refused() -> None:
    place = seq("20620302")
    with pytest.raises(LoadPositionError) as error:
        find_loads(settings(place), NO_TABLE, None, WHERE, Progress())
    parts = ["raw.things__ct", "`base.position`", "'first'", place, "Allowed: ", "Fix: "]
    assert [part for part in parts if part not in str(error.value)] == []


def test_positions_without_a_time_are_accepted() -> None:
    where = OpenEdgeChangeSequence(10_000)
    (load,) = find_loads(settings("9" * 19), NO_TABLE, None, where, Progress()).new
    assert load.position == "9" * 19
