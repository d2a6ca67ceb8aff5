"""What is proposed for OpenEdge change tables, from columns and a sample."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt_afterimage.cli.commands.add_table import openedge
from dbt_afterimage.cli.commands.add_table.openedge import (
    OpenEdgeSample,
    TableNumberUnknownError,
    propose,
)
from dbt_afterimage.cli.support.raw_schema.schema import Column, RawSchema, RawTable

CHANGES = RawTable(
    "CDC_Work-Order",
    (
        Column("_Change-Sequence", "bigint"),
        Column("_Operation", "int"),
        Column("order-num", "bigint"),
        Column("phones", "string"),
    ),
)
# a loader wrote underscores for hyphens
TRACKING = RawTable(
    "cdc_change_tracking",
    (
        Column("_change_sequence", "bigint"),
        Column("_operation", "int"),
        Column("_source_table_number", "int"),
    ),
)
BASE = RawTable(
    "work_order",
    (Column("order-num", "bigint"), Column("phones", "array<string>")),
    declared_key=("order-num",),
)
SCHEMA = RawSchema.of("landed", [CHANGES, TRACKING, BASE])
SAMPLE = OpenEdgeSample(operations={1, 3, 4}, numbers={12: 50, 13: 20}, rows=50)


def test_tables_are_recognized_by_their_columns() -> None:
    assert openedge.is_change_table(CHANGES)
    assert not openedge.is_change_table(TRACKING)
    assert not openedge.is_change_table(BASE)
    assert openedge.tracking_table(SCHEMA) is TRACKING


def test_a_change_table_with_the_name_of_its_table_has_a_full_load_beside_it() -> None:
    changes, load = replace(CHANGES, name="Work-Order"), replace(BASE, name="work_order_base")
    for tables in ([changes, load], [load, changes]):
        assert openedge.base_table(changes, RawSchema.of("landed", tables)) is load


def test_the_table_number_is_the_one_that_has_the_changes() -> None:
    found = propose(CHANGES, SCHEMA, "plant", SAMPLE)
    assert found.table == "work_order"
    assert found.entry.settings == {
        "table_number": 12,
        "arrays": ["phones"],
    }
    assert found.staging_call == [
        "stage_openedge",
        "'plant'",
        "'CDC_Work-Order'",
        "tracking='cdc_change_tracking'",
        "base='work_order'",
    ]
    assert found.key.columns == ("order-num",)
    assert [table.name for table in found.shared_tables] == ["cdc_change_tracking"]


@pytest.mark.parametrize("numbers", [{}, {12: 20}, {12: 50, 13: 49}])
def test_a_table_number_that_is_not_sure_is_an_error(numbers: dict[int, int]) -> None:
    with pytest.raises(TableNumberUnknownError, match=r"landed\.CDC_Work-Order: .*Fix: land"):
        propose(CHANGES, SCHEMA, "plant", replace(SAMPLE, numbers=numbers))


def test_updates_without_a_row_before_them_are_those_of_level_2() -> None:
    found = propose(CHANGES, SCHEMA, "plant", replace(SAMPLE, operations={1, 4}))
    assert found.entry.settings["policy_level"] == 2
    assert not found.has_before_images
