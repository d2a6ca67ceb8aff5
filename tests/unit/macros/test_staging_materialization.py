"""The macros of staging models set their materialization: a user's project sets it nowhere else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.macro_renderer import MACROS, MacroRenderer

PUBLIC = sorted(
    file.stem for file in (MACROS / "staging").rglob("*.sql") if not file.stem.startswith("_")
)


class ConfiguredError(Exception):
    """Carries what a macro hands to `config`, and ends it there."""


def config(**given: Any) -> None:
    raise ConfiguredError(given)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_staging_macro_makes_a_staging_view(name: str) -> None:
    render = MacroRenderer(config=config)
    with pytest.raises(ConfiguredError) as found:
        render(name, *render.arguments(name))
    assert found.value.args == ({"materialized": "staging_view"},)


@pytest.mark.parametrize(
    ("persist_docs", "relation", "columns"),
    [
        ({}, "A model.", {"id": "Its key."}),
        ({"relation": True}, "A model.", {}),
        ({"columns": True}, "", {"id": "Its key."}),
        ({"relation": False, "columns": False}, "", {}),
    ],
)
def test_descriptions_are_stored_as_persist_docs_says(
    persist_docs: dict[str, bool], relation: str, columns: dict[str, str]
) -> None:
    described = {
        "id": SimpleNamespace(description="Its key."),
        "a": SimpleNamespace(description=""),
    }
    render = MacroRenderer(
        config=SimpleNamespace(get=lambda name: persist_docs),
        model=SimpleNamespace(description="A model.", columns=described),
    )
    assert render("_relation_description") == relation
    assert render("_column_descriptions") == columns
