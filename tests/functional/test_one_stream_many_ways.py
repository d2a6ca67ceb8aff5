"""One stream of changes as OpenEdge level 3, OpenEdge level 2, Qlik change tables and messages.

It gives the same versions: the same rows, values and order, the same ones open. What may differ is
listed in docs/openedge.md, and here: positions and times; and without before images (level 2) an
update that changes a key cannot be told from one of the row that has the new key.

From raw rows to versions runs the project's own code, without dbt: the rendered staging SQL, the
pairing, the rendered SQL of versions. The expected versions are the oracle's.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from datetime import datetime
from hashlib import md5
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from dbt_afterimage.change_log.contract import LOG_COLUMNS
from dbt_afterimage.change_log.pairing import ACCEPTED, pair
from dbt_afterimage.demo.kafka.avro import encode
from dbt_afterimage.demo.kafka.forms import avro_envelope, avro_registered
from dbt_afterimage.settings import parse_settings
from dbt_afterimage.sources.qlik_messages.decode import decoded, enveloped, form_of
from dbt_afterimage.sources.qlik_messages.message_columns import MESSAGE_COLUMNS, RAW_COLUMNS
from dbt_afterimage.storage.local_relation import local_rows
from tests.functional.log_reader import read_rows
from tests.macro_renderer import MacroRenderer
from tests.openedge_staging import (
    CHANGES,
    TABLE_NUMBER,
    TRACKING,
    create_views,
    field_map,
    quick_queries,
    staging_sql,
)
from tests.oracle.history import LogRow, TableOptions, build_history
from tests.oracle.streams import OPERATIONS, Writer
from tests.versions_sql import versions_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STREAMS = 10
KEY = ["stream", "id"]
DATA = ["a", "b", "c"]
COLUMNS = [*KEY, *DATA]
TYPES = dict.fromkeys(COLUMNS, "int")
NOON = datetime(2026, 3, 2, 12)


def write_log(*operations: str) -> list[LogRow]:
    """The logical stream: several small databases in one table, told apart by `stream`."""
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


def messages_sql(spark: SparkSession, messages: list[bytes]) -> str:
    """The staging SQL of decoded messages, which become a temporary view."""
    given = {"afterimage": {"system": "qlik_messages", "key": KEY}}
    columns = {name: {"name": name, "data_type": "int"} for name in COLUMNS}
    settings = parse_settings(
        {"source_name": "erp", "name": "streams", "meta": given, "columns": columns}
    )
    kinds = ", ".join(f"`{name}` {kind}" for name, kind in RAW_COLUMNS.items())
    rows = [
        ("streams", 0, offset, None, value, None, NOON, NOON, "1")
        for offset, value in enumerate(messages)
    ]
    raw = local_rows(spark, rows, kinds)
    forms = {row[0] for row in raw.select(form_of()).distinct().collect()}
    outside = enveloped(raw, forms)
    schema = json.dumps(MESSAGE_SCHEMA)
    # known by its id, and by the hash of the text that comes along
    texts = {"1": schema, md5(schema.encode()).hexdigest(): schema}
    found = decoded(spark, outside, forms, settings, {}, {} if forms == {"json"} else texts)
    missing = [name for name in MESSAGE_COLUMNS if name not in found.columns]
    found = found.withColumns({name: F.lit(None) for name in missing}).select(
        *[F.col(name).cast(kind).alias(name) for name, kind in MESSAGE_COLUMNS.items()]
    )
    # a table of its own, as the decoded messages are
    rows_of_table = found.toArrow()
    spark.createDataFrame(rows_of_table).createOrReplaceTempView("messages")
    render = MacroRenderer(
        source=lambda source_name, name: SimpleNamespace(identifier=name),
        execute=True,
        _settings=lambda source_name, name: settings,
    )
    return str(render("stage_qlik_messages", "erp", "streams", messages="messages"))


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
    with quick_queries(spark):
        paired = pair(spark.sql(sql), None, KEY, before_images=before_images)
        _log_rows(paired).createOrReplaceTempView("change_log")
        statement = versions_sql(
            "change_log", COLUMNS, KEY, carried=DATA, has_moves=True, has_blind_moves=True
        )
        rows = read_rows(spark.sql(f"{statement} select * from versions"))
    return _by_key(rows)


def _log_rows(paired: DataFrame) -> DataFrame:
    """The change log that the pairing leads to; nothing may be rejected or left to wait."""
    outcomes = {row["outcome"] for row in paired.select("outcome").distinct().collect()}
    assert outcomes - {"folded"} == {ACCEPTED}
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


def test_without_key_changes_all_three_are_the_same(
    spark: SparkSession, without_key_changes: list[LogRow]
) -> None:
    log = without_key_changes
    assert {row.change_oper for row in log} == {"I", "U", "D"}
    wanted = expected(log)
    assert sum(map(len, wanted.values())) > 80
    assert versions(spark, as_openedge(log, 3), before_images=True) == wanted
    assert versions(spark, as_openedge(log, 2), before_images=False) == wanted
    assert versions(spark, as_qlik(log), before_images=True) == wanted


def test_key_changes_are_the_same_with_before_images(
    spark: SparkSession, with_key_changes: list[LogRow]
) -> None:
    log = with_key_changes
    wanted = expected(log)
    closed_by = {version["closed_by"] for of_key in wanted.values() for version in of_key}
    assert closed_by == {"U", "D", "K", None}
    assert versions(spark, as_openedge(log, 3), before_images=True) == wanted
    assert versions(spark, as_qlik(log), before_images=True) == wanted


@pytest.mark.parametrize("form", ["json", "envelope", "registry"])
def test_messages_of_every_form_are_the_same(
    spark: SparkSession, with_key_changes: list[LogRow], form: str
) -> None:
    """Versions, and the change log itself: current state and field changes come of it as well."""
    log = with_key_changes
    extracts = as_qlik(log)
    qlik = qlik_sql(create_views(spark, extracts)["changes"])
    messages = messages_sql(spark, as_messages(log, form))
    assert _versions(spark, messages, before_images=True) == expected(log)
    found = _logged(spark, messages)
    assert found == _logged(spark, qlik)
    assert len(found) == len(log)


def _logged(spark: SparkSession, sql: str) -> list[dict[str, Any]]:
    """The change log, but for what names the raw record."""
    with quick_queries(spark):
        rows = read_rows(_log_rows(pair(spark.sql(sql), None, KEY, before_images=True)))
    left_out = {"record_hash", "before_record_hash", "transaction_event"}
    kept = [{name: row[name] for name in row if name not in left_out} for row in rows]
    return sorted(kept, key=lambda row: (row["change_seq"], row["change_oper"]))


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
