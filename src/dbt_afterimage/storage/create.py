"""How a table is made, for all that make one: landed tables, change logs, marts and progress."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from pyspark.sql import DataFrame, DataFrameWriterV2
from pyspark.sql import functions as F

EACH_TASK_WRITES = {"distribution-mode": "none", "fanout-enabled": "true"}
"""Options of Iceberg's writer: each task writes what it has, to any partition."""

_FORMAT_PROPERTIES: Mapping[str, Mapping[str, str]] = {
    "iceberg": {
        # A row group is read by one task. 16 MiB is the least that Iceberg gives to one; by default
        # row groups have 128 MiB, so that one core would read a table of a million rows.
        "write.parquet.row-group-size-bytes": str(16 << 20),
        # Each commit adds a list of files, and each statement reads them all; by default Iceberg
        # merges them when there are 100 (docs/decisions/0047).
        "commit.manifest.min-count-to-merge": "10",
    },
    "delta": {
        # Where rows may be marked as deleted Delta asks three times instead of once which files a
        # statement reads (docs/decisions/0048). Marts, whose rows do go, have it set.
        "delta.enableDeletionVectors": "false",
    },
}
"""Table format -> properties of every table, but for those that the table itself is given."""


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
        rows: what the table will hold.
        table: its name.
        table_format: `iceberg` or `delta`.
        partition_by: names of columns.
        properties: table properties.
        gather: the rows of a partition are brought together first. Otherwise each task writes what
            it has, which is faster where partitions are few, for Iceberg would make a task of each.
    """
    writer = rows.writeTo(table).using(table_format)
    if table_format == "iceberg" and not gather:
        writer = writer.options(**EACH_TASK_WRITES)
    for name, value in {**_FORMAT_PROPERTIES[table_format], **properties}.items():
        writer = writer.tableProperty(name, value)
    columns = [F.col(name) for name in partition_by]
    return writer.partitionedBy(*columns) if columns else writer


def table_options(table_format: str) -> str:
    """The format and its properties, for `create table` in SQL."""
    listed = ", ".join(f"'{name}' = '{v}'" for name, v in _FORMAT_PROPERTIES[table_format].items())
    return f"using {table_format} tblproperties ({listed})"
