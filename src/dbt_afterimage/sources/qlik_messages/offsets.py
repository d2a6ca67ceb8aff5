"""Offsets per topic and partition: up to where messages were read, in Kafka's own notation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from dbt_afterimage.sources.qlik_messages.load_runs import Range

Offsets = Mapping[tuple[str, int], int]
"""(topic, partition) -> an offset."""


def from_text(text: str | None) -> dict[tuple[str, int], int]:
    """Offsets from JSON: `{"shop.carts": {"0": 41}}`.

    Raises:
        ValueError: the text is something else, such as a part of it.
    """
    given = json.loads(text) if text else {}
    try:
        return {
            (topic, int(partition)): int(offset)
            for topic, partitions in given.items()
            for partition, offset in partitions.items()
        }
    except (AttributeError, TypeError) as error:
        raise ValueError(f"no offsets per topic and partition: {text}") from error


def to_text(offsets: Offsets) -> str:
    """Offsets as JSON, always the same text for the same offsets."""
    nested: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        nested.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(nested)


def of_rows(rows: Iterable[Row]) -> dict[tuple[str, int], int]:
    """Offsets of rows with `topic`, `partition` and `offset`."""
    return {(row["topic"], row["partition"]): row["offset"] for row in rows}


def last_offsets(rows: DataFrame, offset: Column | str = "offset") -> dict[tuple[str, int], int]:
    """The greatest offset of each partition in rows with `topic`, `partition` and `offset`."""
    last = rows.groupBy("topic", "partition").agg(F.max(offset).alias("offset"))
    return of_rows(last.collect())


def merged(*several: Offsets) -> dict[tuple[str, int], int]:
    """The greatest offset of each partition."""
    result: dict[tuple[str, int], int] = {}
    for offsets in several:
        for place, offset in offsets.items():
            result[place] = max(offset, result.get(place, offset))
    return result


def is_up_to(offsets: Offsets) -> Column:
    """True for a message of one of these partitions, at its offset or before."""
    return in_ranges((*place, 0, offset) for place, offset in sorted(offsets.items()))


def in_ranges(ranges: Iterable[Range]) -> Column:
    """True for a message that lies in one of these ranges."""
    found = F.lit(False)
    for topic, partition, first, last in ranges:
        is_partition = (F.col("topic") == topic) & (F.col("partition") == partition)
        found = found | (is_partition & F.col("offset").between(first, last))
    return found
