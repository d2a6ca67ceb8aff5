"""Field changes: which names a key column may have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.macro_renderer import CompilationError, MacroRenderer, normalised


def rendered(key: str, before_images: bool = True, **variables: bool) -> str:
    settings: dict[str, Any] = {
        "system": "qlik_change_table",
        "source_table": "erp.codes__ct",
        "key": [key],
        "before_images": before_images,
    }
    render = MacroRenderer(
        config=lambda **_: "",
        model=SimpleNamespace(name="codes_field_changes"),
        var=lambda name, default=None: variables.get(name, default),
        _settings_of=lambda node: settings,
        _data_columns=lambda relation, settings: [
            {"name": key, "data_type": "int"},
            {"name": "name", "data_type": "string"},
        ],
    )
    return normalised(render("field_changes", "codes_changes", history="codes_history"))


@pytest.mark.parametrize("before_images", [True, False])
@pytest.mark.parametrize("key", ["derived_from_id", "derived_from-id"])
def test_a_key_may_have_a_name_that_contains_one_of_the_columns(
    key: str, before_images: bool
) -> None:
    """Only the key's value can be in its column."""
    _, _, final = rendered(key, before_images).rpartition("select ")
    name = f"`{key}`" if "-" in key else key
    assert final.startswith(f"{name}, previous_key, change_seq")
    origin = "before_image" if before_images else "previous_version"
    assert final.endswith(
        f"old_value, new_value, '{origin}' as derived_from, recorded_at from compared"
    )


@pytest.mark.parametrize("key", ["Column_Name", "previous_key", "derived_from", "recorded_at"])
def test_a_key_with_the_name_of_one_of_the_columns(key: str) -> None:
    with pytest.raises(CompilationError, match=rf"key column `{key}`.*Fix: put a view over"):
        rendered(key)


def test_values_of_an_insert_come_from_no_image() -> None:
    final = rendered("id", field_changes_of_inserts_and_deletes=True).rpartition("select ")[2]
    assert "if(change_oper = 'I', null, 'before_image') as derived_from" in final
