"""Offsets per topic and partition: up to where messages were read, in Kafka's own notation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

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


def is_after(offsets: Offsets) -> Column:
    """True for a message behind these offsets, or of a partition that is not among them."""
    known = F.lit(False)
    after = F.lit(False)
    for topic, numbers in _by_topic(offsets).items():
        of_topic = F.col("topic") == topic
        known = known | (of_topic & F.col("partition").isin(*numbers))
        each = [
            (F.col("partition") == number) & (F.col("offset") > numbers[number])
            for number in numbers
        ]
        after = after | (of_topic & reduce(lambda one, other: one | other, each))
    return after | ~known


def is_up_to(offsets: Offsets) -> Column:
    """True for a message of one of these partitions, at its offset or before."""
    found = F.lit(False)
    for topic, numbers in _by_topic(offsets).items():
        each = [
            (F.col("partition") == number) & (F.col("offset") <= numbers[number])
            for number in numbers
        ]
        found = found | ((F.col("topic") == topic) & reduce(lambda one, other: one | other, each))
    return found


def _by_topic(offsets: Offsets) -> dict[str, dict[int, int]]:
    nested: dict[str, dict[int, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        nested.setdefault(topic, {})[partition] = offset
    return nested
