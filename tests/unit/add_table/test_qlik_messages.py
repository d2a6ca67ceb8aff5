"""What is proposed for tables in landed messages; messages as captured (tests/data)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dbt_afterimage.cli.commands.add_table import systems
from dbt_afterimage.cli.commands.add_table.message_tables import (
    MessageTable,
    is_messages,
    newest_metadata,
)
from dbt_afterimage.cli.commands.add_table.qlik_messages import UnreadableMessagesError, propose
from dbt_afterimage.cli.commands.add_table.render import Layout, files
from dbt_afterimage.cli.support.raw_schema.schema import Column, RawTable

DATA = Path(__file__).parents[2] / "data" / "qlik_messages"
RAW = RawTable(
    "messages",
    tuple(Column(n, "string") for n in ("topic", "partition", "offset", "value", "timestamp")),
)


def message(operation: str, data: dict[str, Any], before: dict[str, Any] | None = None) -> str:
    return json.dumps({"data": data, "beforeData": before, "headers": {"operation": operation}})


INSERT = message(
    "INSERT",
    {"order_id": 1, "code": "007", "paid": True, "total": 1.5, "due": "2026-03-01", "note": None},
)
UPDATE = message("UPDATE", {"order_id": 1, "code": "8"}, {"order_id": 1, "code": "007"})
TABLE = MessageTable(RAW, "shop.orders", (INSERT, UPDATE))


def test_metadata_names_columns_and_key_of_the_newest_version() -> None:
    old = json.loads((DATA / "metadata.json").read_text(encoding="utf-8"))
    new = json.loads(json.dumps(old))
    new["message"]["lineage"]["tableVersion"] = 2
    new["message"]["tableStructure"]["tableColumns"]["bonus"] = {
        "ordinal": 5,
        "type": "INT4",
        "primaryKeyPosition": 0,
    }
    found = newest_metadata([json.dumps(new), json.dumps(old), "no json"])
    assert list(found) == [("employees", "salaries")]
    table = MessageTable(RAW, "salaries", (), found["employees", "salaries"])
    proposal = propose(table, "landed", "staff")
    assert proposal.source_settings["schemas_from"] == "metadata"
    assert proposal.key.columns == ("emp_no", "from_date")
    assert proposal.key.is_sure
    columns = proposal.tables[0].columns
    assert [column.name for column in columns] == [
        "emp_no",
        "salary",
        "from_date",
        "to_date",
        "bonus",
    ]
    # a type in the YAML would win over later versions
    assert {column.data_type for column in columns} == {None}


def test_without_metadata_columns_and_types_follow_from_the_data() -> None:
    proposal = propose(TABLE, "landed", "shop")
    assert proposal.tables[0].settings == {"message_table": "shop.orders"}
    assert {c.name: c.data_type for c in proposal.tables[0].columns} == {
        "order_id": "bigint",
        # text may be a number that begins with zeros
        "code": "string",
        "paid": "boolean",
        # a fraction has no type that is surely right
        "total": "string",
        "due": "date",
        "note": "string",
    }
    assert not proposal.key.is_sure


def test_deletes_that_hold_the_key_only_name_it() -> None:
    deletes = (message("DELETE", {"order_id": 1}), message("DELETE", {"order_id": 2}))
    proposal = propose(replace(TABLE, data=(*TABLE.data, *deletes)), "landed", "shop")
    assert (proposal.key.columns, proposal.key.is_sure) == (("order_id",), True)


def test_updates_without_before_data() -> None:
    update = message("UPDATE", {"order_id": 1})
    assert not propose(replace(TABLE, data=(update,)), "landed", "shop").has_before_images


def test_messages_that_are_no_json_are_an_error_that_says_what_to_do() -> None:
    with pytest.raises(UnreadableMessagesError, match=r"shop\.orders is JSON.*Fix: declare"):
        propose(replace(TABLE, data=("Obj\x01",)), "landed", "shop")


def test_one_model_decodes_the_messages_of_all_tables() -> None:
    found = files(propose(TABLE, "landed", "store"), Layout("models", "python_models", ""))
    kafka = (DATA.parents[2] / "docs" / "kafka.md").read_text(encoding="utf-8")
    shared = found["python_models/staging/store/stg_store__messages.py"]
    assert 'dbt.source("store", "messages")' in shared
    assert "from dbt_afterimage.messages import build_messages" in kafka
    assert "from dbt_afterimage.messages import build_messages" in shared
    assert (
        "messages=ref('stg_store__messages')"
        in (found["models/staging/store/stg_qlik_messages__orders.sql"])
    )


def test_which_tables_hold_messages() -> None:
    assert is_messages(RAW)
    assert not is_messages(RawTable("other", RAW.columns[:3]))


def in_schema(schema: str, name: str) -> MessageTable:
    structure = {"tableColumns": {"id": {"ordinal": 1, "primaryKeyPosition": 1}}}
    lineage = {"schema": schema, "table": name}
    return MessageTable(RAW, name, metadata={"lineage": lineage, "tableStructure": structure})


def test_tables_of_one_name_are_told_apart_by_their_schemas() -> None:
    tables = [in_schema("hr", "orders"), in_schema("sales", "orders"), in_schema("hr", "lines")]
    found = list(systems.tables_in_messages(tables, "landed"))
    assert [(each.name, each.table) for each in found] == [
        ("hr.orders", "hr_orders"),
        ("sales.orders", "sales_orders"),
        ("lines", "lines"),
    ]
    settings = []
    for each in found:
        (table,) = each.propose("store").tables
        settings.append((table.settings["message_table"], table.settings.get("table_schema")))
    assert settings == [("orders", "hr"), ("orders", "sales"), ("lines", None)]


def test_tables_of_one_name_are_told_apart_by_their_topics() -> None:
    topics = ("shop.public.orders", "shop.audit.orders", "shop.public.lines")
    tables = [replace(TABLE, name=topic) for topic in topics]
    found = systems.tables_in_messages(tables, "landed")
    assert [(each.name, each.table) for each in found] == [
        ("shop.public.orders", "shop_public_orders"),
        ("shop.audit.orders", "shop_audit_orders"),
        ("shop.public.lines", "lines"),
    ]
