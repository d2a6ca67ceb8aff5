"""How tables are created: raw tables that this package lands, change logs, marts and progress."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from pyspark.sql import DataFrame, DataFrameWriterV2
from pyspark.sql import functions as F

from dbt_afterimage.storage.formats import format_named


def table_writer(
    rows: DataFrame,
    table: str,
    table_format: str,
    partition_by: Iterable[str] = (),
    properties: Mapping[str, str] = MappingProxyType({}),
    *,
    gather: bool = True,
) -> DataFrameWriterV2:
    """Prepare to create a table from rows, or to replace one.

    Args:
        gather: shuffle the rows of a partition together first. Otherwise each task writes its own
            rows, which is faster where partitions are few: Iceberg would make a task of each.
    """
    table_kind = format_named(table_format)
    writer = rows.writeTo(table).using(table_format)
    if not gather:
        writer = writer.options(**table_kind.each_task_writes)
    named = table_kind.properties_for_columns(rows.columns)
    for name, value in {**table_kind.properties, **properties, **named}.items():
        writer = writer.tableProperty(name, value)
    columns = [F.col(name) for name in partition_by]
    return writer.partitionedBy(*columns) if columns else writer


def table_options(table_format: str) -> str:
    """The format and its properties, for `create table` in SQL."""
    properties = format_named(table_format).properties
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    return f"using {table_format} tblproperties ({listed})"
