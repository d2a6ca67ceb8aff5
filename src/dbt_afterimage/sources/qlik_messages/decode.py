"""From landed messages to decoded ones: form, schema, table, and why a message is rejected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.settings import SourceSettings
from dbt_afterimage.sources.qlik_messages.avro_form import (
    AvroUnavailableError,
    parsed_envelope,
    with_avro_body,
)
from dbt_afterimage.sources.qlik_messages.json_form import (
    BODY,
    TABLE_FIELDS,
    json_body,
    json_problem,
    json_schema_id,
    parsed_json,
)
from dbt_afterimage.sources.qlik_messages.message_columns import (
    CHANGE,
    LOAD,
    METADATA,
    REJECTED,
    TOMBSTONE,
)
from dbt_afterimage.storage.local_relation import local_rows

JSON, ENVELOPE, REGISTRY = "json", "avro_envelope", "avro_registry"
AVRO_PACKAGE = "org.apache.spark:spark-avro_2.13"

_LAST_ORDINAL = 32_767
"""Masks index a list with a place for each ordinal: a greater one is damaged input."""

_NO_TABLE = {
    "topic": "no topic identifies its table",
    "schema_id": "no schema id identifies its table",
    "header": "no record header `{header}` identifies its table",
    "message": "neither its headers nor the message itself name its table",
}


@dataclass(frozen=True)
class Schema:
    """The description of a schema id.

    Attributes:
        table_schema: the schema of the table; None where nothing says it.
        table_name: the table; None where nothing says it.
        columns: the table's columns by ordinal, None for an ordinal that no column has; None where
            nothing says it.
        avro: the Avro schema of its data messages, JSON text; None where there is none.
    """

    table_schema: str | None
    table_name: str | None
    columns: tuple[str | None, ...] | None
    avro: str | None


def form_of() -> Column:
    """The form of a landed message's value; NULL for a tombstone."""
    value = F.col("value")
    return (
        F.when(value.isNull(), F.lit(None))
        .when(F.substring(value, 1, 5) == F.lit(b"atMSG"), ENVELOPE)
        # the wire format of registries: a zero byte, four bytes of the schema's id, then Avro
        .when((F.substring(value, 1, 1) == F.lit(b"\x00")) & (F.length(value) > 5), REGISTRY)
        .otherwise(JSON)
    )


def check_avro(session: SparkSession, source: str) -> None:
    """Stop where Spark cannot decode Avro.

    Raises:
        AvroUnavailableError: its package is not there.
    """
    try:
        parsed = session.range(0).select(parsed_envelope(F.lit(None).cast("binary")))
        # Spark resolves its function when the columns are resolved, and reads nothing for it.
        _ = parsed.columns
    except (PySparkException, TypeError) as error:
        raise AvroUnavailableError(
            f"Source table {source} holds Avro messages, and Spark's Avro package is not there "
            f"({type(error).__name__}). Fix: add {AVRO_PACKAGE}:{session.version} to "
            "`spark.jars.packages` in profiles.yml, and run again."
        ) from error


def enveloped(raw: DataFrame, forms: set[str]) -> DataFrame:
    """Landed messages with everything outside of their Avro bytes.

    Adds `form`, `parsed` (JSON), `schema_id`, `schema_text`, `type` and `avro`, the bytes.
    """
    value = F.col("value")
    rows = raw.withColumn("form", form_of())
    nothing = F.lit(None).cast("string")
    schema_id, schema_text, kind = nothing, nothing, nothing
    avro = F.lit(None).cast("binary")
    if ENVELOPE in forms:
        is_envelope = F.col("form") == ENVELOPE
        rows = rows.withColumn("envelope", F.when(is_envelope, parsed_envelope(value)))
        envelope = F.col("envelope")
        schema_id = F.when(is_envelope, F.nullif(envelope["messageSchemaId"], F.lit("")))
        schema_text = F.when(is_envelope, envelope["messageSchema"])
        kind = F.when(is_envelope, envelope["type"])
        avro = F.when(is_envelope, envelope["message"])
    if REGISTRY in forms:
        is_wire = F.col("form") == REGISTRY
        number = F.conv(F.hex(F.substring(value, 2, 4)), 16, 10)
        schema_id = F.when(is_wire, number).otherwise(schema_id)
        kind = F.when(is_wire, F.lit("DT")).otherwise(kind)
        avro = F.when(is_wire, F.expr("substr(value, 6)")).otherwise(avro)
    return rows.withColumns(
        {"schema_id": schema_id, "schema_text": schema_text, "type": kind, "avro": avro}
    )


