"""Which marts a run compacts after it has written to them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.macro_renderer import MacroRenderer


@pytest.mark.parametrize(
    ("mart", "auto_compact", "compacted"),
    [
        ("history", True, ["erp.people"]),
        ("history", False, []),
        ("current", False, []),
        ("change_activity", False, ["erp.people"]),
    ],
)
def test_the_setting_of_the_source_table_decides(
    mart: str, auto_compact: bool, compacted: list[str]
) -> None:
    found: list[Any] = []
    api = SimpleNamespace(compact_at_end=found.append)
    render = MacroRenderer(
        adapter=SimpleNamespace(afterimage=api),
        model=SimpleNamespace(name="people"),
        _settings_of=lambda node: {"auto_compact": auto_compact},
    )
    render("_compact_at_end", "erp.people", mart)
    assert found == compacted
