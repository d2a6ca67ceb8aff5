"""Stages Qlik messages without dbt: decodes them, and runs the rendered SQL of stage_qlik_messages.

messages = [metadata("7", {"id": 1, "name": 3}), data("INSERT", 1, {"id": 1}, schema_id="7")]
rows = staged(spark, messages, {"schemas_from": "metadata"})
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from dbt_afterimage.settings import parse_settings
from dbt_afterimage.sources.qlik_messages.decode import form_of
from dbt_afterimage.sources.qlik_messages.message_columns import MESSAGE_COLUMNS, RAW_COLUMNS
from dbt_afterimage.sources.qlik_messages.schema_decoder import Decoder
from dbt_afterimage.storage.local_relation import local_rows
from tests.log_reader import read_rows
from tests.macro_renderer import MacroRenderer
from tests.qlik_messages import NOON, change

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

TABLE = "people"

# A value as it is sent: bytes, text, or an object that becomes JSON; None is a tombstone.
Value = Any


def metadata(
    schema_id: str,
    ordinals: Mapping[str, Any],
    *,
    types: Mapping[str, str] | None = None,
    key: Sequence[str] = (),
    version: int = 1,
    schema: Any = None,
    **lineage: Any,
) -> dict[str, Any]:
    """A metadata message of a version of the table, in the Qlik envelope.

    Args:
        schema_id: the version's schema id.
        ordinals: column -> its ordinal.
        types: column -> its type; INT4 where there is none.
        key: the columns of the primary key, in order.
        version: the table's version.
        schema: the Avro schema of the data messages.
        lineage: what differs there from the table's.
    """
    columns = {
        name: {
            "ordinal": ordinal,
            "type": (types or {}).get(name, "INT4"),
            "length": 0,
            "precision": 0,
            "scale": 0,
            "primaryKeyPosition": key.index(name) + 1 if name in key else 0,
            "nullable": name not in key,
        }
        for name, ordinal in ordinals.items()
    }
    of_table = {
        "server": "qlik-1",
        "task": "to-kafka",
        "schema": "hr",
        "table": TABLE,
        "tableVersion": version,
        "timestamp": "2026-03-02T11:00:00.000",
    }
    message = {
        "schemaId": schema_id,
        "lineage": {**of_table, **lineage},
        "tableStructure": {"tableColumns": columns},
        "dataSchema": json.dumps(schema or {}),
    }
    return {"magic": "atMSG", "type": "MD", "messageSchemaId": schema_id, "message": message}


def data(
    operation: str,
    number: int,
    after: dict[str, Any] | None,
    before: dict[str, Any] | None = None,
    *,
    schema_id: str | None = None,
    **headers: Any,
) -> dict[str, Any]:
    """A data message as JSON in the Qlik envelope."""
    message = change(operation, number, after, before, **headers)
    return {"magic": "atMSG", "type": "DT", "messageSchemaId": schema_id, "message": message}


def decode(
    spark: SparkSession, messages: Sequence[Value], settings: Mapping[str, Any], topic: str = TABLE
) -> list[Row]:
    """What a first run decodes, in order; with `waits_for`, which the table does not have."""
    return _decode(spark, messages, settings, topic).orderBy("offset").collect()


def decoded(
    spark: SparkSession, messages: Sequence[Value], settings: Mapping[str, Any], topic: str = TABLE
) -> DataFrame:
    """The decoded messages of a first run, as a table has them."""
    found = _decode(spark, messages, settings, topic)
    missing = [name for name in MESSAGE_COLUMNS if name not in found.columns]
    rows_of_table = (
        found.withColumns({name: F.lit(None) for name in missing})
        .select(*[F.col(name).cast(kind).alias(name) for name, kind in MESSAGE_COLUMNS.items()])
        .orderBy("offset")
        .toArrow()
    )
    return spark.createDataFrame(rows_of_table)


def _decode(spark: SparkSession, messages: Sequence[Value], settings: Any, topic: str) -> DataFrame:
    kinds = ", ".join(f"`{name}` {kind}" for name, kind in RAW_COLUMNS.items())
    rows = [
        (topic, 0, offset, None, _bytes(value), None, NOON, NOON, "1")
        for offset, value in enumerate(messages)
    ]
    raw = local_rows(spark, rows, kinds)
    forms = {row[0] for row in raw.select(form_of()).distinct().collect()} - {None}
    decoder = Decoder(spark, settings, None)
    return decoder.decoded(raw, forms, decoder.schemas(raw, forms))


def settings_of(
    settings: Mapping[str, Any] | None = None, columns: Mapping[str, str] | None = None
) -> Any:
    """Validated settings of the source table erp.people; its declared columns and their types."""
    declared = {name: {"name": name, "data_type": kind} for name, kind in (columns or {}).items()}
    meta = {"afterimage": {"system": "qlik_messages", **(settings or {})}}
    entry = {"source_name": "erp", "name": TABLE, "meta": meta, "columns": declared}
    return parse_settings(entry)


def staging_sql(
    spark: SparkSession,
    messages: Sequence[Value],
    settings: Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None,
    topic: str = TABLE,
) -> str:
    """The staging SQL of decoded messages, which become the temporary view `messages`."""
    parsed = settings_of(settings, columns)
    decoded(spark, messages, parsed, topic).createOrReplaceTempView("messages")
    _CASE.update(spark=spark, settings=parsed)
    return str(_renderer()("stage_qlik_messages", "erp", TABLE, messages="messages"))


def staged(
    spark: SparkSession,
    messages: Sequence[Value],
    settings: Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None,
    topic: str = TABLE,
) -> list[dict[str, Any]]:
    """What stage_qlik_messages makes of messages, in the order of the changes."""
    sql = staging_sql(spark, messages, settings, columns, topic)
    rows = read_rows(spark.sql(sql))
    return sorted(rows, key=lambda row: (row["change_seq"] or "", row["change_oper"] or ""))


# What the one renderer answers at the moment: to load all macros takes longer than to render one.
_CASE: dict[str, Any] = {}


@cache
def _renderer() -> MacroRenderer:
    def raw_columns(relation: str) -> list[dict[str, str]]:
        schema = _CASE["spark"].table(relation).schema
        return [{"name": field.name, "data_type": "any"} for field in schema.fields]

    return MacroRenderer(
        source=lambda source_name, name: SimpleNamespace(identifier=name),
        run_query=lambda sql: SimpleNamespace(rows=_CASE["spark"].sql(sql).collect()),
        _raw_columns=raw_columns,
        _settings=lambda source_name, name: _CASE["settings"],
    )


def _bytes(value: Value) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value)).encode()