def decoded(
    session: SparkSession,
    rows: DataFrame,
    forms: set[str],
    settings: SourceSettings,
    schemas: Mapping[str, Schema],
    texts: Mapping[str, str],
) -> DataFrame:
    """Decode messages.

    Args:
        forms: those that are among them.
        texts: Avro schema by its reference: a hash of the text that a message brings along, or a
            schema id.

    Returns:
        One row per message, with columns of MESSAGE_COLUMNS, and `waits_for`: the schema id that is
        not known yet, else NULL.
    """
    body = F.lit(None).cast(BODY)
    problem = F.lit(None).cast("string")
    schema_id = F.col("schema_id")
    rows = rows.withColumn("reference", schema_reference())
    if JSON in forms:
        is_json = F.col("form") == JSON
        rows = rows.withColumn("parsed", F.when(is_json, parsed_json(F.col("value"))))
        parsed = F.col("parsed")
        body = F.when(is_json, json_body(parsed)).otherwise(body)
        problem = F.when(is_json, json_problem(F.col("value"), parsed))
        schema_id = F.when(is_json, json_schema_id(parsed)).otherwise(schema_id)
    if texts:
        rows = with_avro_body(rows, F.col("reference"), texts)
        body = F.when(F.col("avro").isNotNull(), F.col("avro_body")).otherwise(body)
    # Generated columns are a border: conditions on the result stay behind it. Spark would put the
    # whole decoding into each condition, as often as it is named there, and plan for minutes.
    parts = F.struct(body.alias("body"), problem.alias("problem"), schema_id.alias("schema_id"))
    rows = rows.select(
        *[name for name in rows.columns if name != "schema_id"], F.inline(F.array(parts))
    )
    rows = _with_schema_id_of_headers(rows, schemas)
    rows = _with_table(session, rows, settings, schemas)
    return _log_rows(rows, settings, texts)


def schema_reference() -> Column:
    """Which Avro schema a message was written by, as a text."""
    return F.coalesce(F.md5(F.col("schema_text")), F.col("schema_id"))


def _with_schema_id_of_headers(rows: DataFrame, schemas: Mapping[str, Schema]) -> DataFrame:
    """If nothing outside of a message gives its schema id, `headers.externalSchemaId` does.

    A registry numbers schemas of its own: there the header counts if metadata has its schema.
    """
    schema_id = F.col("schema_id")
    of_headers = F.nullif(F.col("body")["headers"]["externalSchemaId"], F.lit(""))
    is_registered = F.coalesce(F.col("form") == REGISTRY, F.lit(False))
    differs = ~is_registered & (schema_id != of_headers)
    is_known = of_headers.isin(*schemas) if schemas else F.lit(False)
    problem = F.concat(
        F.lit("messageSchemaId is "),
        schema_id,
        F.lit(" and headers.externalSchemaId is "),
        of_headers,
    )
    return rows.withColumns(
        {
            "schema_id": F.when(is_registered & is_known, of_headers).otherwise(
                F.coalesce(schema_id, of_headers)
            ),
            "problem": F.coalesce("problem", F.when(differs, problem)),
        }
    )


