"""Messages as Avro: in the Qlik envelope, or in the wire format of a schema registry.

`from_avro` of Spark wants a literal schema: each schema is an expression of its own, and a message
goes to the one that it was written by.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from dbt_afterimage.sources.field_encodings import avro_fields, branches
from dbt_afterimage.sources.qlik_messages.json_form import (
    BODY,
    COLUMN,
    COLUMN_FIELDS,
    HEADER_FIELDS,
    TABLE_FIELDS,
)

ENVELOPE = """{"type": "record", "name": "MessageEnvelope", "fields": [
{"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 5}},
{"name": "type", "type": "string"},
{"name": "headers", "type": ["null", {"type": "map", "values": "string"}]},
{"name": "messageSchemaId", "type": ["null", "string"]},
{"name": "messageSchema", "type": ["null", "string"]},
{"name": "message", "type": "bytes"}]}"""
"""The vendor's envelope of a message; its magic, 5 bytes without a length, precedes it."""

_PERMISSIVE = {"mode": "PERMISSIVE"}
_BodyOf = Callable[[Column, StructType], Column]
# Avro specification 1.12, "Logical Types"
_TIMES_OF_DAY = {"time-millis": 1000, "time-micros": 1}
_LINEAGE = ("server", "task", "schema", "table", "tableVersion", "timestamp")


class AvroUnavailableError(RuntimeError):
    """There are Avro messages and Spark's Avro package is not there; the text is for the user."""


def parsed_envelope(value: Column) -> Column:
    """A value (binary) in the Qlik envelope."""
    return from_avro(value, ENVELOPE, _PERMISSIVE)


def with_avro_body(rows: DataFrame, reference: Column, schemas: Mapping[str, str]) -> DataFrame:
    """Add `avro_body`: the body of each message by its schema; NULL where there is none.

    A text that is not a schema, or not of a message, is passed over.

    Args:
        rows: with a column `avro`, the bytes of a message.
        reference: which schema they were written by.
        schemas: reference -> JSON text.
    """
    found = F.lit(None).cast(BODY)
    for number, (name, text) in enumerate(schemas.items()):
        readable = _readable(rows.sparkSession, text)
        if readable is None:
            continue
        kind, body_of = readable
        # a column of its own: each mention of the expression would parse the schema again
        record = f"avro_record_{number}"
        is_own = reference == name
        decoded = F.when(is_own, from_avro(F.col("avro"), text, _PERMISSIVE))
        rows = rows.withColumn(record, decoded)
        found = F.when(is_own, body_of(F.col(record), kind)).otherwise(found)
    return rows.withColumn("avro_body", found)


def _readable(session: SparkSession, schema: str) -> tuple[StructType, _BodyOf] | None:
    """The type of the records of a schema, and how they are read; None for none of a message.

    A registry has the schemas of other applications too, and Protobuf and JSON Schema.
    """
    record = from_avro(F.lit(None).cast("binary"), schema, _PERMISSIVE).alias("record")
    try:
        empty = session.range(0).select(record)
        kind = empty.schema["record"].dataType
        if not isinstance(kind, StructType):
            return None
        body_of = _body_of(kind, schema)
        if body_of is None:
            return None
        # Spark checks types when the columns are resolved, and reads nothing for it
        _ = empty.select(body_of(F.col("record"), kind)).columns
    # PySpark passes exceptions of the Avro library on unchanged
    except (PySparkException, Py4JJavaError):
        return None
    return kind, body_of


def times_of_day(schema: str) -> dict[str, int]:
    """Data columns that hold a time of day -> the microseconds in a unit of theirs.

    Spark reads no such type: it gives the number.

    Args:
        schema: of a data message, JSON text.
    """
    data = dict(avro_fields(json.loads(schema))).get("data")
    return {
        name: _TIMES_OF_DAY[kind["logicalType"]]
        for name, of in avro_fields(data)
        for kind in branches(of)
        if kind.get("logicalType") in _TIMES_OF_DAY
    }


def _body_of(kind: StructType, schema: str) -> _BodyOf | None:
    if _has_records(kind, ["data", "headers"]):
        if "beforeData" in kind.names and not _has_records(kind, ["beforeData"]):
            return None
        return partial(_data_body, times=times_of_day(schema))
    has_texts = {"schemaId", "dataSchema"} <= set(kind.names)
    if not has_texts or not _has_records(kind, ["lineage", "tableStructure"]):
        return None
    structure = kind["tableStructure"].dataType
    if not isinstance(structure, StructType) or not _has_records(structure, ["tableColumns"]):
        return None
    of_table = structure["tableColumns"].dataType
    if isinstance(of_table, StructType) and _has_records(of_table, of_table.names):
        return _metadata_body
    return None


def _has_records(kind: StructType, names: Sequence[str]) -> bool:
    return all(name in kind.names and isinstance(kind[name].dataType, StructType) for name in names)


def _data_body(record: Column, kind: StructType, times: Mapping[str, int]) -> Column:
    nothing = F.lit(None).cast("map<string,string>")
    return F.struct(
        *_fields(record, kind, TABLE_FIELDS),
        _texts(record["data"], kind["data"].dataType, times).alias("data"),
        (
            _texts(record["beforeData"], kind["beforeData"].dataType, times)
            if "beforeData" in kind.names
            else nothing
        ).alias("beforeData"),
        _chosen(record["headers"], kind["headers"].dataType, HEADER_FIELDS).alias("headers"),
        F.lit(None).alias("metadata"),
    ).cast(BODY)


def _metadata_body(record: Column, kind: StructType) -> Column:
    structure = kind["tableStructure"].dataType
    assert isinstance(structure, StructType)
    of_table = structure["tableColumns"].dataType
    assert isinstance(of_table, StructType)
    table_columns = record["tableStructure"]["tableColumns"]
    # a record of records, named as the columns are
    flat = [
        F.struct(
            F.lit(name).alias("name"),
            *_fields(table_columns[name], of_table[name].dataType, COLUMN_FIELDS),
        )
        for name in of_table.names
    ]
    metadata = F.struct(
        record["schemaId"].alias("schemaId"),
        _chosen(record["lineage"], kind["lineage"].dataType, _LINEAGE).alias("lineage"),
        F.array(*flat).cast(f"array<{COLUMN}>").alias("columns"),
        record["dataSchema"].alias("dataSchema"),
    )
    nothing = F.lit(None)
    return F.struct(
        *[nothing.alias(name) for name in TABLE_FIELDS],
        nothing.alias("data"),
        nothing.alias("beforeData"),
        nothing.alias("headers"),
        # bytes that are not such a record give a record of NULLs
        F.when(record["schemaId"].isNotNull(), metadata).alias("metadata"),
    ).cast(BODY)


def _texts(record: Column, kind: DataType, times: Mapping[str, int]) -> Column:
    """A record as a map of texts, as JSON messages have them; NULL for no record."""
    assert isinstance(kind, StructType)
    pairs = [
        part
        for field in kind.fields
        for part in (
            F.lit(field.name),
            _time_of_day(record[field.name], times[field.name])
            if field.name in times
            else _text(record[field.name], field.dataType),
        )
    ]
    texts = F.create_map(*pairs).cast("map<string,string>")
    return F.when(record.isNotNull(), texts)


def _time_of_day(value: Column, microseconds: int) -> Column:
    """`10:00:00`, or with a fraction `10:00:00.25`; a duration beyond a day is `24:00:00`."""
    # as the macro `_time_of_day`
    units = F.try_multiply(value.cast("bigint"), F.lit(microseconds).cast("bigint"))

    def whole(count: int) -> Column:
        return F.call_function("div", units, F.lit(count).cast("bigint"))

    text = F.format_string(
        "%s%02d:%02d:%02d.%06d",
        F.when(units < 0, "-").otherwise(""),
        F.abs(whole(3_600_000_000)),
        F.abs(whole(60_000_000) % 60),
        F.abs(whole(1_000_000) % 60),
        F.abs(units % 1_000_000),
    )
    decoded = F.regexp_replace(text, r"\.?0+$", "")
    return F.when(units.isNotNull(), decoded).otherwise(value.cast("string"))


def _text(value: Column, kind: DataType) -> Column:
    if isinstance(kind, BinaryType):
        return F.hex(value)
    if isinstance(kind, TimestampType | TimestampNTZType):
        return F.date_format(value, "yyyy-MM-dd HH:mm:ss.SSSSSS")
    if isinstance(kind, StructType | ArrayType | MapType):
        return F.to_json(value)
    return value.cast("string")


def _chosen(record: Column, kind: DataType, names: tuple[str, ...]) -> Column:
    """Some fields of a record, as a record."""
    return F.struct(*_fields(record, kind, names))


def _fields(record: Column, kind: DataType, names: tuple[str, ...]) -> list[Column]:
    """Some fields of a record; those that it lacks are NULL, and bytes are hex text."""
    assert isinstance(kind, StructType)
    found = []
    for name in names:
        value = record[name] if name in kind.names else F.lit(None)
        if name in kind.names and isinstance(kind[name].dataType, BinaryType):
            value = F.hex(value)
        found.append(value.alias(name))
    return found
