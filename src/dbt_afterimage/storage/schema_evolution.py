"""Schema evolution in Spark: reads a table's schema, and alters it to what a run wants to write."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbt_afterimage.storage.schema_contract import (
    Alterations,
    TargetSchema,
    alterations,
    statements,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


def column_types(schema: StructType) -> dict[str, str]:
    """Column name -> type, as SQL."""
    return {field.name: field.dataType.simpleString() for field in schema.fields}


def check_table(session: SparkSession, wanted: TargetSchema) -> Alterations:
    """Alterations that an existing table needs before a run writes to it; metadata only.

    Raises:
        SchemaContractError: the table cannot be written to.
    """
    properties = table_properties(session, wanted.table)
    return alterations(wanted, column_types(session.table(wanted.table).schema), properties)


def table_properties(session: SparkSession, table: str) -> dict[str, str]:
    """Properties of a table by name."""
    rows = session.sql(f"show tblproperties {table}").collect()
    return {row["key"]: row["value"] for row in rows}


def alter_table(session: SparkSession, table: str, changes: Alterations, table_format: str) -> bool:
    """Alter a table; whether there was anything to alter. Else nothing is sent or committed."""
    # not on top: formats import PySpark, and dbt imports this module in each of its commands
    from dbt_afterimage.storage.formats import format_named

    table_kind = format_named(table_format)
    named = table_kind.properties_for_columns(changes.added)
    changes = replace(changes, properties={**changes.properties, **named})
    found = list(statements(table, changes, table_kind.widening_properties))
    for statement in found:
        session.sql(statement)
    return bool(found)