def _with_table(
    session: SparkSession,
    rows: DataFrame,
    settings: SourceSettings,
    schemas: Mapping[str, Schema],
) -> DataFrame:
    known = [
        (name, schema.table_schema, schema.table_name, schema.columns and list(schema.columns))
        for name, schema in schemas.items()
    ]
    kinds = "schema_id string, known_schema string, known_table string, mask_columns array<string>"
    of_schemas = local_rows(session, known, kinds).withColumn("is_known", F.lit(True))
    rows = rows.join(F.broadcast(of_schemas), "schema_id", "left")
    if settings["table_from"] == "schema_id":
        schema, table = F.col("known_schema"), F.col("known_table")
    elif settings["table_from"] == "header":
        name = settings["table_header"]
        named = F.filter("headers", lambda header: header["key"] == F.lit(name))
        schema, table = F.lit(None), F.get(named, F.lit(0))["value"].cast("string")
    elif settings["table_from"] == "message":
        body = F.col("body")
        schema, table = (
            F.coalesce(F.nullif(body["headers"][name], F.lit("")), F.nullif(body[name], F.lit("")))
            for name in TABLE_FIELDS
        )
    else:
        schema, table = F.lit(None), F.col("topic")
    return rows.withColumns({"table_schema": schema.cast("string"), "table_name": table})


@dataclass(frozen=True)
class _Verdict:
    """Of each message: why it is rejected, in the log's word and in full; what it waits for."""

    reason: Column
    detail: Column
    waits_for: Column


def _verdict(settings: SourceSettings, texts: Mapping[str, str]) -> _Verdict:
    body, form = F.col("body"), F.col("form")
    headers, metadata = body["headers"], body["metadata"]
    is_avro = F.col("avro").isNotNull()
    has_text = F.col("reference").isin(*texts) if texts else F.lit(False)
    has_text = F.coalesce(has_text, F.lit(False))
    is_metadata = metadata.isNotNull()
    is_data = ~is_metadata & form.isNotNull() & F.col("problem").isNull()
    # its columns and its table must be known before a message can be decoded correctly
    needs_schema = settings["schemas_from"] == "metadata"
    is_unknown = F.col("schema_id").isNotNull() & F.col("is_known").isNull()
    lacks = (F.lit(needs_schema) & is_data & is_unknown) | (is_avro & ~has_text)
    lacks = F.coalesce(lacks, F.lit(False))
    can_wait = (form != REGISTRY) & F.col("schema_id").isNotNull()
    waits_for = F.when(lacks & can_wait, F.col("schema_id"))

    problem = F.coalesce(
        F.col("problem"),
        _ordinals_problem(metadata["columns"]["ordinal"]),
        F.when((form == ENVELOPE) & F.col("avro").isNull(), F.lit("no Avro envelope of a message")),
        F.when(
            is_avro & has_text & headers["operation"].isNull() & ~is_metadata,
            F.lit("its bytes are not a message by its Avro schema"),
        ),
        F.when(is_data & ~is_avro & headers["operation"].isNull(), F.lit("`headers` are missing")),
        F.when(
            is_data
            & headers["operation"].isNotNull()
            & body["data"].isNull()
            & body["beforeData"].isNull(),
            F.lit("neither `data` nor `beforeData`"),
        ),
    )
    no_schema = F.when(
        lacks,
        F.concat(
            F.lit("schema id "),
            F.coalesce(F.col("schema_id"), F.lit("(none)")),
            F.lit(" is not known"),
        ),
    )
    no_table = F.when(
        is_data & F.col("table_name").isNull(),
        F.lit(_NO_TABLE[settings["table_from"]].format(header=settings["table_header"])),
    )
    of_table = "unknown_schema" if settings["table_from"] == "schema_id" else "malformed_message"
    reason = F.coalesce(
        F.when(F.col("problem").isNotNull(), F.lit("malformed_message")),
        F.when(lacks, F.lit("unknown_schema")),
        F.when(problem.isNotNull(), F.lit("malformed_message")),
        F.when(no_table.isNotNull(), F.lit(of_table)),
    )
    detail = F.coalesce(F.col("problem"), no_schema, problem, no_table)
    return _Verdict(reason, detail, waits_for)


