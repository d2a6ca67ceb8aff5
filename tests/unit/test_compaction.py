"""Compaction after a run: the rows are committed, so nothing that happens here fails the run."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from dbt_afterimage.storage import compaction
from dbt_afterimage.storage.compaction import MAX_FILES_AFTER_RUN, compact_at_end, compact_written
from dbt_afterimage.storage.formats.base import MANY_SMALL_FILES

TABLE = "marts.people_history"
CONFLICT = "org.apache.iceberg.exceptions.CommitFailedException: another run has committed"


@pytest.fixture
def table_kind(monkeypatch: pytest.MonkeyPatch) -> Mock:
    kind = Mock()
    kind.small_file_counts.return_value = {TABLE: MANY_SMALL_FILES}
    monkeypatch.setattr(compaction, "format_named", lambda name: kind)
    return kind


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(compaction, "logger", Mock(warning=found.append))
    return found


def run() -> None:
    session: Any = object()
    compact_at_end(TABLE, "iceberg")
    compact_written(session)


def test_work_is_bounded(table_kind: Mock, warnings: list[str]) -> None:
    run()
    assert table_kind.merge_small_files.call_args.args[-1] == MAX_FILES_AFTER_RUN == 100
    assert warnings == []


def test_few_small_files_are_left_alone(table_kind: Mock) -> None:
    table_kind.small_file_counts.return_value = {TABLE: MANY_SMALL_FILES - 1}
    run()
    table_kind.merge_small_files.assert_not_called()


def test_all_tables_of_a_command_are_counted_once(table_kind: Mock) -> None:
    session: Any = object()
    others = ["marts.people_current", "raw.people_changes"]
    table_kind.small_file_counts.return_value = dict.fromkeys([TABLE, *others], MANY_SMALL_FILES)
    for table in (TABLE, *others, TABLE):
        compact_at_end(table, "iceberg")
    compact_written(session)
    compact_written(session)
    table_kind.small_file_counts.assert_called_once_with(session, sorted([TABLE, *others]))
    merged = [call.args[1] for call in table_kind.merge_small_files.call_args_list]
    assert sorted(merged) == sorted([TABLE, *others])


def test_a_conflict_is_left_to_the_other_run(table_kind: Mock, warnings: list[str]) -> None:
    table_kind.merge_small_files.side_effect = RuntimeError(CONFLICT)
    run()
    assert warnings == []


def test_a_failure_is_a_warning_with_a_fix(table_kind: Mock, warnings: list[str]) -> None:
    table_kind.merge_small_files.side_effect = RuntimeError("No space left on device")
    run()
    (warning,) = warnings
    for part in (
        TABLE,
        "No space left on device",
        "Fix: ",
        "`auto_compact: false`",
    ):
        assert part in warning
