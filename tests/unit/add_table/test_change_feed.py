"""What is proposed for change feeds, from columns and a sample."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbt_afterimage.cli.commands.add_table.change_feed import (
    base_table,
    data_columns,
    preset_of,
    propose,
    table_name,
)
from dbt_afterimage.cli.commands.add_table.keys import Sample
from dbt_afterimage.cli.support.raw_schema.schema import Column, RawSchema, RawTable
from dbt_afterimage.settings.change_feed import ChangeFeedSettings

FEEDS = Path(__file__).parents[2] / "data" / "feeds"
FLAT = ("aws_dms", "debezium_flat", "delta_change_feed", "snapshots", "sql_server_cdc")


def raw(name: str, *columns: str) -> RawTable:
    return RawTable(name, tuple(Column(column, "string") for column in columns))


CDC = ("__$start_lsn", "__$seqval", "__$operation", "__$update_mask")
OF_CDC = raw("dbo_Customers_CT", *CDC, "__$command_id", "id", "name", "city")


@pytest.mark.parametrize("preset", FLAT)
def test_the_records_of_a_vendors_page_are_known_by_their_columns(preset: str) -> None:
    page = json.loads((FEEDS / f"{preset}.json").read_text(encoding="utf-8"))
    table = raw("customers_changes", *page["columns"])
    found = preset_of(table)
    assert found == preset
    data = set(data_columns(table, preset))
    assert set(page["settings"]["key"]) <= data < set(page["columns"])


def test_a_table_with_other_columns_is_no_feed() -> None:
    assert preset_of(raw("customers", "id", "name", "op")) is None
    assert preset_of(raw("loads", "load_date")) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dbo_Customers_CT", "customers"),
        ("sales_order_lines_changes", "sales_order_lines"),
        ("customers", "customers"),
        ("_changes", "changes"),
    ],
)
def test_names_of_models(name: str, expected: str) -> None:
    assert table_name(raw(name, "id")) == expected


def test_a_change_table_of_sql_server_with_its_full_load() -> None:
    base = raw("customers", "id", "name", "city")
    schema = RawSchema.of("landed", [OF_CDC, base])
    preset = preset_of(OF_CDC)
    assert preset is not None
    found = propose(OF_CDC, schema, preset, "crm", Sample(unique=(("id",),)))
    assert found.entry.settings == {"preset": "sql_server_cdc"}
    assert found.staging == "stg_crm__customers"
    assert found.staging_call[1:] == ["'crm'", "'dbo_Customers_CT'", "base='customers'"]
    assert (found.key.columns, found.key.reason) == (("id",), "unique in the base table")
    assert found.has_before_images
    assert found.key_columns == ["id", "name", "city"]


def test_a_feed_with_the_name_of_its_table_has_a_full_load_beside_it() -> None:
    feed = raw("customers", *CDC, "id", "name", "city")
    load = raw("customers_base", "id", "name", "city")
    preset = preset_of(feed)
    assert preset is not None
    for tables in ([feed, load], [load, feed]):
        assert base_table(feed, RawSchema.of("landed", tables), preset) is load


def test_a_change_table_of_an_older_sql_server_has_no_command_id() -> None:
    table = raw("dbo_Customers_CT", *CDC, "id", "name")
    preset = preset_of(table)
    assert preset is not None
    found = propose(table, RawSchema.of("landed", [table]), preset, "crm", Sample())
    settings = found.entry.settings
    parts = settings["sequence"]
    assert list(parts) == ["`__$start_lsn`", "`__$seqval`", "if(`__$operation` = 1, 0, 1)"]
    ChangeFeedSettings.model_validate({"system": "change_feed", **settings, "key": ["id"]})


def test_the_table_whose_changes_a_delta_feed_has_is_no_full_load() -> None:
    table = raw("orders_changes", "_change_type", "_commit_version", "_commit_timestamp", "id", "a")
    preset = preset_of(table)
    assert preset is not None
    schema = RawSchema.of("landed", [table, raw("orders", "id", "a")])
    assert base_table(table, schema, preset) is None


def test_deletes_with_the_key_alone_name_it() -> None:
    table = raw("orders", "__op", "__lsn", "__source_ts_ms", "__txId", "__deleted", "id", "total")
    preset = preset_of(table)
    assert preset is not None
    deletes = (frozenset({"id"}),) * 2
    schema = RawSchema.of("landed", [table])
    found = propose(table, schema, preset, "shop", Sample(deletes=deletes))
    assert (found.key.columns, found.key.is_sure) == (("id",), True)
    assert not found.has_before_images


def test_a_key_that_is_unique_in_inserts_with_another_one_is_not_sure() -> None:
    preset = preset_of(OF_CDC)
    assert preset is not None
    schema = RawSchema.of("landed", [OF_CDC])
    found = propose(OF_CDC, schema, preset, "crm", Sample(unique=(("id",),)))
    assert (found.key.reason, found.key.is_sure) == ("unique in the inserts", True)
    table = raw("dbo_orders_CT", *CDC, "order_id", "invoice_id")
    both = Sample(unique=(("order_id",), ("invoice_id",)))
    found = propose(table, RawSchema.of("landed", [table]), preset, "crm", both)
    assert (found.key.columns, found.key.is_sure) == (("order_id",), False)
    assert "as is invoice_id" in found.key.reason
