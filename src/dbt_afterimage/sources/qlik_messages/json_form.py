"""Messages as JSON: enveloped (magic, type, message, ...) or bare (data, beforeData, headers)."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from dbt_afterimage.internal_columns import PREFIX

HEADER_FIELDS = (
    "operation",
    "changeSequence",
    "timestamp",
    "streamPosition",
    "transactionId",
    "changeMask",
    "columnMask",
    "transactionEventCounter",
    "transactionLastEvent",
    "externalSchemaId",
    "schema",
    "table",
)
_TYPES = {"transactionEventCounter": "bigint", "transactionLastEvent": "boolean"}
HEADERS = (
    "struct<" + ", ".join(f"{name} {_TYPES.get(name, 'string')}" for name in HEADER_FIELDS) + ">"
)
_LINEAGE = (
    "struct<server string, task string, schema string, table string, tableVersion bigint, "
    "timestamp string>"
)
_COLUMN = (
    "ordinal int, type string, length int, precision int, scale int, primaryKeyPosition int, "
    "nullable boolean"
)
COLUMN = f"struct<name string, {_COLUMN}>"
METADATA = (
    f"struct<schemaId string, lineage {_LINEAGE}, columns array<{COLUMN}>, dataSchema string>"
)
_DATA = (
    "schema string, table string, data map<string, string>, beforeData map<string, string>, "
    f"headers {HEADERS}"
)
BODY = f"struct<{_DATA}, metadata {METADATA}>"
"""The common form of all messages; values are text, masks and other bytes are hex."""

TABLE_FIELDS = ("schema", "table")
"""Where a message names its table: next to its data, and in `headers`."""

COLUMN_FIELDS = (
    "ordinal",
    "type",
    "length",
    "precision",
    "scale",
    "primaryKeyPosition",
    "nullable",
)

_CORRUPT = f"{PREFIX}corrupt"
_MESSAGE = (
    f"struct<{_DATA}, schemaId string, lineage {_LINEAGE}, "
    f"tableStructure struct<tableColumns map<string, struct<{_COLUMN}>>>, dataSchema string>"
)
_TEXT = (
    f"magic string, type string, messageSchemaId string, message {_MESSAGE}, {_DATA}, "
    f"task_name string, op string, {_CORRUPT} string"
)


def parsed_json(value: Column) -> Column:
    """A value (binary) that should be JSON, parsed; for the functions below."""
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    return F.from_json(value.cast("string"), _TEXT, options)


def json_problem(value: Column, parsed: Column) -> Column:
    """Why it is not a message, in words; NULL when it is one."""
    magic = parsed["magic"]
    is_bare = parsed["headers"]["operation"].isNotNull()
    is_old = parsed["task_name"].isNotNull() | parsed["op"].isNotNull()
    return (
        F.when(~F.is_valid_utf8(value.cast("string")), F.lit("not JSON: no UTF-8 text"))
        # before the next one: its `data` is a list, which no present form has
        .when(
            magic.isNull() & ~is_bare & is_old,
            F.lit(
                "the form of 2016 (task_name, op, data as a list), which has neither a position "
                "nor before images: let the task write the present form"
            ),
        )
        .when(parsed.isNull() | parsed[_CORRUPT].isNotNull(), F.lit("no JSON object of a message"))
        .when(magic.isNull() & ~is_bare, F.lit("neither `magic` nor `headers.operation`"))
        .when(magic.isNotNull() & (magic != "atMSG"), F.lit("`magic` is not atMSG"))
        .when(
            magic.isNotNull() & ~F.coalesce(parsed["type"].isin("DT", "MD"), F.lit(False)),
            F.lit("`type` is neither DT nor MD"),
        )
        .when(magic.isNotNull() & parsed["message"].isNull(), F.lit("`message` is missing"))
    )


def json_body(parsed: Column) -> Column:
    """The message itself, as BODY."""
    message = parsed["message"]
    is_enveloped = parsed["magic"].isNotNull()
    # no `transform`: Spark generates code for all of this, but not for functions with a lambda
    table_columns = message["tableStructure"]["tableColumns"]
    values = F.map_values(table_columns)
    columns = F.arrays_zip(F.map_keys(table_columns), *[values[name] for name in COLUMN_FIELDS])
    metadata = F.when(
        parsed["type"] == "MD",
        F.struct(
            message["schemaId"].alias("schemaId"),
            message["lineage"].alias("lineage"),
            columns.alias("columns"),
            message["dataSchema"].alias("dataSchema"),
        ),
    )
    return F.struct(
        *[
            F.when(is_enveloped, message[name]).otherwise(parsed[name]).alias(name)
            for name in (*TABLE_FIELDS, "data", "beforeData", "headers")
        ],
        metadata.alias("metadata"),
    ).cast(BODY)


def json_schema_id(parsed: Column) -> Column:
    """The id of a message's schema in its envelope; NULL where the envelope lacks it."""
    of_envelope = F.nullif(parsed["messageSchemaId"], F.lit(""))
    return F.when(parsed["magic"].isNotNull(), of_envelope)
