"""The writer of a new table, for all that make one: change logs, decoded logs and marts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from pyspark.sql import DataFrame, DataFrameWriterV2
from pyspark.sql import functions as F


def table_writer(
    rows: DataFrame,
    table: str,
    table_format: str,
    partition_by: Iterable[str] = (),
    properties: Mapping[str, str] = MappingProxyType({}),
) -> DataFrameWriterV2:
    """Prepare to create a table from rows, or to replace one.

    Args:
        rows: what the table will hold.
        table: its name.
        table_format: `iceberg` or `delta`.
        partition_by: names of columns.
        properties: table properties.
    """
    writer = rows.writeTo(table).using(table_format)
    for name, value in properties.items():
        writer = writer.tableProperty(name, value)
    columns = [F.col(name) for name in partition_by]
    return writer.partitionedBy(*columns) if columns else writer
