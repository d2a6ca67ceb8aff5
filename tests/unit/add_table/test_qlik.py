"""What is proposed for Qlik change tables, from columns and a sample; no Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt_afterimage.cli.add_table import qlik
from dbt_afterimage.cli.add_table.proposal import NO_EVIDENCE, unanswered_base
from dbt_afterimage.cli.add_table.raw_schema import (
    ChangeRecord,
    Column,
    RawSchema,
    RawTable,
    Sample,
)

HEADERS = tuple(Column(f"header__{name}", "string") for name in ("change_seq", "change_oper"))
MASK = Column("header__change_mask", "string")
DATA = (
    Column("id", "bigint", "Number of the invoice."),
    Column("status", "string"),
    Column("amount", "string"),
)
BASE = RawTable(
    "invoices", (*DATA[:2], Column("amount", "decimal(9,2)", "In EUR.")), declared_key=("id",)
)
CHANGES = RawTable("invoices__ct", (*HEADERS, MASK, *DATA))
SCHEMA = RawSchema.of("sales", [BASE, CHANGES, RawTable("other", (Column("id", "int"),))])

B = ChangeRecord("B", "1", None, (1, 10, 20))
U = ChangeRecord("U", "1", "10", (1, 11, 20))


def test_settings_are_left_out_where_the_default_is_right() -> None:
    found = qlik.propose(CHANGES, SCHEMA, "sales", Sample(records=(B, U)))
    assert found.table == "invoices"
    assert found.tables[0].settings == {"base": unanswered_base(NO_EVIDENCE)}
    assert found.staging_arguments == ("'sales'", "'invoices__ct'", "base='invoices'")
    assert found.has_mask and found.has_before_images
    assert found.key.columns == ("id",)


def test_columns_are_described_and_text_gets_the_type_of_the_base_table() -> None:
    columns = {c.name: c for c in qlik.propose(CHANGES, SCHEMA, "s", Sample()).tables[0].columns}
    assert list(columns) == CHANGES.names()
    assert all(column.description for column in columns.values())
    assert columns["id"].description == "Number of the invoice."
    assert columns["amount"].description == "In EUR."
    assert columns["amount"].data_type == "decimal(9,2)"
    assert columns["status"].data_type is None


def test_a_table_of_texts_is_told_about_types() -> None:
    texts = tuple(replace(column, data_type="string") for column in DATA)
    changes = RawTable("bills__ct", (*HEADERS, MASK, *texts))
    found = qlik.propose(changes, RawSchema.of("sales", [changes]), "s", Sample())
    assert any("all columns are text" in note for note in found.notes)
    typed = qlik.propose(CHANGES, SCHEMA, "s", Sample())
    assert not any("all columns are text" in note for note in typed.notes)


def test_the_prefix_and_the_base_are_found_by_columns_and_name() -> None:
    renamed = RawTable(
        "INVOICES_changes",
        (Column("HDR_change_seq", "string"), Column("HDR_change_oper", "string"), *DATA),
    )
    schema = RawSchema.of("sales", [BASE, renamed])
    found = qlik.propose(renamed, schema, "sales", Sample())
    assert found.tables[0].settings["header_prefix"] == "HDR_"
    assert [table.name for table in found.tables] == ["INVOICES_changes", "invoices"]
    assert not found.has_mask


def test_header_columns_that_are_not_qliks_own_are_proposed() -> None:
    # the last three could not be columns of a change
    names = ("UserName", "partition_name", "status", "changed_at", "user name")
    headers = [Column(f"header__{name}", "string") for name in names]
    changes = RawTable("invoices__ct", (*HEADERS, MASK, *DATA, *headers))
    found = qlik.propose(changes, RawSchema.of("sales", [changes]), "sales", Sample())
    assert found.tables[0].settings["header_columns"] == ["username"]
    assert "username; the change log keeps them" in " ".join(found.notes)


def test_a_base_table_without_the_columns_is_none() -> None:
    other = RawTable("invoices", (Column("x", "int"), Column("y", "int")))
    found = qlik.propose(CHANGES, RawSchema.of("sales", [other, CHANGES]), "sales", Sample())
    assert found.table == "invoices"
    assert len(found.tables) == 1
    assert "base" not in found.tables[0].settings


def updates(count: int) -> list[ChangeRecord]:
    """Each of another row, from 10 to 11."""
    return [
        ChangeRecord(operation, str(row), mask, (row, amount, 20))
        for row in range(count)
        for operation, mask, amount in (("B", None, 10), ("U", "10", 11))
    ]


@pytest.mark.parametrize(
    ("count", "present", "expected"),
    [
        (20, 20, {"kind": "live"}),
        (20, 0, {"kind": "frozen"}),
        # too few, and such that disagree, as after a restart of the full load
        (1, 1, unanswered_base("it has 1 of 1 sampled updates already and lacks 0")),
        (1, 0, unanswered_base("it has 0 of 1 sampled updates already and lacks 1")),
        (40, 20, unanswered_base("it has 20 of 40 sampled updates already and lacks 20")),
    ],
)
def test_only_many_updates_that_agree_decide_what_the_base_table_is(
    count: int, present: int, expected: dict[str, Any]
) -> None:
    rows = tuple((row, 11 if row < present else 10, 20) for row in range(count))
    sample = Sample(records=tuple(updates(count)), base_rows=rows)
    found = qlik.propose(CHANGES, SCHEMA, "s", sample)
    assert found.tables[0].settings["base"] == expected


def test_updates_without_any_before_image() -> None:
    without = tuple(record for record in updates(20) if record.operation == "U")
    rows = tuple((row, 11, 20) for row in range(20))
    found = qlik.propose(CHANGES, SCHEMA, "s", Sample(records=without, base_rows=rows))
    assert not found.has_before_images
    # a live base needs before images to be reconstructed
    assert "?" in found.tables[0].settings["base"]["kind"]


def test_mask_settings_follow_from_the_data() -> None:
    update = replace(U, mask="1000")
    found = qlik.propose(CHANGES, SCHEMA, "s", Sample(records=(B, update)))
    assert found.tables[0].settings["mask_byte_order"] == "lsb_first"
    update = replace(U, mask="02")
    found = qlik.propose(CHANGES, SCHEMA, "s", Sample(records=(B, update)))
    assert found.tables[0].settings["mask_first_data_bit"] == 0


def test_what_is_no_change_table() -> None:
    assert not qlik.is_change_table(BASE)
    assert qlik.is_change_table(CHANGES)
