"""One stream of changes as OpenEdge, Qlik change tables and messages, SQL Server CDC and Debezium.

And as feeds without a preset: documents that leave out NULLs, and partial updates of every form.

It gives the same versions: the same rows, values and order, the same ones open. What may differ is
listed in docs/openedge.md, and here: positions and times; and without before images (level 2) an
update that changes a key cannot be distinguished from one of the row that has the new key.

From raw rows to versions runs the project's own code, without dbt: the rendered staging SQL, the
pairing, the rendered SQL of versions. The expected versions are the oracle's.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from afterimage_demo.kafka.avro import encode
from afterimage_demo.kafka.forms import avro_envelope, avro_registered
from dbt_afterimage.change_log.contract import LOG_COLUMNS
from dbt_afterimage.change_log.deciding.pairing import ACCEPTED, pair
from dbt_afterimage.settings import OPTIONAL_COLUMNS, parse_settings
from tests.change_feed_staging import settings_of as settings_of_feed
from tests.change_feed_staging import staging_sql as staging_sql_of_feed
from tests.history_versions import versions_of
from tests.log_reader import read_rows
from tests.macro_renderer import MacroRenderer
from tests.messages_staging import metadata
from tests.messages_staging import staging_sql as staging_sql_of_messages
from tests.openedge_staging import (
    CHANGES,
    TABLE_NUMBER,
    TRACKING,
    create_views,
    field_map,
    staging_sql,
)
from tests.oracle.history import LogRow, TableOptions, build_history
from tests.oracle.streams import OPERATIONS, Writer
from tests.tiers import nightly

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STREAMS = 10
KEY = ["stream", "id"]
DATA = ["a", "b", "c"]
COLUMNS = [*KEY, *DATA]
TYPES = dict.fromkeys(COLUMNS, "int")
NOON = datetime(2026, 3, 2, 12)


def write_log(*operations: str) -> list[LogRow]:
    """The logical stream: several small databases in one table, distinguished by `stream`."""
    log = []
    for stream in range(1, STREAMS + 1):
        writer = Writer(stream)
        for _ in range(8):
            writer.transaction("insert", *operations)
        for row in writer.database.log:
            assert row.data is not None
            log.append(
                replace(
                    row,
                    change_seq=f"{stream * 1000 + int(row.change_seq) + 1:019d}",
                    data={"stream": stream, **row.data},
                    before=None if row.before is None else {"stream": stream, **row.before},
                    transaction_id=f"{stream * 1000 + int((row.transaction_id or 't0')[1:])}",
                    changed_at=NOON,
                )
            )
    return log


def changed_columns(row: LogRow) -> list[str]:
    assert row.data is not None and row.before is not None
    return [name for name in COLUMNS if row.data[name] != row.before[name]]


def as_openedge(log: list[LogRow], level: int) -> dict[str, Any]:
    """Extracts of the tracking and the change table; updates leave out what they do not change."""
    codes = {"I": 1, "D": 2, "U": 4}
    tracking, changes = [], []
    for row in log:
        sequence, transaction = int(row.change_seq), int(row.transaction_id or 0)
        assert row.data is not None
        code = codes[row.change_oper]
        images = [(code, row.data, COLUMNS)]
        stored = None
        if row.change_oper == "D":
            images = [(code, row.data, KEY)]
        elif row.change_oper == "U":
            assert row.before is not None
            fields = changed_columns(row)
            stored = field_map(*[COLUMNS.index(name) + 1 for name in fields])
            known = [*KEY, *fields]
            images = [(3, row.before, known)] * (level == 3) + [(code, row.data, known)]
        tracking.append(
            ("p", transaction, NOON, sequence, code, stored, 1, TABLE_NUMBER, 0, 0, None, "joe")
        )
        for operation, image, known in images:
            values = [image[name] if name in known else None for name in COLUMNS]
            changes.append((transaction, NOON, sequence, 0, 0, 0, operation, *values))
    return {"tracking": (TRACKING, tracking), "changes": ({**CHANGES, **TYPES}, changes)}


def as_qlik(log: list[LogRow]) -> dict[str, Any]:
    """A change table with whole images; the bits of the mask follow those of four headers."""
    headers = {
        "header__change_seq": "string",
        "header__change_oper": "string",
        "header__change_mask": "string",
        "header__transaction_id": "string",
    }
    rows = []
    for row in log:
        seq = f"2026030212000000{row.change_seq}"
        assert row.data is not None
        mask = None
        if row.change_oper == "U":
            assert row.before is not None
            rows.append((seq, "B", None, row.transaction_id, *row.before.values()))
            mask = f"{sum(16 << COLUMNS.index(name) for name in changed_columns(row)):04X}"
        rows.append((seq, row.change_oper, mask, row.transaction_id, *row.data.values()))
    return {"changes": ({**headers, **TYPES}, rows)}


def qlik_sql(columns: dict[str, str]) -> str:
    given = {"afterimage": {"system": "qlik_change_table", "key": KEY}}
    settings = parse_settings({"source_name": "erp", "name": "changes", "meta": given})
    raw_columns = [{"name": name, "data_type": kind} for name, kind in columns.items()]
    render = MacroRenderer(
        source=lambda source_name, name: name,
        _raw_columns=lambda relation: raw_columns,
        _settings=lambda source_name, name: settings,
    )
    return str(render("stage_qlik_change_table", "erp", "changes"))


def as_sql_server(log: list[LogRow]) -> dict[str, Any]:
    """A change table of SQL Server: two rows for an update, masks on both."""
    codes = {"I": 2, "U": 4, "D": 1}
    headers = {
        "__$start_lsn": "binary",
        "__$seqval": "binary",
        "__$operation": "int",
        "__$update_mask": "binary",
    }
    rows = []
    for row in log:
        assert row.data is not None
        lsn, seqval = bytes(9) + b"\x01", int(row.change_seq).to_bytes(10, "big")
        changed = COLUMNS
        if row.change_oper == "U":
            assert row.before is not None
            changed = changed_columns(row)
        mask = bytes([sum(1 << COLUMNS.index(name) for name in changed)])
        if row.before is not None and row.change_oper == "U":
            rows.append((lsn, seqval, 3, mask, *row.before.values(), 1))
        rows.append((lsn, seqval, codes[row.change_oper], mask, *row.data.values(), 1))
    return {"feed": ({**headers, **TYPES, "__$command_id": "int"}, rows)}


def as_debezium(log: list[LogRow]) -> dict[str, Any]:
    """Flattened events of Debezium, without before images."""
    kinds = {**TYPES, "__op": "string", "__lsn": "bigint", "__source_ts_ms": "bigint"}
    kinds |= {"__txId": "bigint", "__deleted": "string"}
    rows = []
    for row in log:
        assert row.data is not None
        op = {"I": "c", "U": "u", "D": "d"}[row.change_oper]
        place = (int(row.change_seq), 1772452800000, int(row.transaction_id or 0))
        rows.append((*row.data.values(), op, *place, str(op == "d").lower()))
    return {"feed": (kinds, rows)}


def lsn(number: int) -> str:
    digits = f"{number:020X}"
    return f"{digits[:8]}:{digits[8:16]}:{digits[16:]}"


PLACES: dict[str, Callable[[int, int], dict[str, Any]]] = {
    # preset -> the place of a change, from its number and that of its transaction
    "debezium": lambda seq, _: {"lsn": seq},
    "debezium_mysql": lambda seq, _: {
        "file": f"mysql-bin-changelog.{seq // 100}", "pos": seq % 100 // 10 + 4, "row": seq % 10,
        "gtid": None,
    },
    "debezium_sqlserver": lambda seq, transaction: {
        "commit_lsn": lsn(transaction), "change_lsn": lsn(seq // 10), "event_serial_no": seq % 10,
    },
    "debezium_db2": lambda seq, transaction: {
        "commit_lsn": lsn(transaction), "change_lsn": lsn(seq),
    },
    "debezium_oracle": lambda seq, transaction: {
        "commit_scn": str(transaction), "scn": "7", "ssn": seq % 10,
        "rs_id": f" 0x000001.{seq // 10:08x}.0010 ",
    },
}  # fmt: skip
PLACES_OF_OTHERS = [preset for preset in PLACES if preset not in ("debezium", "debezium_mysql")]


ROW = {"type": "record", "name": "Value", "fields": [
    {"name": name, "type": ["null", "int"]} for name in COLUMNS
]}  # fmt: skip
SOURCE = {"lsn": "long", "ts_ms": "long", "txId": "long", "snapshot": "string"}
ENVELOPE = {"type": "record", "name": "Envelope", "fields": [
    {"name": "before", "type": ["null", ROW]},
    {"name": "after", "type": ["null", "Value"]},
    {"name": "source", "type": {"type": "record", "name": "Source", "fields": [
        {"name": name, "type": kind} for name, kind in SOURCE.items()
    ]}},
    {"name": "op", "type": "string"},
]}  # fmt: skip


def as_registered(log: list[LogRow], folder: Path) -> dict[str, Any]:
    """The envelopes as a registry's Avro and JSON Schema have them, one after the other."""
    (folder / "1.avsc").write_text(json.dumps(ENVELOPE), encoding="utf-8")
    (folder / "2.json").write_text('{"type": "object"}', encoding="utf-8")
    kinds, rows = as_envelopes(log)["feed"]
    registered = []
    for number, (value, *others) in enumerate(rows):
        data = encode(ENVELOPE, json.loads(value), {"Value": ROW}) if number % 2 else value
        registered.append((avro_registered(1 if number % 2 else 2, data), *others))
    return {"feed": (kinds, registered)}


