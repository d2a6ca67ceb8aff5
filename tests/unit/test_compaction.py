"""Compaction after a run: the rows are committed, so nothing that happens here fails the run."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from dbt_afterimage.storage import compaction
from dbt_afterimage.storage.compaction import MAX_FILES_AFTER_RUN, compact_after_run
from dbt_afterimage.storage.formats.base import MANY_SMALL_FILES

CONFLICT = "org.apache.iceberg.exceptions.CommitFailedException: another run has committed"


@pytest.fixture
def table_kind(monkeypatch: pytest.MonkeyPatch) -> Mock:
    kind = Mock()
    kind.small_file_count.return_value = MANY_SMALL_FILES
    monkeypatch.setattr(compaction, "format_named", lambda name: kind)
    return kind


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(compaction, "logger", Mock(warning=found.append))
    return found


def run() -> None:
    session: Any = object()
    compact_after_run(session, "marts.people_history", "iceberg")


def test_work_is_bounded(table_kind: Mock, warnings: list[str]) -> None:
    run()
    assert table_kind.merge_small_files.call_args.args[-1] == MAX_FILES_AFTER_RUN == 100
    assert warnings == []


def test_few_small_files_are_left_alone(table_kind: Mock) -> None:
    table_kind.small_file_count.return_value = MANY_SMALL_FILES - 1
    run()
    table_kind.merge_small_files.assert_not_called()


def test_a_conflict_is_left_to_the_other_run(table_kind: Mock, warnings: list[str]) -> None:
    table_kind.merge_small_files.side_effect = RuntimeError(CONFLICT)
    run()
    assert warnings == []


def test_a_failure_is_a_warning_with_a_fix(table_kind: Mock, warnings: list[str]) -> None:
    table_kind.merge_small_files.side_effect = RuntimeError("No space left on device")
    run()
    (warning,) = warnings
    for part in (
        "marts.people_history",
        "No space left on device",
        "Fix: ",
        "`auto_compact: false`",
    ):
        assert part in warning
