"""How the tables grew, from the commits that their metadata still has."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from dbt_afterimage.cli.support.warehouse import TableVersion

_POINTS = 48


@dataclass(frozen=True)
class Growth:
    """Bytes of several tables at moments that are equally far apart, the last one now.

    Attributes:
        moments: UTC.
        bytes: by moment.
    """

    moments: list[datetime]
    bytes: list[int]

    @property
    def added(self) -> int:
        """Bytes at the end less those at the start."""
        return self.bytes[-1] - self.bytes[0]


def growth(
    versions: Iterable[Sequence[TableVersion]], days: int, now: datetime, points: int = _POINTS
) -> Growth | None:
    """Bytes of tables over time; None if no commit records its size.

    Args:
        versions: commits of each table, the oldest first.
    """
    sized = [
        [(each.committed_at, each.bytes) for each in table if each.bytes is not None]
        for table in versions
    ]
    sized = [table for table in sized if table]
    if not sized:
        return None
    start = max(min(table[0][0] for table in sized), now - timedelta(days=days))
    step = (now - start) / (points - 1)
    moments = [start + step * index for index in range(points - 1)] + [now]
    total = [sum(_at(table, moment) for table in sized) for moment in moments]
    return Growth(moments, total)


def _at(table: Sequence[tuple[datetime, int]], moment: datetime) -> int:
    """Bytes of a table at a moment; 0 before its first commit."""
    index = bisect_right(table, moment, key=lambda version: version[0])
    return table[index - 1][1] if index else 0