def as_mongodb(log: list[LogRow]) -> dict[str, Any]:
    """Full documents in Extended JSON, before and after, without fields that are NULL."""
    rows = []
    for row in log:
        seq = int(row.change_seq)
        source = {"ts_ms": seq // 10 * 1000, "ord": seq % 10, "snapshot": "false"}
        before = row.data if row.change_oper == "D" else row.before
        after = None if row.change_oper == "D" else row.data
        images = {
            name: image
            and json.dumps({k: {"$numberLong": str(v)} for k, v in image.items() if v is not None})
            for name, image in (("before", before), ("after", after))
        }
        message = {"op": {"I": "c", "U": "u", "D": "d"}[row.change_oper], **images}
        rows.append((b'{"id":"1"}', json.dumps({**message, "source": source}).encode(), "one"))
    return {"feed": ({"key": "binary", "value": "binary", "landing_batch": "string"}, rows)}


def as_envelopes(
    log: list[LogRow], has_headers: bool = True, preset: str = "debezium"
) -> dict[str, Any]:
    """Messages of Debezium with before images; a changed key is a delete and a create."""
    names = {"d": "__debezium.newkey", "c": "__debezium.oldkey"}
    rows = []
    for row in log:
        place = PLACES[preset](int(row.change_seq), int(row.transaction_id or 0))
        place["ts_ms"] = 1772452800000
        source = {**place, "txId": int(row.transaction_id or 0), "snapshot": "false"}
        images = [({"I": "c", "U": "u", "D": "d"}[row.change_oper], row.before, row.data)]
        if row.change_oper == "D":
            images = [("d", row.data, None)]
        elif row.change_oper == "U" and {*changed_columns(row)} & {*KEY}:
            images = [("d", row.before, None), ("c", None, row.data)]
        for op, before, after in images:
            message = {"op": op, "before": before, "after": after, "source": source}
            headers = [(names[op],)] if has_headers and len(images) == 2 else None
            rows.append((json.dumps(message).encode(), headers, "one"))
    kinds = {"value": "binary", "headers": "array<struct<key: string>>", "landing_batch": "string"}
    return {"feed": (kinds, rows)}


DOCUMENTS = {
    "sequence": {"place": "number"},
    "operation": "record.type",
    "operations": {"I": "I", "U": "U", "D": "D"},
    "json_text": "document",
    "json_fields": "type string, xid string, data map<string, string>, old map<string, string>",
    "after": "record.data",
    "before": "record.old",
    "transaction_id": "record.xid",
    "absent": None,
}
PARTIAL = {
    "sequence": {"place": "number"},
    "operation": "op",
    "operations": {"I": "I", "U": "U", "D": "D"},
    "ignore_columns": ["place", "changed", "unchanged", "mask", "document"],
}
PARTIAL_FORMS: dict[str, dict[str, Any]] = {
    "a mask": {"changed_mask": "mask"},
    "a list of changes": {"changed_columns": "changed"},
    "NULLs": {"unknown_if_null": True},
    "NULLs of some columns": {"unknown_if_null": DATA},
    "a list of known columns": {"known_columns": "changed"},
    "a list of unchanged columns": {"unchanged_columns": "unchanged"},
    "keys left out": {
        "operation": "record.__op",
        "json_text": "document",
        "json_fields": "__op string",
        "after": "whole document",
    },
}


def as_documents(log: list[LogRow]) -> dict[str, Any]:
    """As Maxwell writes them: no NULLs, in `old` the changed columns alone; names in any case."""
    rows = []
    for row in log:
        assert row.data is not None
        message: dict[str, Any] = {"type": row.change_oper, "xid": row.transaction_id}
        if row.change_oper == "U":
            assert row.before is not None
            message["old"] = {name: row.before[name] for name in changed_columns(row)}
        message["data"] = {
            name.upper(): value for name, value in row.data.items() if value is not None
        }
        rows.append((int(row.change_seq), json.dumps(message)))
    return {"feed": ({"place": "bigint", "document": "string"}, rows)}


def as_partial_updates(log: list[LogRow]) -> dict[str, Any]:
    """Rows whose updates have NULL in what they do not change, and say so in several ways."""
    kinds = {"place": "bigint", "op": "string", "changed": "array<string>"}
    kinds |= {"unchanged": "array<string>", "mask": "binary", "document": "string", **TYPES}
    rows = []
    for row in log:
        assert row.data is not None
        changed = changed_columns(row) if row.change_oper == "U" else COLUMNS
        kept = {name: row.data[name] for name in COLUMNS if name in (*KEY, *changed)}
        document = json.dumps({"__op": row.change_oper, **kept})
        unchanged = [name for name in COLUMNS if name not in changed]
        mask = bytes([sum(1 << COLUMNS.index(name) for name in changed)])
        said = (int(row.change_seq), row.change_oper, changed, unchanged, mask, document)
        rows.append((*said, *[kept.get(name) for name in COLUMNS]))
    return {"feed": (kinds, rows)}


def without_nulls(log: list[LogRow]) -> list[LogRow]:
    """The stream of a writer that has no NULLs, so that one can mean an unknown value."""

    def filled(image: dict[str, Any] | None) -> dict[str, Any] | None:
        return image and {name: -1 if value is None else value for name, value in image.items()}

    return [replace(row, data=filled(row.data), before=filled(row.before)) for row in log]


def versions_of_own_feed(
    spark: SparkSession, given: dict[str, Any], extracts: dict[str, Any]
) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    columns = create_views(spark, extracts)["feed"]
    settings = settings_of_feed(None, {"key": KEY, **given}, TYPES if "after" in given else None)
    return _versions(spark, staging_sql_of_feed(settings, columns), settings["before_images"])


def key_changes_as_deletes_and_inserts(log: list[LogRow]) -> list[LogRow]:
    """As Debezium has them without its headers."""
    found = []
    for row in log:
        if row.change_oper == "U" and {*changed_columns(row)} & {*KEY}:
            found.append(replace(row, change_oper="D", data=row.before, before=None))
            found.append(replace(row, change_oper="I", before=None))
        else:
            found.append(row)
    return found


def versions_of_feed(
    spark: SparkSession, preset: str, extracts: dict[str, Any]
) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    columns = create_views(spark, extracts)["feed"]
    settings = settings_of_feed(preset, {"key": KEY}, TYPES if "value" in columns else None)
    return _versions(spark, staging_sql_of_feed(settings, columns), settings["before_images"])


def as_messages(log: list[LogRow], form: str) -> list[bytes]:
    """Messages with whole images: JSON, Avro in the Qlik envelope, Avro as a registry has it."""
    operations = {"I": "INSERT", "U": "UPDATE", "D": "DELETE"}
    messages = []
    for row in log:
        assert row.data is not None
        mask = None
        if row.change_oper == "U":
            # bits of data columns alone
            mask = bytes([sum(1 << COLUMNS.index(name) for name in changed_columns(row))])
        headers = {
            "operation": operations[row.change_oper],
            "changeSequence": f"2026030212000000{row.change_seq}",
            "timestamp": "",
            "streamPosition": "",
            "transactionId": row.transaction_id,
            "changeMask": mask,
            "columnMask": None,
        }
        message = {"data": row.data, "beforeData": row.before, "headers": headers}
        if form == "json":
            headers["changeMask"] = mask and mask.hex().upper()
            messages.append(json.dumps(message).encode())
            continue
        data = encode(MESSAGE_SCHEMA, message)
        if form == "registry":
            messages.append(avro_registered(1, data))
        else:
            messages.append(avro_envelope(data, schema=json.dumps(MESSAGE_SCHEMA)))
    return messages


def message_schema() -> dict[str, Any]:
    path = Path(__file__).parents[1] / "data" / "qlik_messages" / "data_record.avsc"
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    fields = [{"name": name, "type": ["null", "int"]} for name in COLUMNS]
    schema["fields"][0]["type"]["fields"] = fields
    return schema


MESSAGE_SCHEMA = message_schema()


def messages_sql(spark: SparkSession, messages: list[bytes], folder: Path) -> str:
    """The staging SQL of messages; folder: of the registry."""
    settings: dict[str, Any] = {"key": KEY}
    if messages[0].startswith(b"\x00"):
        (folder / "1.avsc").write_text(json.dumps(MESSAGE_SCHEMA), encoding="utf-8")
        settings |= {"schemas_from": "registry", "schema_registry": str(folder)}
    return staging_sql_of_messages(spark, messages, settings, TYPES)


# Columns were dropped at the source: these ordinals have none.
ORDINALS = {"stream": 2, "id": 3, "a": 5, "b": 6, "c": 9}
LOB, UNREAD = "c", "b"


@dataclass(frozen=True)
class Incomplete:
    """Messages that do not say all of their changes, and what they say.

    Attributes:
        messages: as they are sent, behind their metadata message.
        log: what they say of each change: the change log that must come of them.
        declared: the columns that the change masks of the updates name, by change_seq.
    """

    messages: list[Any]
    log: list[LogRow]
    declared: dict[str, list[str]]


def incomplete(log: list[LogRow], form: str, chance: Random) -> Incomplete:
    """Ordinals with gaps, a large object, columns that were not read, updates without beforeData.

    A large object is NULL where an update leaves it alone, and no mask has a bit for it.
    """
    found = Incomplete([described(form)], [], {})
    for row in log:
        assert row.data is not None
        told, changed = row, set(COLUMNS)
        if row.change_oper == "U":
            assert row.before is not None
            changed = {*changed_columns(row)}
            told = _as_told(row, changed, chance)
            found.declared[row.change_seq] = [
                name for name in COLUMNS if name in changed and name != LOB
            ]
        unread = set()
        if told.known_columns is not None and UNREAD not in told.known_columns:
            unread = {UNREAD}
        headers = {
            "operation": {"I": "INSERT", "U": "UPDATE", "D": "DELETE"}[row.change_oper],
            "changeSequence": f"2026030212000000{row.change_seq}",
            "timestamp": "",
            "streamPosition": "",
            "transactionId": row.transaction_id,
            "changeMask": mask_of(changed - {LOB}),
            "columnMask": mask_of({*COLUMNS} - unread),
        }
        message = {
            "data": _sent(told.data, told.known_columns),
            "beforeData": _sent(told.before, told.before_known_columns),
            "headers": headers,
        }
        found.messages.append(_in_form(message, form))
        found.log.append(told)
    return found


def _as_told(row: LogRow, changed: set[str], chance: Random) -> LogRow:
    """What the message of an update says of it."""
    assert row.data is not None and row.before is not None
    known, before_known = {*COLUMNS}, {*COLUMNS}
    if LOB not in changed or row.data[LOB] is None:
        known.discard(LOB)
    if LOB not in changed or row.before[LOB] is None or chance.random() < 0.5:
        before_known.discard(LOB)
    if UNREAD not in changed and chance.random() < 0.3:
        known.discard(UNREAD)
        before_known.discard(UNREAD)
    told = replace(row, known_columns=_or_all(known), before_known_columns=_or_all(before_known))
    # without it a key change could not be recognized
    if not changed & {*KEY} and chance.random() < 0.3:
        told = replace(told, before=None, before_known_columns=None)
    return told


def _or_all(known: set[str]) -> set[str] | None:
    return known if len(known) < len(COLUMNS) else None


def _sent(image: Mapping[str, Any] | None, known: AbstractSet[str] | None) -> Any:
    if image is None:
        return None
    return {name: value if known is None or name in known else None
            for name, value in image.items()}  # fmt: skip


def mask_of(names: AbstractSet[str]) -> bytes:
    """A mask by ordinals, the least significant byte first."""
    bits = sum(1 << (ORDINALS[name] - 1) for name in names)
    return bits.to_bytes(2, "little")


def described(form: str) -> dict[str, Any]:
    types = {LOB: "CLOB"}
    schema_id = "1" if form == "registry" else "S"
    return metadata(schema_id, ORDINALS, types=types, key=KEY, schema=MESSAGE_SCHEMA)


def _in_form(message: dict[str, Any], form: str) -> Any:
    """By the metadata message; `header` is JSON whose schema id is in `headers`."""
    if form == "registry":
        return avro_registered(1, encode(MESSAGE_SCHEMA, message))
    if form == "envelope":
        return avro_envelope(encode(MESSAGE_SCHEMA, message), schema_id="S")
    masks = {name: message["headers"][name][::-1].hex() for name in ("changeMask", "columnMask")}
    headers = {**message["headers"], **masks}
    envelope: dict[str, Any] = {"magic": "atMSG", "type": "DT", "messageSchemaId": "S"}
    if form == "header":
        headers["externalSchemaId"] = envelope.pop("messageSchemaId")
    return {**envelope, "message": {**message, "headers": headers}}


def versions(
    spark: SparkSession, extracts: dict[str, Any], before_images: bool
) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """The versions of each key, in their order."""
    columns = create_views(spark, extracts)
    if "tracking" in columns:
        settings = {"key": KEY, "policy_level": 3 if before_images else 2}
        sql = staging_sql(columns, settings)
    else:
        sql = qlik_sql(columns["changes"])
    return _versions(spark, sql, before_images)


def _versions(
    spark: SparkSession, sql: str, before_images: bool
) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    paired = pair(spark.sql(sql), None, KEY, before_images=before_images, optional=OPTIONAL_COLUMNS)
    versions = versions_of(
        _log_rows(paired),
        COLUMNS,
        KEY,
        forward_filled=tuple(DATA),
        has_key_changes=True,
        has_incomplete_key_changes=True,
    )
    rows = read_rows(versions)
    return _by_key(rows)


def _log_rows(paired: DataFrame) -> DataFrame:
    """The change log that the pairing leads to; nothing may be rejected or left to wait."""
    outcomes = {row["outcome"] for row in paired.select("outcome").distinct().collect()}
    assert outcomes - {"merged"} == {ACCEPTED}
    log = paired.filter(F.col("outcome") == ACCEPTED).withColumns(
        {"recorded_at": F.col("changed_at"), "load_rows": F.lit(None).cast("bigint")}
    )
    log = log.withColumn("change_date", F.to_date("changed_at"))
    return log.select(*LOG_COLUMNS, *COLUMNS, "before")


def _by_key(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    found = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["valid_from_seq"]):
        kept = [*DATA, "is_current", "opened_by", "closed_by"]
        unknown = sorted(row["unknown_columns"] or [])
        key = tuple(row[name] for name in KEY)
        found[key].append({name: row[name] for name in kept} | {"unknown_columns": unknown})
    return dict(found)


def expected(log: list[LogRow]) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    before_images = any(row.before is not None for row in log if row.change_oper == "U")
    options = TableOptions(KEY, COLUMNS, DATA, before_images=before_images)
    return _by_key([version.as_row() for version in build_history(log, options)])


@pytest.fixture(scope="module")
def without_key_changes() -> list[LogRow]:
    return write_log("update", "update", "delete")


@pytest.fixture(scope="module")
def with_key_changes() -> list[LogRow]:
    return write_log(*OPERATIONS, "permute")


@pytest.mark.nightly
def test_without_key_changes_all_are_the_same(
    spark: SparkSession, without_key_changes: list[LogRow]
) -> None:
    log = without_key_changes
    assert {row.change_oper for row in log} == {"I", "U", "D"}
    wanted = expected(log)
    assert sum(map(len, wanted.values())) > 80
    assert versions(spark, as_openedge(log, 3), before_images=True) == wanted
    assert versions(spark, as_openedge(log, 2), before_images=False) == wanted
    assert versions(spark, as_qlik(log), before_images=True) == wanted
    assert versions_of_feed(spark, "sql_server_cdc", as_sql_server(log)) == wanted
    assert versions_of_feed(spark, "debezium_flat", as_debezium(log)) == wanted


def test_key_changes_are_the_same_with_before_images(
    spark: SparkSession, with_key_changes: list[LogRow]
) -> None:
    log = with_key_changes
    wanted = expected(log)
    closed_by = {version["closed_by"] for of_key in wanted.values() for version in of_key}
    assert closed_by == {"U", "D", "K", None}
    assert versions(spark, as_openedge(log, 3), before_images=True) == wanted
    assert versions(spark, as_qlik(log), before_images=True) == wanted


@pytest.mark.parametrize("preset", ["debezium", "debezium_mysql", *nightly(*PLACES_OF_OTHERS)])
def test_messages_of_every_connector_of_debezium_are_the_same(
    spark: SparkSession, with_key_changes: list[LogRow], preset: str
) -> None:
    log = with_key_changes
    assert versions_of_feed(spark, preset, as_envelopes(log, preset=preset)) == expected(log)


def test_messages_of_a_registry_are_the_same(
    spark: SparkSession, with_key_changes: list[LogRow], tmp_path: Path
) -> None:
    extracts = as_registered(with_key_changes, tmp_path)
    columns = create_views(spark, extracts)["feed"]
    given = {"key": KEY, "schema_registry": str(tmp_path)}
    settings = settings_of_feed("debezium", given, TYPES)
    found = _versions(spark, staging_sql_of_feed(settings, columns), settings["before_images"])
    assert found == expected(with_key_changes)


def test_documents_of_mongodb_are_the_same(
    spark: SparkSession, without_key_changes: list[LogRow]
) -> None:
    log = without_key_changes
    assert versions_of_feed(spark, "debezium_mongodb", as_mongodb(log)) == expected(log)


def test_documents_that_leave_out_nulls_and_what_did_not_change_are_the_same(
    spark: SparkSession, with_key_changes: list[LogRow]
) -> None:
    log = with_key_changes
    assert any(None in row.data.values() for row in log if row.data is not None)
    assert versions_of_own_feed(spark, DOCUMENTS, as_documents(log)) == expected(log)


@pytest.mark.parametrize("form", PARTIAL_FORMS)
def test_partial_updates_of_every_form_are_the_same(
    spark: SparkSession, without_key_changes: list[LogRow], form: str
) -> None:
    log = without_nulls(without_key_changes)
    given = {**PARTIAL, **PARTIAL_FORMS[form]}
    assert versions_of_own_feed(spark, given, as_partial_updates(log)) == expected(log)


@pytest.mark.nightly
def test_without_headers_key_changes_of_debezium_are_deletes_and_inserts(
    spark: SparkSession,
) -> None:
    log = write_log("update", "delete", "move", "move")
    as_two = key_changes_as_deletes_and_inserts(log)
    assert len(as_two) > len(log) + 20
    found = versions_of_feed(spark, "debezium", as_envelopes(log, has_headers=False))
    assert found == expected(as_two)


@pytest.mark.parametrize("form", ["json", *nightly("envelope", "registry")])
def test_messages_of_every_form_are_the_same(
    spark: SparkSession, with_key_changes: list[LogRow], form: str, tmp_path: Path
) -> None:
    """Versions, and the change log itself: current state and field changes come of it as well."""
    log = with_key_changes
    extracts = as_qlik(log)
    qlik = qlik_sql(create_views(spark, extracts)["changes"])
    messages = messages_sql(spark, as_messages(log, form), tmp_path)
    assert _versions(spark, messages, before_images=True) == expected(log)
    found = _logged(spark, messages)
    assert found == _logged(spark, qlik)
    assert len(found) == len(log)


@pytest.mark.nightly
@pytest.mark.parametrize("form", ["json", "header", "envelope", "registry"])
def test_messages_that_do_not_say_all_are_what_they_say(
    spark: SparkSession, with_key_changes: list[LogRow], form: str, tmp_path: Path
) -> None:
    (tmp_path / "1.avsc").write_text(json.dumps(MESSAGE_SCHEMA), encoding="utf-8")
    sent = incomplete(with_key_changes, form, Random(20260302))
    updates = [row for row in sent.log if row.change_oper == "U"]
    assert {row.before is None for row in updates} == {True, False}
    assert {LOB in (row.known_columns or COLUMNS) for row in updates} == {True, False}
    assert {UNREAD in (row.known_columns or COLUMNS) for row in updates} == {True, False}
    settings = {"key": KEY, "schemas_from": "metadata", "table_from": "schema_id"}
    settings |= {"schema_registry": str(tmp_path)}
    sql = staging_sql_of_messages(spark, sent.messages, settings, TYPES)

    found = [
        (
            row["change_seq"][16:],
            row["change_oper"],
            row["known_columns"] and {*row["known_columns"]},
            row["before"] is None,
            row["before_known_columns"] and {*row["before_known_columns"]},
        )
        for row in _logged(spark, sql)
    ]
    assert found == [
        (
            row.change_seq,
            row.change_oper,
            row.known_columns,
            # a delete's row is its image
            row.before is None or row.change_oper == "D",
            row.before_known_columns,
        )
        for row in sorted(sent.log, key=lambda row: row.change_seq)
    ]
    declared = {
        row["change_seq"][16:]: row["declared_changed_columns"]
        for row in _logged(spark, sql)
        if row["change_oper"] == "U"
    }
    assert declared == sent.declared
    assert _versions(spark, sql, before_images=True) == expected(sent.log)


def _logged(spark: SparkSession, sql: str) -> list[dict[str, Any]]:
    """The change log, without the columns that identify the raw record."""
    rows = read_rows(_log_rows(pair(spark.sql(sql), None, KEY, optional=OPTIONAL_COLUMNS)))
    left_out = {"record_hash", "before_record_hash", "transaction_event"}
    kept = [{name: row[name] for name in row if name not in left_out} for row in rows]
    return sorted(kept, key=lambda row: (row["change_seq"], row["change_oper"]))


@pytest.mark.nightly
def test_without_before_images_a_key_change_is_an_update_of_the_new_key(
    spark: SparkSession, with_key_changes: list[LogRow]
) -> None:
    """The one difference of level 2: updates know their own row alone, and what they changed."""
    without = [
        replace(row, before=None, known_columns={*KEY, *_known_at_level_2(row)})
        if row.change_oper == "U"
        else row
        for row in with_key_changes
    ]
    assert expected(without) != expected(with_key_changes)
    found = versions(spark, as_openedge(with_key_changes, 2), before_images=False)
    assert found == expected(without)


def _known_at_level_2(row: LogRow) -> list[str]:
    """What was changed, and nothing that was left out."""
    return [name for name in changed_columns(row) if name in DATA]