def _log_rows(rows: DataFrame, settings: SourceSettings, texts: Mapping[str, str]) -> DataFrame:
    body, form, is_avro = F.col("body"), F.col("form"), F.col("avro").isNotNull()
    headers, metadata = body["headers"], body["metadata"]
    is_metadata = metadata.isNotNull()
    verdict = _verdict(settings, texts)
    reason = verdict.reason
    kind = (
        F.when(form.isNull(), TOMBSTONE)
        .when(reason.isNotNull(), REJECTED)
        .when(is_metadata, METADATA)
        .when(headers["operation"] == "REFRESH", LOAD)
        .otherwise(CHANGE)
    )
    is_read = kind.isin(CHANGE, LOAD)
    image = F.when(is_read, body["data"])
    before = F.when(is_read, body["beforeData"])
    value = F.col("value")
    text = F.when(F.is_valid_utf8(value.cast("string")), value.cast("string"))
    own = {
        "change_seq": "changeSequence",
        "source_timestamp": "timestamp",
        "stream_position": "streamPosition",
        "transaction_id": "transactionId",
    }
    return rows.select(
        kind.alias("kind"),
        F.when(is_metadata, metadata["lineage"]["schema"])
        .otherwise(F.col("table_schema"))
        .alias("table_schema"),
        F.when(is_metadata, metadata["lineage"]["table"])
        .otherwise(F.col("table_name"))
        .alias("table_name"),
        "topic",
        "partition",
        "offset",
        F.col("timestamp").alias("produced_at"),
        "landed_at",
        F.when(is_metadata, metadata["schemaId"]).otherwise(F.col("schema_id")).alias("schema_id"),
        F.when(is_read, headers["operation"]).alias("operation"),
        # REFRESH has an empty text where a change has its position, and so on
        *[
            F.when(is_read, F.nullif(headers[field], F.lit(""))).alias(name)
            for name, field in own.items()
        ],
        F.when(is_read, headers["transactionEventCounter"]).alias("transaction_event"),
        F.when(is_read, headers["transactionLastEvent"]).alias("is_last_event"),
        *[
            F.when(is_read, _mask(headers[field], is_avro, settings)).alias(name)
            for name, field in (("change_mask", "changeMask"), ("column_mask", "columnMask"))
        ],
        F.when(is_read, F.col("mask_columns")).alias("mask_columns"),
        image.alias("image"),
        before.alias("before"),
        before.isNotNull().alias("has_before"),
        *[
            F.when(is_metadata, metadata["lineage"][field]).alias(name)
            for name, field in (
                ("table_version", "tableVersion"),
                ("server_name", "server"),
                ("task_name", "task"),
                ("metadata_timestamp", "timestamp"),
            )
        ],
        F.when(is_metadata, metadata["columns"]).alias("columns"),
        F.when(is_metadata, metadata["dataSchema"]).alias("data_schema"),
        reason.alias("reject_reason"),
        verdict.detail.alias("reject_detail"),
        F.when(reason.isNotNull(), F.coalesce(text, F.hex("value"))).alias("raw_value"),
        F.when(
            is_read,
            F.xxhash64(
                headers["operation"],
                headers["changeSequence"],
                *[part for values in (image, before) for part in _hashed(values)],
            ),
        )
        .otherwise(F.xxhash64("topic", "value"))
        .alias("record_hash"),
        verdict.waits_for.alias("waits_for"),
    )


def _ordinals_problem(ordinals: Column) -> Column:
    """The fault in the ordinals of a table's columns, in words; NULL for none."""
    is_each_one_clear = (
        (F.size(F.array_distinct(F.array_compact(ordinals))) == F.size(ordinals))
        & (F.array_min(ordinals) >= 1)
        & (F.array_max(ordinals) <= _LAST_ORDINAL)
    )
    return F.when(
        (F.size(ordinals) > 0) & ~is_each_one_clear,
        F.lit(
            f"the ordinals of its columns are not different whole numbers from 1 to {_LAST_ORDINAL}"
        ),
    )


def _hashed(values: Column) -> list[Column]:
    """A map as texts to hash: a hash skips NULL, so that it would ignore the position of a NULL."""
    return [F.map_keys(values), F.array_join(F.map_values(values), "\x1f", "\x00")]


def _mask(mask: Column, is_avro: Column, settings: SourceSettings) -> Column:
    """A mask as hex text whose last digit has the bits of the first four columns."""
    turned = F.regexp_replace(F.reverse(mask), "(.)(.)", "$2$1")
    order = settings["mask_byte_order"]
    if order == "auto":
        return F.when(is_avro, turned).otherwise(mask)
    return turned if order == "lsb_first" else mask
