"""Sentences of the vendor's page on messages, each as a few messages and what becomes of them.

Without dbt: the project's decoding, and the rendered staging SQL. Expected rows are by hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from afterimage_demo.kafka.avro import encode
from afterimage_demo.kafka.forms import avro_envelope, avro_registered, data_schema
from dbt_afterimage.change_log.deciding.pairing import pair
from dbt_afterimage.settings import OPTIONAL_COLUMNS
from dbt_afterimage.sources.qlik_messages import schema_decoder
from tests.macro_renderer import CompilationError
from tests.messages_staging import (
    data,
    decode,
    decoded,
    metadata,
    settings_of,
    staged,
    staging_sql,
)
from tests.qlik_messages import change
from tests.tiers import nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMS = ["json", "envelope", "registry"]
BY_METADATA = {"schemas_from": "metadata"}
# `b`, ordinal 3, was dropped at the source
GAPS = {"id": 1, "a": 2, "c": 4}


def avro_schema(columns: Sequence[str], headers: Sequence[str] = ()) -> dict[str, Any]:
    """The Avro schema of data messages with columns of whole numbers, and more text headers."""
    schema = data_schema(dict.fromkeys(columns, "int"))
    of_headers = next(field for field in schema["fields"] if field["name"] == "headers")
    of_headers["type"]["fields"] += [{"name": name, "type": ["null", "string"]} for name in headers]
    return schema


def in_form(
    form: str, message: dict[str, Any], schema: dict[str, Any], schema_id: str | None
) -> Any:
    """A bare message as it travels; masks, hex text, are bytes in Avro, least significant first."""
    if form == "json":
        return {"magic": "atMSG", "type": "DT", "messageSchemaId": schema_id, "message": message}
    headers = dict(message["headers"])
    for name in ("changeMask", "columnMask"):
        headers[name] = headers[name] and bytes.fromhex(headers[name])[::-1]
    value = encode(schema, {**message, "headers": headers})
    if form == "registry":
        assert schema_id is not None
        return avro_registered(int(schema_id), value)
    return avro_envelope(value, schema_id=schema_id)


def folder_of(schemas: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Schemas as a registry; returns the settings that name it."""
    for schema_id, schema in schemas.items():
        (folder / f"{schema_id}.avsc").write_text(json.dumps(schema), encoding="utf-8")
    return {"schema_registry": str(folder)}


def told(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in ("change_oper", *names)) for row in rows]


# --- masks: the bit's position is the column's ordinal in the metadata message


