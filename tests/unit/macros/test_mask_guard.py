"""The guard of change masks: which changes of a raw table's columns it lets pass."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.macro_renderer import CompilationError, MacroRenderer
from tests.openedge_staging import CHANGES, TRACKING, settings_of

AUTO = {
    "system": "qlik_change_table",
    "source_table": "erp.orders__ct",
    "mask_first_data_bit": "auto",
    "mask_columns": [],
}
# three headers, three data columns, then a header that holds a place
WAS: dict[str, Any] = {"first_data_bit": 3, "columns": ["id", "status", "amount", None]}


@pytest.fixture(scope="module")
def render() -> MacroRenderer:
    return MacroRenderer()


def places(*columns: str | None, first_data_bit: int = 3) -> dict[str, Any]:
    return {"first_data_bit": first_data_bit, "columns": list(columns)}


@pytest.mark.parametrize("place", ["nowhere", "changes", "tracking", "everyone"])
def test_the_extract_that_names_changed_fields_needs_no_places(place: str) -> None:
    """It is the tracking extract that counts, as in staging: the other may have such a column."""
    columns = {
        "changes": [*CHANGES, "id", "name"],
        "tracking": [*TRACKING],
        "everyone": ["id", "name"],
    }
    columns.get(place, []).append("changed_fields")
    render = MacroRenderer(
        model=SimpleNamespace(
            depends_on=SimpleNamespace(macros=["macro.afterimage.stage_openedge"]),
            sources=[["erp", name] for name in columns],
        ),
        source=lambda source_name, name: name,
        _settings_of=lambda model: settings_of({"key": ["id"]}),
        _raw_columns=lambda name: [
            {"name": column, "data_type": "string"} for column in columns[name]
        ],
    )
    expected = {"first_data_bit": 0, "columns": ["id", "name"]}
    assert render("_mask_places") == (None if place == "tracking" else expected)


@pytest.mark.parametrize(
    "now",
    [
        WAS,
        places("id", "status", "amount", None, "city"),
        places("ID", "Status", "amount", "city"),
        None,
    ],
    ids=["the same", "a new last one", "at the place of a header", "no mask"],
)
def test_nothing_moved(render: MacroRenderer, now: dict[str, Any] | None) -> None:
    assert render("_check_mask_places", WAS, now, AUTO) == ""
    assert render("_check_mask_places", None, now, AUTO) == ""


@pytest.mark.parametrize(
    ("now", "what", "suggested"),
    [
        (
            places("id", "state", "amount", None),
            "place 1 was `status` and is `state`.",
            "id, state, amount",
        ),
        (
            places("id", "amount", None),
            "`amount` moved from place 2 to 1.",
            "id, status, amount",
        ),
        (
            places("id", "city", "status", "amount", None),
            "`status` moved from place 1 to 2; `amount` moved from place 2 to 3.",
            "id, status, amount, city",
        ),
        (
            places("id", "status"),
            "place 2 was `amount`, which is gone.",
            "id, status, amount",
        ),
    ],
    ids=["renamed", "gone in the middle", "new in the middle", "gone at the end"],
)
def test_columns_that_moved(
    render: MacroRenderer, now: dict[str, Any], what: str, suggested: str
) -> None:
    with pytest.raises(CompilationError) as error:
        render("_check_mask_places", WAS, now, AUTO)
    assert f"masks of source table erp.orders__ct no longer fit its columns: {what}" in str(
        error.value
    )
    assert "Nothing was written. Fix: set `mask_columns`" in str(error.value)
    assert f"If the bits stayed where they were: [{suggested}]." in str(error.value)
    said = AUTO | {"mask_columns": suggested.split(", ")}
    assert render("_check_mask_places", WAS, now, said) == ""


def test_a_header_between_data_columns_keeps_the_place_of_its_bit(render: MacroRenderer) -> None:
    was = places("id", "status", None, "city")
    with pytest.raises(
        CompilationError, match=r"were: \[id, status, header_at_2, city\]\. The test"
    ):
        render("_check_mask_places", was, places("id", None, "city"), AUTO)


def test_only_masks_of_qlik_have_a_test(render: MacroRenderer) -> None:
    feed = {"system": "change_feed", "source_table": "crm.people", "mask_columns": []}
    with pytest.raises(CompilationError) as error:
        render("_check_mask_places", WAS, places("id", "amount", None), feed)
    assert str(error.value).endswith("[id, status, amount].")


def test_another_number_of_headers(render: MacroRenderer) -> None:
    now = places(*WAS["columns"], first_data_bit=4)
    with pytest.raises(CompilationError) as error:
        render("_check_mask_places", WAS, now, AUTO | {"mask_columns": ["id", "status", "amount"]})
    assert (
        "3 header columns came before the first data column, and now it is 4. Each of them has a "
        "bit, so that every mask would be read differently. Nothing was written. Fix: set "
        "`mask_first_data_bit: 3` in the table's `meta.afterimage` if the masks stayed as they "
        "were, else `4`"
    ) in str(error.value)
    assert render("_check_mask_places", WAS, now, AUTO | {"mask_first_data_bit": 4}) == ""
