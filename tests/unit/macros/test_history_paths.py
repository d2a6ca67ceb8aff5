"""Which path a run of history takes and what it says of it, by what is known before it reads."""

from __future__ import annotations

from typing import Any

import pytest

from tests.macro_renderer import MacroRenderer

FIRST = "20260302090000000000000000000000001"


def path_of(applied: dict[str, Any], **found: Any) -> dict[str, str]:
    render = MacroRenderer()
    batch = {
        "loads": 0,
        "first_seq": FIRST,
        "first_changed_at": None,
        "moves": 0,
        "truncates": 0,
        **found,
    }
    table = {"settings": {"base": None}}
    decision: dict[str, str] = render("_history_path", None, table, applied, batch, "true")
    return decision


@pytest.mark.parametrize(
    ("applied", "path", "why"),
    [
        # a first run over an empty log has written no rows and knows that it has not
        (
            {"is_known": True, "change_seq": None, "changed_at": None},
            "rebuild",
            "no change was applied before",
        ),
        (
            {"is_known": False, "change_seq": None, "changed_at": None},
            "rebuild",
            "what was applied before is not known, a run was cut off",
        ),
        (
            {"is_known": True, "change_seq": FIRST.replace("1", "0"), "changed_at": None},
            "incremental",
            "all changes are newer than what was applied",
        ),
    ],
)
def test_a_run_is_called_cut_off_only_where_one_was(
    applied: dict[str, Any], path: str, why: str
) -> None:
    assert path_of(applied) == {"path": path, "why": why}