@pytest.mark.parametrize("form", FORMS)
def test_bits_of_masks_are_ordinals_of_the_metadata_message(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    """The page: 1011 in binary, 0B, are the ordinals 1, 2 and 4."""
    schema = avro_schema([*GAPS])
    masks = {"changeMask": "08", "columnMask": "0B"}
    messages = [
        change("INSERT", 1, {"id": 1, "a": 1, "c": 5}, changeMask="0B", columnMask="0B"),
        change("UPDATE", 2, {"id": 1, "a": 1, "c": None}, {"id": 1, "a": 1, "c": 5}, **masks),
        change("UPDATE", 3, {"id": 1, "a": None, "c": 6}, {"id": 1, "a": None, "c": None},
               changeMask="08", columnMask="09"),
    ]  # fmt: skip
    rows = staged(
        spark,
        [
            metadata("7", GAPS, schema=schema),
            *[in_form(form, message, schema, "7") for message in messages],
        ],
        {**BY_METADATA, **folder_of({"7": schema}, tmp_path)},
    )
    names = ("reject_reason", "declared_changed_columns", "known_columns", "a", "c")
    assert told(rows, *names) == [
        ("I", None, ["id", "a", "c"], None, 1, 5),
        ("B", None, None, None, 1, 5),
        ("U", None, ["c"], None, 1, None),
        ("B", None, None, ["id", "c"], None, None),
        ("U", None, ["c"], ["id", "c"], None, 6),
    ]


def test_each_version_of_a_table_has_its_own_ordinals(spark: SparkSession) -> None:
    """One source numbers its columns again after a drop, another one leaves a gap."""
    whole = {"id": 1, "a": 2, "b": 3, "c": 4}
    messages: list[Any] = [
        metadata("1", whole, version=1),
        metadata("2", GAPS, version=2),
        metadata("3", {"id": 1, "a": 2, "c": 3}, version=3),
        # columns in another order than their ordinals, and a gap before the first
        metadata("4", {"c": 9, "id": 2, "a": 5}, version=4),
    ]
    masks = {"1": "08", "2": "08", "3": "04", "4": "0100"}
    for number, (schema_id, mask) in enumerate(masks.items(), 1):
        row = {"id": 1, "a": 2, "c": number} | ({"b": 3} if schema_id == "1" else {})
        update = ("UPDATE", number, row, {**row, "c": 0})
        messages.append(data(*update, schema_id=schema_id, changeMask=mask, columnMask="0FFF"))
    rows = staged(spark, messages, BY_METADATA)
    # 0FFF is too wide where the last ordinal is 4, and not where it is 9
    assert [row["reject_reason"] for row in rows] == ["mask_too_wide"] * 6 + [None] * 2
    assert [row["declared_changed_columns"] for row in rows if row["change_oper"] == "U"] == [
        ["c"]
    ] * 4
    assert rows[-1]["known_columns"] == ["id", "a", "c"]


def test_messages_without_a_schema_id_go_by_the_newest_version(spark: SparkSession) -> None:
    """A column that only an older version has keeps its ordinal, where no other has taken it."""
    messages = [
        metadata("1", {"id": 1, "a": 2, "b": 3, "c": 4, "z": 5}, version=1),
        metadata("2", {"id": 1, "a": 2, "c": 4, "d": 5}, version=2),
        change("UPDATE", 1, {"id": 1, "c": None}, {"id": 1, "c": 5}, changeMask="08"),
        change("UPDATE", 2, {"id": 1, "b": 1}, {"id": 1, "b": 2}, changeMask="04"),
        change("UPDATE", 3, {"id": 1, "d": 1}, {"id": 1, "d": 2}, changeMask="10"),
    ]
    rows = staged(spark, messages, BY_METADATA)
    updates = [row for row in rows if row["change_oper"] == "U"]
    assert told(updates, "declared_changed_columns") == [("U", [name]) for name in "cbd"]


@pytest.mark.parametrize("form", nightly(*FORMS))
def test_mask_columns_lists_columns_by_ordinal_where_no_metadata_has_them(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    schema = avro_schema([*GAPS])
    update = change("UPDATE", 2, {"id": 1, "a": 1, "c": None}, {"id": 1, "a": 1, "c": 5},
                    changeMask="08", columnMask="0B")  # fmt: skip
    settings: dict[str, Any] = {"mask_columns": ["id", "a", "gone", "C"]}
    if form == "registry":
        settings |= {"schemas_from": "registry", **folder_of({"7": schema}, tmp_path)}
    message = in_form(form, update, schema, "7")
    if form == "envelope":
        headers = {**update["headers"], "changeMask": b"\x08", "columnMask": b"\x0b"}
        value = encode(schema, {**update, "headers": headers})
        message = avro_envelope(value, schema=json.dumps(schema))
    rows = staged(spark, [message], settings, dict.fromkeys(GAPS, "int"))
    assert told(rows, "declared_changed_columns", "known_columns") == [
        ("B", None, None),
        ("U", ["c"], None),
    ]


@pytest.mark.parametrize("ordinals", [(1, 1, 2), (0, 1, 2), (1, 2, None), (1, 2, 40_000)])
def test_a_metadata_message_without_clear_ordinals_is_rejected(
    spark: SparkSession, ordinals: tuple[int | None, ...]
) -> None:
    """Mask bits would be ambiguous, and a large ordinal would need memory for all before it."""
    messages = [
        metadata("1", dict(zip(GAPS, ordinals, strict=True))),
        data("INSERT", 1, {"id": 1}, schema_id="1"),
    ]
    rows = decoded(spark, messages, settings_of(BY_METADATA, {"id": "int"})).collect()
    assert [(row["kind"], row["reject_reason"]) for row in rows] == [
        ("rejected", "malformed_message"),
        ("rejected", "unknown_schema"),
    ]
    assert rows[0]["reject_detail"] == (
        "the ordinals of its columns are not different whole numbers from 1 to 32767"
    )


# --- the id of a message's schema: in the envelope, or in `headers.externalSchemaId`


def with_external_id(
    form: str, message: dict[str, Any], columns: Sequence[str], external: str, **envelope: Any
) -> Any:
    headers = {**message["headers"], "externalSchemaId": external}
    message = {**message, "headers": headers}
    if form == "bare":
        return message
    if form == "json":
        return {"magic": "atMSG", "type": "DT", "message": message, **envelope}
    schema = avro_schema(columns, ["externalSchemaId"])
    value = encode(schema, message)
    if form == "registry":
        return avro_registered(7, value)
    given = {"messageSchemaId": None, "messageSchema": json.dumps(schema), **envelope}
    return avro_envelope(value, schema_id=given["messageSchemaId"], schema=given["messageSchema"])


@pytest.mark.parametrize("form", ["envelope", *nightly("bare", "json", "registry")])
def test_the_header_names_the_schema_where_the_envelope_does_not(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    """Columns, ordinals and the table follow from it."""
    registry = folder_of({"7": avro_schema([*GAPS], ["externalSchemaId"])}, tmp_path)
    update = change("UPDATE", 2, {"id": 1, "a": 1, "c": None}, {"id": 1, "a": 1, "c": 5})
    if form in ("bare", "json"):
        update["headers"]["changeMask"] = "08"
    else:
        update["headers"]["changeMask"] = b"\x08"
    messages = [
        metadata("old", {"id": 1, "a": 2, "b": 3, "d": 4}, version=1),
        metadata("X", GAPS, version=2),
        metadata("new", {"id": 1, "a": 2, "e": 4, "c": 5}, version=3),
        with_external_id(form, update, [*GAPS], "X"),
    ]
    settings = {**BY_METADATA, "table_from": "schema_id", **registry}
    rows = staged(spark, messages, settings, topic="all_tables")
    assert told(rows, "reject_reason", "declared_changed_columns", "c") == [
        ("B", None, None, 5),
        ("U", None, ["c"], None),
    ]


@pytest.mark.parametrize("form", ["json", "envelope"])
@pytest.mark.parametrize("external", ["X", "other", ""])
def test_two_ids_of_one_message_must_be_the_same(
    spark: SparkSession, form: str, external: str
) -> None:
    insert = with_external_id(
        form, change("INSERT", 1, {"id": 1, "a": 1, "c": 5}), [*GAPS], external,
        messageSchemaId="X",
    )  # fmt: skip
    settings = settings_of({**BY_METADATA, "table_from": "schema_id"})
    rows = decoded(spark, [metadata("X", GAPS), insert], settings).collect()
    found = [(row["kind"], row["schema_id"], row["table_name"]) for row in rows]
    assert found == [
        ("metadata", "X", "people"),
        ("rejected" if external == "other" else "change", "X", "people"),
    ]
    if external == "other":
        assert (rows[1]["reject_reason"], rows[1]["reject_detail"]) == (
            "malformed_message",
            "messageSchemaId is X and headers.externalSchemaId is other",
        )


def test_a_message_waits_for_the_schema_that_its_header_names(spark: SparkSession) -> None:
    insert = with_external_id("json", change("INSERT", 1, {"id": 1}), ["id"], "unseen")
    [row] = decode(spark, [insert], settings_of(BY_METADATA, {"id": "int"}))
    assert row["waits_for"] == "unseen"
    assert row["reject_reason"] == "unknown_schema"


# --- what belongs to an update


def test_an_update_without_before_data_is_accepted_at_once(spark: SparkSession) -> None:
    """Nothing else can bring its before image; a rejected one does not come again either."""
    columns = {"id": "int", "fee": "decimal(9,2)"}
    messages = [
        change("UPDATE", 1, {"id": 1, "fee": "1.00"}),
        change("UPDATE", 2, {"id": 1, "fee": "2.00"}, {"id": 1, "fee": "1.00"}),
        change("UPDATE", 3, {"id": 1, "fee": "3.00"}, {"id": 1, "fee": "2.005"}),
    ]
    sql = staging_sql(spark, messages, columns=columns)
    rows = (
        pair(spark.sql(sql), None, ["id"], optional=OPTIONAL_COLUMNS)
        .orderBy("change_seq", "change_oper")
        .collect()
    )
    found = [
        (row["change_oper"], str(row["fee"]), row["outcome"], row["reject_reason"]) for row in rows
    ]
    assert found == [
        ("U", "1.00", "accepted", None),
        ("B", "1.00", "merged", None),
        ("U", "2.00", "accepted", None),
        ("B", "2.01", "rejected", "uncastable_value:fee"),
        ("U", "3.00", "accepted", None),
    ]


def test_header_columns_are_staged(spark: SparkSession) -> None:
    [row] = staged(
        spark,
        [change("INSERT", 1, {"id": 1}, streamPosition="f00:1", transactionLastEvent=False)],
        columns={"id": "int"},
    )
    assert (row["stream_position"], row["transaction_last_event"]) == ("f00:1", False)


# --- large objects have no bit in the change mask


@pytest.mark.parametrize("told_by", ["metadata", *nightly("setting", "both")])
def test_a_lob_that_an_update_leaves_alone_is_unknown(spark: SparkSession, told_by: str) -> None:
    """The page: LOB columns are not in the bits of the change mask. NULL may be unknown."""
    names = {"id": 1, "name": 2, "photo": 3, "text": 4, "memo": 5}
    empty: dict[str, Any] = dict.fromkeys(["photo", "text", "memo"])
    masks = {"changeMask": "02", "columnMask": "1F"}
    messages: list[Any] = [
        data("INSERT", 1, {"id": 1, "name": "a", **empty}, schema_id="1", columnMask="1F"),
        data("UPDATE", 2, {"id": 1, "name": "b", **empty}, {"id": 1, "name": "a", **empty},
             schema_id="1", **masks),
        data("UPDATE", 3, {"id": 1, "name": None, **empty, "photo": "00FF"},
             {"id": 1, "name": "b", **empty}, schema_id="1", **masks),
        # a task without masks, and one that does set a bit
        data("UPDATE", 4, {"id": 1, "name": None, **empty}, schema_id="1"),
        data("UPDATE", 5, {"id": 1, "name": None, **empty}, schema_id="1", changeMask="04"),
    ]  # fmt: skip
    settings: dict[str, Any] = {}
    if told_by != "setting":
        types = {"name": "STRING", "photo": "BLOB", "text": "CLOB", "memo": "NCLOB"}
        messages.insert(0, metadata("1", names, types=types))
        settings |= BY_METADATA
    if told_by != "metadata":
        settings["lob_columns"] = ["photo", "text", "memo"] if told_by == "setting" else ["name"]
    kinds = {"id": "int", "name": "string", "photo": "binary", "text": "string", "memo": "string"}
    rows = staged(spark, messages, settings, kinds if told_by == "setting" else None)
    # `name` is a LOB as well where the setting adds it; then its bit decides
    marked = ["id", "name"]
    of_no_mask = ["id"] if told_by == "both" else marked
    assert told(rows, "known_columns", "name", "photo") == [
        ("I", None, "a", None),
        ("B", marked, "a", None),
        ("U", marked, "b", None),
        ("B", marked, "b", None),
        ("U", ["id", "name", "photo"], None, b"\x00\xff"),
        ("U", of_no_mask, None, None),
        ("U", [*of_no_mask, "photo"], None, None),
    ]


def test_lob_columns_must_be_columns_of_the_table(spark: SparkSession) -> None:
    with pytest.raises(CompilationError) as refused:
        staged(spark, [metadata("1", {"id": 1})], {**BY_METADATA, "lob_columns": ["foto"]})
    assert "`lob_columns` of table erp.people names `foto`" in str(refused.value)


# --- other sentences of the page


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("1970-01-01T00:00:00.000", None),
        ("1970-01-01", None),
        ("", None),
        ("2026-03-02T11:59:59.500", datetime(2026, 3, 2, 11, 59, 59, 500_000)),
    ],
)
def test_a_time_that_the_source_does_not_know_yet_is_null(
    spark: SparkSession, text: str, time: datetime | None
) -> None:
    [row] = staged(spark, [change("INSERT", 1, {"id": 1}, timestamp=text)], columns={"id": "int"})
    assert row["source_timestamp"] == time
    assert row["changed_at"] == datetime(2026, 3, 2, 12)


@pytest.mark.parametrize("place", ["headers", "message"])
@pytest.mark.parametrize("form", ["bare", *nightly("json", "envelope")])
def test_a_message_may_name_its_table_itself(spark: SparkSession, form: str, place: str) -> None:
    """The page lists `schema` and `table` in front of `headers`; both places are read."""

    def sent(number: int, **names: str) -> Any:
        message = change("INSERT", number, {"id": number})
        owner = message["headers"] if place == "headers" else message
        if form == "bare":
            owner |= names
            return message
        if form == "json":
            owner |= names
            return {"magic": "atMSG", "type": "DT", "message": message}
        owner |= {"schema": None, "table": None, **names}
        schema = avro_schema(["id"], ["schema", "table"] if place == "headers" else [])
        if place == "message":
            schema["fields"] += [
                {"name": name, "type": ["null", "string"]} for name in ("schema", "table")
            ]
        return avro_envelope(encode(schema, message), schema=json.dumps(schema))

    messages = [
        sent(1, schema="hr", table="people"),
        sent(2, schema="old", table="people"),
        sent(3, schema="hr", table="others"),
        sent(4, schema="hr", table=""),
    ]
    settings = {"table_from": "message", "table_schema": "hr"}
    rows = staged(spark, messages, settings, {"id": "int"}, topic="all_tables")
    assert told(rows, "id") == [("I", 1)]
    found = decoded(spark, messages, settings_of(settings, {"id": "int"})).collect()
    assert [(row["kind"], row["table_schema"], row["table_name"]) for row in found] == [
        ("change", "hr", "people"),
        ("change", "old", "people"),
        ("change", "hr", "others"),
        ("rejected", "hr", None),
    ]
    assert (found[3]["reject_reason"], found[3]["reject_detail"]) == (
        "malformed_message",
        "neither its headers nor the message itself name its table",
    )


@pytest.mark.parametrize("place", ["schema_id", "topic"])
def test_a_table_that_two_schemas_have(spark: SparkSession, place: str) -> None:
    settings = {**BY_METADATA, "table_from": place}
    of_crm = metadata("2", {"id": 1, "b": 2})
    of_crm["message"]["lineage"]["schema"] = "crm"
    messages = [
        metadata("1", {"id": 1, "a": 2}, version=3),
        of_crm,
        data("INSERT", 1, {"id": 1, "a": 5}, schema_id="1"),
    ]
    if place == "schema_id":
        messages.append(data("INSERT", 2, {"id": 1, "b": 6}, schema_id="2"))
    with pytest.warns(UserWarning, match=r"in the schemas crm, hr, .* set `table_schema`"):
        assert "b" in staged(spark, messages, settings)[0]
    (row,) = staged(spark, messages, {**settings, "table_schema": "hr"})
    assert (row["id"], row["a"], "b" in row) == (1, 5, False)


def test_times_of_day_in_avro_are_those_of_json(spark: SparkSession, tmp_path: Path) -> None:
    schema = data_schema(
        {
            "id": "int",
            "opens": {"type": "long", "logicalType": "time-micros"},
            "closes": {"type": "int", "logicalType": "time-millis"},
        }
    )
    hour = 3600 * 1000
    rows: list[dict[str, Any]] = [
        {"id": 1, "opens": 10 * hour * 1000, "closes": 22 * hour},
        {"id": 2, "opens": 0, "closes": 23 * hour + 250},
        {"id": 3, "opens": None, "closes": None},
        # midnight at the end of a day, and durations
        {"id": 4, "opens": 24 * hour * 1000, "closes": -hour},
    ]
    messages = [in_form("registry", change("INSERT", row["id"], row), schema, "7") for row in rows]
    settings = {"schemas_from": "registry", **folder_of({"7": schema}, tmp_path)}
    columns = {"id": "int", "opens": "string", "closes": "string"}
    assert told(staged(spark, messages, settings, columns), "opens", "closes") == [
        ("I", "10:00:00", "22:00:00"),
        ("I", "00:00:00", "23:00:00.25"),
        ("I", None, None),
        ("I", "24:00:00", "-01:00:00"),
    ]


def test_messages_of_many_made_up_schemas_do_not_stop_a_run(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_decoder, "MAX_SCHEMAS", 2)
    said: list[str] = []
    monkeypatch.setattr(schema_decoder.logger, "warning", said.append)
    messages: list[Any] = []
    for name in ("id", "id", "id", "x", "y", "z"):
        schema = data_schema({name: "int"})
        message = change("INSERT", len(messages), {name: 1})
        messages.append(avro_envelope(encode(schema, message), schema=json.dumps(schema)))
    reasons = [row["reject_reason"] for row in decode(spark, messages, settings_of())]
    assert (reasons[:3], sorted(map(str, reasons[3:]))) == (
        [None] * 3,
        ["None", "unknown_schema", "unknown_schema"],
    )
    assert [text for text in said if "more than 2 Avro schemas" in text and "Fix: " in text]


def test_columns_of_messages_ignore_case(spark: SparkSession) -> None:
    after, before = {"ID": 1, "name": "Ann"}, {"ID": 1, "name": "Bo"}
    messages = [change("INSERT", 1, before), change("UPDATE", 2, after, before)]
    columns = {"id": "int", "Name": "string"}
    found = staged(spark, messages, columns=columns)
    assert [(row["change_oper"], row["known_columns"], row["Name"]) for row in found] == [
        ("I", None, "Bo"),
        ("B", None, "Bo"),
        ("U", None, "Ann"),
    ]
    twice = [change("INSERT", 1, {"id": 1, "name": "Ann", "NAME": "Bo"})]
    with pytest.raises(Exception, match=r"Source table erp\.people: .*NAME, name.*Fix: "):
        staged(spark, twice, columns=columns)


KEYED = metadata("1", {"id": 1, "region": 2, "a": 3}, key=["region", "id"])


@pytest.mark.parametrize(
    ("key", "more"),
    [
        ([], {}),
        # in any order, and as Spark compares names
        (["ID", "region"], {}),
        (["a"], {"on_key_mismatch": "ignore"}),
    ],
)
def test_a_key_that_is_the_primary_key_of_the_metadata(
    spark: SparkSession, key: list[str], more: dict[str, str]
) -> None:
    assert staged(spark, [KEYED], {**BY_METADATA, "key": key, **more}) == []


@pytest.mark.parametrize("key", [["id"], ["id", "region", "a"], ["a"]])
def test_another_key_than_the_primary_key_stops_the_run(
    spark: SparkSession, key: list[str]
) -> None:
    """The version before had that key."""
    old = metadata("0", {"id": 1, "region": 2, "a": 3}, key=key, version=0)
    with pytest.raises(CompilationError) as refused:
        staged(spark, [old, KEYED], {**BY_METADATA, "key": key})
    assert str(refused.value) == (
        f"Source table erp.people: `key` is [{', '.join(key)}], and the primary key in its newest "
        "metadata message is [region, id]. Fix: set `key: [region, id]`; or, where another key is "
        "meant, set `on_key_mismatch: warn` or `on_key_mismatch: ignore` on the table."
    )


def test_another_key_may_be_a_warning(spark: SparkSession) -> None:
    with pytest.warns(UserWarning, match=r"`key` is \[a\], and the primary key .* \[region, id\]"):
        staged(spark, [KEYED], {**BY_METADATA, "key": ["a"], "on_key_mismatch": "warn"})


def test_a_table_without_a_primary_key_may_have_any_key(spark: SparkSession) -> None:
    assert staged(spark, [metadata("1", {"id": 1, "a": 2})], {**BY_METADATA, "key": ["a"]}) == []
