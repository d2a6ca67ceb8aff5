"""Decoding as a function on Arrow arrays, which Spark calls in its workers, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from dbt_afterimage.sources.soliddb.framing import framing_of
from dbt_afterimage.sources.soliddb.records import Layout
from dbt_afterimage.sources.soliddb.value_columns import Column

RESULT_TYPE = "values map<string, string>, reject_reason string, reject_detail string"

DecodeBatch: TypeAlias = Callable[[pa.Array, pa.Array], pa.Array]


def batch_decoder(
    layouts: Mapping[int, Sequence[Column]], framing: str, encoding: str
) -> DecodeBatch:
    """A function (DATA as binary array, layout number as int array) -> struct array.

    The struct is RESULT_TYPE: column name -> text or NULL, and why a record is rejected. A record
    without a layout number, or with an unknown one, gets NULL.
    """

    def decode(data: pa.Array, numbers: pa.Array) -> pa.Array:
        cut = framing_of(framing)
        ready = {number: Layout(columns, cut, encoding) for number, columns in layouts.items()}
        offsets: list[int | None] = []
        names: list[str] = []
        texts: list[str | None] = []
        reasons: list[str | None] = []
        details: list[str | None] = []
        for value, number in zip(data.to_pylist(), numbers.to_pylist(), strict=True):
            layout = ready.get(number)
            decoded = layout.decode(value) if layout else None
            found = decoded.texts if decoded else None
            # NULL as an offset makes the map of that row NULL
            offsets.append(None if found is None else len(names))
            if layout is not None and found is not None:
                names.extend(layout.names)
                texts.extend(found)
            reasons.append(decoded.reject_reason if decoded else None)
            details.append(decoded.reject_detail if decoded else None)
        offsets.append(len(names))
        maps = pa.MapArray.from_arrays(
            pa.array(offsets, pa.int32()),
            pa.array(names, pa.string()),
            pa.array(texts, pa.string()),
        )
        columns = [maps, pa.array(reasons, pa.string()), pa.array(details, pa.string())]
        return pa.StructArray.from_arrays(
            columns, names=["values", "reject_reason", "reject_detail"]
        )

    return decode


def pickle_by_value() -> None:
    """From now on, what is sent to Spark's workers holds the code of this package itself.

    So the workers of a cluster need pyarrow, and not this package.
    """
    from pyspark import cloudpickle

    from dbt_afterimage.sources import soliddb

    # for good, since models run in several threads; registered twice is registered once
    cloudpickle.register_pickle_by_value(soliddb)  # type: ignore[no-untyped-call]
