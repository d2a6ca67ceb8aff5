"""Which tables of a dbt source are passed to the model that decodes messages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.macro_renderer import MacroRenderer


def source(name: str, **settings: Any) -> SimpleNamespace:
    return SimpleNamespace(source_name="shop", name=name, identifier=name, settings=settings)


def test_tables_of_another_system_in_the_same_source_are_left_out() -> None:
    messages = {
        "system": "qlik_messages",
        "message_table": None,
        "table_schema": None,
        "table_from": "topic",
    }
    sources = {
        each.name: each
        for each in (
            source("landed", **messages),
            source("orders", **messages, key=["order_id"]),
            source("bills__ct", system="qlik_change_table", key=["bill_id"]),
        )
    }
    render = MacroRenderer(
        _settings_of=lambda node: messages,
        graph=SimpleNamespace(sources=sources),
        adapter=SimpleNamespace(
            afterimage=SimpleNamespace(settings=lambda entry: entry.settings),
        ),
    )
    assert render("_message_tables", SimpleNamespace(sources=[["shop", "landed"]])) == [
        {"name": "orders", "message_table": "orders", "table_schema": None, "key": ["order_id"]}
    ]


@pytest.mark.parametrize(
    ("table_from", "schema"),
    [("schema_id", "hr"), ("message", "hr"), ("topic", None), ("header", None)],
)
def test_only_some_messages_name_the_schema_of_their_table(
    table_from: str, schema: str | None
) -> None:
    settings = {"table_schema": "hr", "table_from": table_from}
    assert MacroRenderer()("_schema_in_messages", settings) == schema
