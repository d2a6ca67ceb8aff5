"""Turns raw rows into Arrow tables with the column types that they land with in Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa

from afterimage_demo.qlik import RawRow

_TYPES: dict[str, pa.DataType] = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    # With a zone it becomes Spark's timestamp, a point in time; without, timestamp_ntz.
    "timestamp": pa.timestamp("us", tz="UTC"),
    "binary": pa.binary(),
}


def to_arrow(types: Mapping[str, str], rows: Sequence[RawRow]) -> pa.Table:
    """Return the rows as a table with these columns (name to Spark type), in this order."""
    columns = {
        name: pa.array([row[name] for row in rows], type=_arrow_type(data_type))
        for name, data_type in types.items()
    }
    return pa.table(columns)


def _arrow_type(data_type: str) -> pa.DataType:
    decimal = re.fullmatch(r"decimal\((\d+),(\d+)\)", data_type)
    if decimal:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return _TYPES[data_type]
