"""The macro as_of: how it distinguishes kinds of moments, and its error for any other text."""

from __future__ import annotations

from datetime import date, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from dbt_afterimage.settings import moment_kind
from tests.macro_renderer import CompilationError, MacroRenderer, normalised

SEQ = "20260302125956770000000000000000042"
TIME = "valid_from <= {0} and (valid_to > {0} or valid_to is null)"
ORDER = "valid_from_seq <= '{0}' and (valid_to_seq > '{0}' or valid_to_seq is null)"


def as_of(at: Any) -> str:
    render = MacroRenderer(
        adapter=SimpleNamespace(afterimage=SimpleNamespace(moment_kind=moment_kind)),
        _settings_of_relation=lambda relation: {
            "system": "qlik_change_table",
            "change_seq_form": "35 digits",
        },
    )
    return normalised(render("as_of", "people_history", at))


@pytest.mark.parametrize(
    ("at", "condition"),
    [
        ("2026-03-02 12:00:00", TIME.format("timestamp '2026-03-02 12:00:00'")),
        (" 2026-03-02T12:00:00.5Z ", TIME.format("timestamp '2026-03-02T12:00:00.5Z'")),
        ("2026-03-02", TIME.format("timestamp '2026-03-02'")),
        # as YAML reads them in --vars
        (date(2026, 3, 2), TIME.format("timestamp '2026-03-02'")),
        (datetime(2026, 3, 2, 12), TIME.format("timestamp '2026-03-02 12:00:00'")),
        (SEQ, ORDER.format(SEQ)),
        (int(SEQ), ORDER.format(SEQ)),
        ("0" * 35, ORDER.format("0" * 35)),
        (
            "current_timestamp() - interval 7 days",
            TIME.format("cast(current_timestamp() - interval 7 days as timestamp)"),
        ),
        ("date '2026-03-02'", TIME.format("cast(date '2026-03-02' as timestamp)")),
    ],
)
def test_a_moment_becomes_a_half_open_condition(at: Any, condition: str) -> None:
    assert as_of(at) == f"(select * from people_history where {condition})"


@pytest.mark.parametrize(
    "at", ["yesterday", "2026-02-30", "2026-3-2", "20260302", SEQ[:-1], f"{SEQ}0", "", None]
)
def test_what_names_no_moment_is_an_error(at: Any) -> None:
    with pytest.raises(CompilationError) as caught:
        as_of(at)
    message = str(caught.value)
    assert message.startswith(f"`as_of` of people_history: `at` is '{at}'. Allowed: ")
    parts = ("2026-03-02 12:00:00", "change_seq, 35 digits", "SQL expression", "Fix: ")
    assert [part for part in parts if part not in message] == []
