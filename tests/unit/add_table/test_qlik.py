"""What is proposed for Qlik change tables, from columns and a sample; no Spark."""

from __future__ import annotations

from dataclasses import replace

from dbt_afterimage.cli.commands.add_table import qlik
from dbt_afterimage.cli.commands.add_table.keys import Sample
from dbt_afterimage.cli.support.raw_schema.qlik_change_table import is_change_table
from dbt_afterimage.cli.support.raw_schema.schema import Column, RawSchema, RawTable

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


def test_settings_are_left_out_where_the_default_is_right() -> None:
    found = qlik.propose(CHANGES, SCHEMA, "sales", Sample(operations=frozenset("BU")))
    assert found.table == "invoices"
    assert found.entry.settings == {}
    assert found.staging_call[1:] == ["'sales'", "'invoices__ct'", "base='invoices'"]
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
    assert not any("text" in note for note in typed.notes)


def test_a_key_of_text_is_told_about_types() -> None:
    text = (replace(DATA[0], data_type="string"), *DATA[1:2], Column("amount", "double"))
    changes = RawTable("bills__ct", (*HEADERS, MASK, *text))
    base = RawTable("bills", text, declared_key=("id",))
    found = qlik.propose(changes, RawSchema.of("sales", [base, changes]), "s", Sample())
    assert found.key.columns == ("id",)
    assert any("the key id is text" in note for note in found.notes)


def test_the_prefix_and_the_base_are_found_by_columns_and_name() -> None:
    renamed = RawTable(
        "INVOICES_changes",
        (Column("HDR_change_seq", "string"), Column("HDR_change_oper", "string"), *DATA),
    )
    schema = RawSchema.of("sales", [BASE, renamed])
    found = qlik.propose(renamed, schema, "sales", Sample())
    assert found.entry.settings["header_prefix"] == "HDR_"
    assert [table.name for table in found.tables] == ["INVOICES_changes", "invoices"]
    assert not found.has_mask


def test_header_columns_that_are_not_qliks_own_are_proposed() -> None:
    # the last three could not be columns of a change
    names = ("UserName", "partition_name", "status", "changed_at", "user name")
    headers = [Column(f"header__{name}", "string") for name in names]
    changes = RawTable("invoices__ct", (*HEADERS, MASK, *DATA, *headers))
    found = qlik.propose(changes, RawSchema.of("sales", [changes]), "sales", Sample())
    assert found.entry.settings["header_columns"] == ["username"]
    assert "username; the change log keeps them" in " ".join(found.notes)


def test_a_base_table_without_the_columns_is_none() -> None:
    other = RawTable("invoices", (Column("x", "int"), Column("y", "int")))
    found = qlik.propose(CHANGES, RawSchema.of("sales", [other, CHANGES]), "sales", Sample())
    assert found.table == "invoices"
    assert found.base is None


def test_updates_without_any_before_image() -> None:
    found = qlik.propose(CHANGES, SCHEMA, "s", Sample(operations=frozenset("U")))
    assert not found.has_before_images
    assert found.entry.settings["before_images"] is False


def test_what_is_no_change_table() -> None:
    assert not is_change_table(BASE)
    assert is_change_table(CHANGES)
