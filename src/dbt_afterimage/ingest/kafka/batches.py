"""Which messages are landed together, and in which order."""

from __future__ import annotations

from collections import defaultdict

from dbt_afterimage.sources.qlik_messages.offsets import Offsets


def in_order(start: Offsets, counts: Offsets, size: int) -> list[dict[tuple[str, int], int]]:
    """Split the partitions to land: topics with few messages come first, completely.

    In a batch each partition has a share by its size, so a topic of metadata messages would be no
    further than the data that cannot be decoded without it. Whole topics, because the partitions of
    one topic are landed side by side: they may hold parts of one full load.

    Args:
        start: the first offset of each partition.
        counts: the number of offsets that each partition has to land.

    Returns:
        One or two parts of `start`. The first of two has fewer than `size` offsets.
    """
    of_topic: dict[str, int] = defaultdict(int)
    for (topic, _), count in counts.items():
        if count:
            of_topic[topic] += count
    if sum(of_topic.values()) <= size:
        return [dict(start)]
    share = size // len(of_topic)
    few = {key: at for key, at in start.items() if 0 < of_topic[key[0]] <= share}
    many = {key: at for key, at in start.items() if key not in few}
    return [part for part in (few, many) if part]


def shares(counts: Offsets, size: int) -> dict[tuple[str, int], int]:
    """The number of offsets that each partition has in the next batch, by its share of the rest.

    Args:
        counts: the number of offsets that each partition still has.
        size: up to this many are in the batch.

    Returns:
        Partitions with at least one offset: `size` offsets together, or all that are left.
    """
    total = sum(counts.values())
    if total <= size:
        return {key: count for key, count in counts.items() if count}
    result = {key: count * size // total for key, count in counts.items()}
    # what rounding leaves goes to the largest remainders; so every batch comes further
    by_remainder = sorted(counts, key=lambda key: (-(counts[key] * size % total), key))
    for key in by_remainder[: size - sum(result.values())]:
        result[key] += 1
    return {key: count for key, count in result.items() if count}
