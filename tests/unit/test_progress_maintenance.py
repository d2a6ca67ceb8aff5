"""Maintenance of the progress table: no run depends on it, so no run fails by it."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from dbt_afterimage.storage import progress_maintenance
from dbt_afterimage.storage.compaction import MANY_FILES
from dbt_afterimage.storage.progress_maintenance import maintain_progress

PROGRESS = "marts.afterimage_progress"
CONFLICT = "org.apache.iceberg.exceptions.CommitFailedException: another run has committed"


@pytest.mark.parametrize("said", [CONFLICT, "Cannot expire snapshots: GC is disabled"])
@pytest.mark.parametrize("failing", ["trim_progress", "compact_small"])
def test_a_run_goes_on_if_the_progress_table_cannot_be_rewritten(
    monkeypatch: pytest.MonkeyPatch, said: str, failing: str
) -> None:
    table_kind, trim, warnings = Mock(), Mock(), Mock()
    table_kind.file_count.return_value = MANY_FILES + 1
    (trim if failing == "trim_progress" else table_kind.compact_small).side_effect = RuntimeError(
        said
    )
    monkeypatch.setattr(progress_maintenance, "format_named", lambda name: table_kind)
    monkeypatch.setattr(progress_maintenance, "trim_progress", trim)
    monkeypatch.setattr(progress_maintenance, "logger", warnings)
    session: Any = object()
    assert maintain_progress(session, PROGRESS, "iceberg") is None
    trim.assert_called_once()
    told = [call.args[0] for call in warnings.warning.call_args_list]
    expected = f"{PROGRESS}: it could not be made smaller: {said} Fix: "
    assert [text[: len(expected)] for text in told] == ([] if said == CONFLICT else [expected])
