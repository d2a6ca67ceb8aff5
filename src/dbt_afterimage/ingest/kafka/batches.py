"""What is landed first, where it is too much for one batch."""

from __future__ import annotations

from collections import defaultdict

from dbt_afterimage.sources.qlik_messages.offsets import Offsets


def in_order(start: Offsets, counts: Offsets, size: int) -> list[dict[tuple[str, int], int]]:
    """Split what is to be landed: topics with few messages come first, and whole.

    Of a batch Spark gives each partition a share by its size, so a topic of metadata messages would
    be as far as the data that cannot be read without it. Whole topics, because the partitions of
    one go on side by side: they may hold parts of one full load.

    Args:
        start: where each partition begins.
        counts: how many messages each of them has to land.
        size: so many messages are a batch.

    Returns:
        One or two parts of `start`. The first of two has fewer than `size` messages.
    """
    of_topic: dict[str, int] = defaultdict(int)
    for (topic, _), count in counts.items():
        if count:
            of_topic[topic] += count
    if sum(of_topic.values()) <= size:
        return [dict(start)]
    share = size // len(of_topic)
    few = {place: at for place, at in start.items() if 0 < of_topic[place[0]] <= share}
    many = {place: at for place, at in start.items() if place not in few}
    return [part for part in (few, many) if part]
