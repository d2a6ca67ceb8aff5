"""What is proposed for tables in messages of Debezium; messages as captured (tests/data)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dbt_afterimage.cli.commands.add_table import debezium, systems
from dbt_afterimage.cli.commands.add_table.debezium import UnreadableEventsError, event_of, propose
from dbt_afterimage.cli.commands.add_table.message_tables import MessageTable
from dbt_afterimage.cli.support.raw_schema.schema import Column, RawTable
from dbt_afterimage.settings.change_feed import ChangeFeedSettings

FEEDS = Path(__file__).parents[2] / "data" / "feeds"
RAW = RawTable(
    "shop_messages",
    tuple(Column(n, "string") for n in ("topic", "partition", "offset", "value", "timestamp")),
)
KEYS = ('{"id": 1}',)


def captured(name: str) -> tuple[str, ...]:
    page = json.loads((FEEDS / f"debezium.{name}.json").read_text(encoding="utf-8"))
    place = list(page["columns"]).index("value")
    return tuple(row[place] for row in page["rows"] if row[place] is not None)


def table(*values: str, keys: tuple[str, ...] = KEYS) -> MessageTable:
    return MessageTable(RAW, "shop.public.Customers", values, keys=keys)


def with_schema(*fields: dict[str, Any]) -> str:
    return json.dumps(
        {
            "schema": {"type": "struct", "fields": [{"field": "after", "fields": list(fields)}]},
            "payload": {"op": "c", "after": {}, "source": {"connector": "postgresql"}},
        }
    )


def event(connector: str, after: dict[str, Any]) -> str:
    return json.dumps({"op": "c", "after": after, "source": {"connector": connector}})


def test_debezium_messages_are_recognized() -> None:
    assert all(event_of(value) for value in captured("replica_identity_full"))
    assert event_of(with_schema())
    qlik = '{"data": {"id": 1}, "beforeData": null, "headers": {"operation": "INSERT"}}'
    assert not any(event_of(value) for value in (qlik, "no json", "[]", '{"op": "c"}'))
    assert debezium.is_of_debezium_itself("shop.transaction")
    assert not debezium.is_of_debezium_itself("shop.public.transactions")


def test_whole_rows_before_updates_are_before_images() -> None:
    found = propose(table(*captured("replica_identity_full")), "landed", "shop")
    (entry,) = found.tables
    assert (entry.name, entry.identifier) == ("customers", "shop_messages")
    assert entry.settings == {"preset": "debezium", "filter": "topic = 'shop.public.Customers'"}
    assert [(column.name, column.data_type) for column in entry.columns] == [
        ("id", "bigint"),
        ("name", "string"),
        ("biography", "string"),
    ]
    assert (found.key.columns, found.key.is_sure) == (("id",), True)
    assert found.staging_call == ["stage_change_feed", "'shop'", "'customers'"]
    assert found.has_before_images
    assert any("JSON has no dates" in note for note in found.notes)


def test_rows_with_the_key_alone_are_none() -> None:
    found = propose(table(*captured("replica_identity_default")), "landed", "shop")
    assert not found.has_before_images
    assert found.tables[0].settings["before_images"] is False


def test_a_schema_gives_types_and_encodings() -> None:
    """The names of types are those of Debezium's page on the PostgreSQL connector."""
    decimal = "org.apache.kafka.connect.data.Decimal"
    value = with_schema(
        {"field": "id", "type": "int32"},
        {"field": "born", "type": "int32", "name": "io.debezium.time.Date"},
        {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
        {"field": "short", "type": "int64", "name": "io.debezium.time.Timestamp"},
        {"field": "zoned", "type": "string", "name": "io.debezium.time.ZonedTimestamp"},
        {"field": "noon", "type": "int64", "name": "io.debezium.time.MicroTime"},
        {
            "field": "credit",
            "type": "bytes",
            "name": decimal,
            "parameters": {"scale": "2", "connect.decimal.precision": "10"},
        },
        {"field": "photo", "type": "bytes"},
        {"field": "tags", "type": "array"},
        {"field": "any", "type": "struct", "name": "io.debezium.data.VariableScaleDecimal"},
    )
    (entry,) = propose(table(value), "landed", "shop").tables
    assert [(column.name, column.data_type) for column in entry.columns] == [
        ("id", "int"),
        ("born", "date"),
        ("at", "timestamp_ntz"),
        ("short", "timestamp_ntz"),
        ("zoned", "timestamp"),
        ("noon", "string"),
        ("credit", "decimal(10,2)"),
        ("photo", "binary"),
        ("tags", "string"),
        ("any", "decimal(38,10)"),
    ]
    # the schema of each message says how it writes them
    assert "encodings" not in entry.settings
    ChangeFeedSettings.model_validate({"system": "change_feed", **entry.settings, "key": ["id"]})


def test_numbers_that_may_be_times_are_a_question() -> None:
    """Without a schema nothing says what a number counts."""
    row = {"id": 7, "made": 1772436600000, "seen": 1772436600000000, "size": 12345678}
    found = propose(table(event("postgresql", row)), "landed", "shop")
    types = [column.data_type for column in found.tables[0].columns]
    assert types == ["bigint"] * 4
    asked = [note for note in found.notes if "or a time?" in note]
    assert [note.partition(":")[0] for note in asked] == ["made", "seen"]
    assert "2026-03-02 07:30:00 in milliseconds" in asked[0]
    assert "`encodings: {made: milliseconds}`" in asked[0]
    assert "2026-03-02 07:30:00 in microseconds" in asked[1]


@pytest.mark.parametrize(
    ("connector", "preset"),
    [
        ("postgresql", "debezium"),
        ("mysql", "debezium_mysql"),
        ("mariadb", "debezium_mysql"),
        ("sqlserver", "debezium_sqlserver"),
        ("oracle", "debezium_oracle"),
        ("db2", "debezium_db2"),
        ("mongodb", "debezium_mongodb"),
    ],
)
def test_the_preset_is_that_of_the_connector(connector: str, preset: str) -> None:
    (entry,) = propose(table(event(connector, {"id": 1})), "landed", "shop").tables
    assert entry.settings["preset"] == preset
    ChangeFeedSettings.model_validate({"system": "change_feed", **entry.settings, "key": ["id"]})


def test_documents_of_mongodb() -> None:
    document = json.dumps(
        {"_id": {"$oid": "x"}, "seen": {"$date": 1}, "visits": {"$numberLong": "7"}, "tags": ["a"]}
    )
    value = json.dumps({"op": "c", "after": document, "source": {"connector": "mongodb"}})
    found = propose(table(value, keys=('{"id": "1"}',)), "landed", "shop")
    assert [(column.name, column.data_type) for column in found.tables[0].columns] == [
        ("_id", "string"),
        ("seen", "timestamp"),
        ("visits", "bigint"),
        ("tags", "string"),
    ]
    assert (found.key.columns, found.key.is_sure) == (("_id",), True)


@pytest.mark.parametrize("key", ['{"id": 7}', '{"schema": {}, "payload": {"id": 7}}'])
def test_the_key_of_a_message_is_the_tables(key: str) -> None:
    values = captured("replica_identity_full")
    found = propose(table(*values, keys=("no json", key)), "landed", "shop")
    assert (found.key.columns, found.key.is_sure) == (("id",), True)


def test_without_a_key_the_user_is_prompted() -> None:
    found = propose(table(*captured("replica_identity_full"), keys=()), "landed", "shop")
    assert (found.key.reason, found.key.is_sure) == ("its messages have no key", False)


def test_another_connector_is_refused() -> None:
    value = event("vitess", {"id": 1})
    with pytest.raises(
        UnreadableEventsError, match=r"landed\.shop_messages.*vitess.*mysql, .*Fix:"
    ):
        propose(table(value), "landed", "shop")


def test_events_without_a_row_are_refused() -> None:
    value = '{"op": "t", "after": null, "source": {"connector": "postgresql"}}'
    with pytest.raises(UnreadableEventsError, match=r"none of 1 sampled events.*Fix:"):
        propose(table(value), "landed", "shop")


def test_topics_of_debezium_itself_are_left_out_beside_its_tables_only() -> None:
    qlik = '{"data": {"id": 1}, "beforeData": null, "headers": {"operation": "INSERT"}}'
    payments = MessageTable(RAW, "shop.transaction", (qlik,))
    customers = table(*captured("replica_identity_full"))
    of_debezium = systems.tables_in_messages(
        [customers, replace(payments, data=('{"id": 1}',))], "landed"
    )
    assert [(each.system, each.table) for each in of_debezium] == [("change_feed", "customers")]
    of_qlik = systems.tables_in_messages([payments], "landed")
    assert [(each.system, each.table) for each in of_qlik] == [("qlik_messages", "transaction")]
