"""Comments of tables and columns: on rows of which a table is created, and on existing tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.spark.literals import text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def describe_columns(rows: DataFrame, descriptions: Mapping[str, str]) -> DataFrame:
    """The same rows; columns with a description carry it as their comment."""
    from pyspark.sql import functions as F

    return rows.select(
        *[
            F.col(quoted(name)).alias(name, metadata={"comment": descriptions[name]})
            if descriptions.get(name)
            else F.col(quoted(name))
            for name in rows.columns
        ]
    )


def update_descriptions(
    session: SparkSession, table: str, description: str, columns: Mapping[str, str]
) -> None:
    """Set the comments of a table that differ, in one statement for all columns.

    Normally none does, and nothing is committed.

    Args:
        description: of the table; "" leaves its comment as it is.
        columns: column name -> description; other columns keep their comments.
    """
    if description and session.catalog.getTable(table).description != description.strip():
        session.sql(f"comment on table {table} is {text(description.strip())}")
    stored = session.table(table).schema.fields if columns else []
    differing = {
        field.name: columns[field.name].strip()
        for field in stored
        if field.name in columns
        and field.metadata.get("comment", "") != columns[field.name].strip()
    }
    if differing:
        specs = [f"{quoted(name)} comment {text(wanted)}" for name, wanted in differing.items()]
        session.sql(f"alter table {table} alter column {', '.join(specs)}")
