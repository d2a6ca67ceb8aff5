"""Decodes messages with the schemas that they name: of metadata messages, or of a registry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.settings import SourceSettings
from dbt_afterimage.sources.qlik_messages.decode import (
    ENVELOPE,
    JSON,
    REGISTRY,
    Schema,
    check_avro,
    decoded,
    enveloped,
    schema_reference,
)
from dbt_afterimage.sources.qlik_messages.message_columns import METADATA
from dbt_afterimage.sources.schema_registry import registered_schema

logger = AdapterLogger("afterimage")

MAX_SCHEMAS = 1000
"""Each Avro schema is an expression of the plan, and a message may bring along any text as one."""


@dataclass(frozen=True)
class Decoder:
    """Inputs of decoding besides the messages.

    Attributes:
        stored: the messages that earlier runs have decoded; None where there are none.
    """

    session: SparkSession
    settings: SourceSettings
    stored: DataFrame | None

    def schemas(self, new: DataFrame, forms: set[str]) -> dict[str, Schema]:
        """Schema ids that metadata messages of earlier runs and of this one describe.

        Raises:
            AvroUnavailableError: Avro is among them, and Spark cannot read it.
        """
        if forms & {ENVELOPE, REGISTRY}:
            check_avro(self.session, self.settings["source_table"])
        if self.settings["schemas_from"] != "metadata" and ENVELOPE not in forms:
            return {}
        found: dict[str, Schema] = {}
        if self.stored is not None:
            found.update(_schemas_of(self.stored.filter(F.col("kind") == METADATA)))
        # metadata messages are few: what cannot be one is left out before it is parsed
        is_json = F.col("value").cast("string").contains('"MD"')
        rows = enveloped(new, forms).filter(
            F.when(F.col("form") == JSON, is_json).otherwise(F.col("type") == "MD")
        )
        settings: SourceSettings = {**self.settings, "schemas_from": "columns"}
        texts = self._texts(rows, forms, {})
        metadata = decoded(self.session, rows, forms, settings, {}, texts)
        found.update(_schemas_of(metadata.filter(F.col("kind") == METADATA)))
        return found

    def decoded(self, raw: DataFrame, forms: set[str], schemas: dict[str, Schema]) -> DataFrame:
        """Landed messages, decoded: see `decode.decoded`."""
        rows = enveloped(raw, forms)
        texts = self._texts(rows, forms, schemas)
        return decoded(self.session, rows, forms, self.settings, schemas, texts)

    def _texts(
        self, rows: DataFrame, forms: set[str], schemas: dict[str, Schema]
    ) -> dict[str, str]:
        """The Avro schemas that messages were written by, by their reference."""
        if not forms & {ENVELOPE, REGISTRY}:
            return {}
        references = (
            rows.filter(F.col("avro").isNotNull())
            .groupBy(schema_reference().alias("reference"), "form")
            .agg(F.first("schema_text").alias("schema_text"), F.count("*").alias("messages"))
            .orderBy(F.desc("messages"), "reference")
            .limit(MAX_SCHEMAS + 1)
            .collect()
        )
        if len(references) > MAX_SCHEMAS:
            logger.warning(
                f"Source table {self.settings['source_table']}: its new messages were written by "
                f"more than {MAX_SCHEMAS} Avro schemas. Messages of the rarest schemas are not "
                "decoded: they wait for a later run, or are rejected as `unknown_schema`. Fix: if "
                "the schemas are right, let each model decode the topics of fewer tables, and read "
                "the rejected messages again with `afterimage rejects TABLE --replay`."
            )
        texts: dict[str, str] = {}
        for row in references[:MAX_SCHEMAS]:
            name, text = row["reference"], row["schema_text"]
            if name is None:
                continue
            if text is None and row["form"] == REGISTRY:
                text = self._registered(name)
            elif text is None and name in schemas:
                text = schemas[name].avro
            if text is not None:
                texts[name] = text
        return texts

    def _registered(self, schema_id: str) -> str | None:
        registry = self.settings["schema_registry"]
        return registered_schema(registry, schema_id) if registry else None


def _schemas_of(metadata: DataFrame) -> dict[str, Schema]:
    """Metadata messages by schema id; there is one per table and version of it."""
    columns = F.transform(
        "columns",
        lambda column: F.struct(column["ordinal"].alias("ordinal"), column["name"].alias("name")),
    )
    rows = (
        metadata.filter(F.col("schema_id").isNotNull())
        .groupBy("schema_id")
        .agg(
            F.max(
                F.struct("table_schema", "table_name", columns.alias("columns"), "data_schema")
            ).alias("it")
        )
        .select("schema_id", "it.*")
        .collect()
    )
    return {
        row["schema_id"]: Schema(
            row["table_schema"],
            row["table_name"],
            None if row["columns"] is None else _by_ordinal(row["columns"]),
            row["data_schema"],
        )
        for row in rows
    }


def _by_ordinal(columns: Sequence[Row]) -> tuple[str | None, ...]:
    """Names of columns by ordinal; None for one that no column has, for its column was dropped."""
    names = {column["ordinal"]: column["name"] for column in columns}
    return tuple(names.get(ordinal) for ordinal in range(1, max(names, default=0) + 1))
