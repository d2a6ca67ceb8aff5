"""The web shop's messages, without Spark and Kafka: what they hold; dbt declares the same."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from afterimage_demo.kafka.generate import ShopData, generate_shop
from afterimage_demo.kafka.messages import Message, avro_schema
from afterimage_demo.kafka.tables import ARTICLES, CART_LINES, METADATA_TOPIC, SHOPPERS, TABLES
from afterimage_demo.kafka.transport import TOPICS
from afterimage_demo.systems import SYSTEMS
from dbt_afterimage.settings import parse_settings

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "demo/models/staging/qlik_messages/_qlik_messages__sources.yml"


@cache
def shop() -> ShopData:
    return generate_shop()


def of(topic: str, delivery: int) -> list[Message]:
    return [message for message in shop().deliveries[delivery - 1] if message.topic == topic]


def changes(messages: list[Message]) -> list[Message]:
    return [m for m in messages if m.headers.get("changeSequence")]


def test_the_same_arguments_give_the_same_data() -> None:
    assert generate_shop() == shop()
    assert generate_shop(seed=8).deliveries != shop().deliveries
    assert len(generate_shop(batches=1).deliveries) == 1
    assert SYSTEMS["kafka"].tables == tuple(TABLES)


def test_dbt_declares_the_tables_that_are_sent() -> None:
    sources = yaml.safe_load(SOURCES.read_text(encoding="utf-8"))["sources"]
    assert [source["name"] for source in sources] == [f"demo_{name}" for name in TOPICS]
    declared = {}
    for source in sources:
        messages, *tables = source["tables"]
        assert f"demo_{messages['identifier']}" == f"{source['name']}_messages"
        for table in tables:
            declared[table["name"]] = (source, table)
    assert declared.keys() == TABLES.keys()
    for name, table in TABLES.items():
        source, entry = declared[name]
        columns: dict[str, Any] = {column["name"]: column for column in entry["columns"]}
        assert {name: column["data_type"] for name, column in columns.items()} == table.types
        given = {"source_name": "shop", "name": name, "columns": columns}
        metas = {"source_meta": source["config"]["meta"], "meta": entry["config"]["meta"]}
        settings: Any = parse_settings({**given, **metas})
        assert settings["key"] == [*table.key]
        assert settings["before_images"] is table.before_images
        if settings["table_from"] == "topic":
            assert settings["message_table"] == table.topic
        if table is ARTICLES:
            registered = ROOT / settings["schema_registry"] / "1.avsc"
            assert json.loads(registered.read_text(encoding="utf-8")) == avro_schema(table, 1)


def test_each_topic_is_landed_in_one_raw_table() -> None:
    for topic in {METADATA_TOPIC, *[table.topic for table in TABLES.values()]}:
        assert len([1 for pattern in TOPICS.values() if re.fullmatch(pattern, topic)]) == 1


def test_one_partition_runs_behind_the_other() -> None:
    for table in TABLES.values():
        ends = {
            partition: max(
                str(m.headers["changeSequence"])
                for m in changes(of(table.topic, 1))
                if m.partition == partition
            )
            for partition in (0, 1)
        }
        assert ends[1] < ends[0]
        late = [m for m in changes(of(table.topic, 2)) if m.partition == 1]
        known = changes(of(table.topic, 1))
        assert [m for m in late if m not in known and m.headers["changeSequence"] < ends[0]]


def test_messages_are_sent_again() -> None:
    for table in TABLES.values():
        first, second = of(table.topic, 1), of(table.topic, 2)
        assert len(set(map(sent, first))) < len(first)
        assert set(map(sent, first)) & set(map(sent, second))


def sent(message: Message) -> tuple[Any, ...]:
    return message.topic, message.partition, message.key, message.value


def test_a_load_that_is_sent_again_makes_up_for_changes_that_were_lost() -> None:
    refreshed = [m for m in of(ARTICLES.topic, 2) if m.headers.get("operation") == "REFRESH"]
    assert len(refreshed) == 208
    for table in TABLES.values():
        loaded = [m for m in of(table.topic, 2) if m.headers.get("operation") == "REFRESH"]
        assert bool(loaded) is table.is_reloaded


def test_the_column_mask_says_what_was_not_read() -> None:
    values = [json.loads(m.value) for m in changes(of(SHOPPERS.topic, 1)) if m.value]
    unread = [v["message"] for v in values if v["message"]["headers"]["columnMask"] == "07F7"]
    assert unread
    assert all(message["data"]["email"] is None for message in unread)


def test_the_new_column_is_in_messages_of_the_second_version_alone() -> None:
    assert len(of(METADATA_TOPIC, 1)) == len(of(METADATA_TOPIC, 2)) == 1
    texts = [m.value or b"" for m in changes(of(CART_LINES.topic, 2))]
    assert any(b"-1\x00" in text for text in texts) and any(b"-2\x00" in text for text in texts)
