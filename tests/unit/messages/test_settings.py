"""Settings of Qlik messages: what is refused, and what the error says."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_afterimage.settings import SettingsError, has_own_loads, parse_settings


def parse(**settings: Any) -> Any:
    given = {"system": "qlik_messages", **settings}
    meta = {"afterimage": given}
    return parse_settings({"source_name": "shop", "name": "carts", "meta": meta})


def test_by_default_the_topic_gives_the_table_and_the_yaml_its_columns() -> None:
    settings = parse(key=["cart_id"])
    assert settings["table_from"] == "topic"
    assert settings["schemas_from"] == "columns"
    assert settings["change_seq_form"] == "35 digits"
    assert has_own_loads(settings)


def test_a_schema_comes_from_metadata_or_from_the_messages_themselves() -> None:
    assert parse(table_from="message", table_schema="hr")["table_schema"] == "hr"
    of_metadata = {"table_from": "schema_id", "schemas_from": "metadata"}
    assert parse(**of_metadata, table_schema="hr")["table_schema"] == "hr"
    assert parse(schemas_from="metadata", table_schema="hr")["table_schema"] == "hr"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"table_from": "key"},
            "`table_from` is 'key'. Allowed: topic, schema_id, header, message.",
        ),
        ({"table_from": "header"}, "`table_header` names the record header"),
        ({"table_header": "table"}, "`table_header` names the record header"),
        ({"schemas_from": "registry"}, "`schema_registry` is missing"),
        ({"table_from": "schema_id"}, "known from metadata messages alone"),
        ({"table_schema": "shop"}, "only metadata messages and the messages themselves"),
        (
            {"mask_columns": ["id"], "schemas_from": "metadata"},
            "metadata messages have the ordinals of each version",
        ),
        ({"base": {"kind": "frozen"}}, "A full load comes as messages (REFRESH)"),
        ({"look_back": "a while"}, "is not a duration"),
        ({"table_form": "topic"}, "Did you mean `table_from`?"),
    ],
)
def test_what_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError) as refused:
        parse(**settings)
    assert words in str(refused.value)
    assert "shop.carts" in str(refused.value)
    assert "Fix: " in str(refused.value)
