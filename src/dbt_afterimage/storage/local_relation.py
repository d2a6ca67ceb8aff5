"""A few rows that the driver holds, as a DataFrame.

Spark's own way from a list of tuples starts Python workers, each time the rows are read: by far the
longest part of a small job. Rows that come as Arrow are in the plan itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

Values = Mapping[str, Any] | Sequence[Any]
"""One row: by name, where a missing name is NULL, or in the order of the columns."""


def local_rows(session: SparkSession, rows: Iterable[Values], columns: str) -> DataFrame:
    """Rows as a DataFrame.

    Args:
        rows: the rows; there may be none. Times without a zone are UTC.
        columns: names and types, as in `create table`.
    """
    struct = cast(StructType, StructType.fromDDL(columns))
    arrow = to_arrow_schema(struct)
    given = [_by_place(row, struct) for row in rows]
    arrays = [
        pa.array([_as_arrow(row[place], field.dataType) for row in given], arrow.field(place).type)
        for place, field in enumerate(struct.fields)
    ]
    table = pa.Table.from_arrays(arrays, schema=arrow)
    return session.createDataFrame(table, struct)


def _by_place(row: Values, struct: StructType) -> Sequence[Any]:
    return [row.get(name) for name in struct.names] if isinstance(row, Mapping) else row


def _as_arrow(value: Any, kind: DataType) -> Any:
    """The same value in the form that Arrow takes: structs by name, maps as pairs."""
    if value is None:
        return None
    if isinstance(kind, StructType):
        by_place = _by_place(value, kind)
        return {
            field.name: _as_arrow(by_place[place], field.dataType)
            for place, field in enumerate(kind.fields)
        }
    if isinstance(kind, ArrayType):
        return [_as_arrow(element, kind.elementType) for element in value]
    if isinstance(kind, MapType):
        return [
            (_as_arrow(key, kind.keyType), _as_arrow(element, kind.valueType))
            for key, element in value.items()
        ]
    return bytes(value) if isinstance(value, bytearray) else value
