"""Changes, late changes and lag over time, from the change_activity table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from dbt_afterimage.cli.commands.query import connect, run
from dbt_afterimage.cli.support.warehouse import Warehouse

_MOST_BUCKETS = 72
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_WIDTHS = tuple(timedelta(hours=hours) for hours in (1, 2, 3, 6, 12, 24, 48, 168))
"""Allowed widths of a bucket, the least first."""

_HOURS_SQL = """
    select *, max(activity_hour) over () as newest_hour
    from "{activity}" where changes > 0 and activity_hour <= to_timestamp({now})
    qualify activity_hour > newest_hour - to_hours(24 * {days})
"""
_FIGURES_SQL = """
    table_name, bucket, sum(changes), sum(late_changes),
    coalesce(sum(total_lag_seconds), 0) / sum(changes), max(max_lag_seconds)
"""


@dataclass(frozen=True)
class Period:
    """A span of time, cut into equal buckets.

    Attributes:
        starts: the first moment of each bucket, UTC.
        width: of a bucket.
    """

    starts: list[datetime]
    width: timedelta

    @property
    def end(self) -> datetime:
        """The first moment after it."""
        return self.starts[-1] + self.width


@dataclass(frozen=True)
class Series:
    """The activity of one table in each bucket of a period.

    Attributes:
        changes: changes that the source committed then.
        late: those of them that came after newer ones.
        average_lag: seconds from commit to change log, on average; None without changes.
        greatest_lag: the same of the slowest change.
    """

    changes: tuple[int, ...]
    late: tuple[int, ...]
    average_lag: tuple[float | None, ...]
    greatest_lag: tuple[float | None, ...]


@dataclass(frozen=True)
class Activity:
    """Series by table over one period, and `total` over all tables."""

    period: Period
    total: Series
    tables: dict[str, Series]


def read_activity(
    warehouse: Warehouse, schema: str, activity: str, days: int, now: datetime
) -> Activity | None:
    """The last days up to the newest hour in which something changed; None if nothing ever did.

    Args:
        activity: name of a `change_activity` table there.
        days: length of the period; it is shorter if the first change is younger.
        now: hours after it are left out: a source's clock may be wrong.
    """
    if activity not in warehouse.relations(schema):
        return None
    sql = _HOURS_SQL.format(activity=activity, now=now.timestamp(), days=days)
    hours = run(connect(), warehouse, schema, sql)
    ((first, newest),) = hours.aggregate("min(activity_hour), max(activity_hour)").fetchall()
    if newest is None:
        return None
    period = period_of(first, newest + timedelta(hours=1))
    start, width = period.starts[0].timestamp(), period.width.total_seconds()
    bucket = f"(epoch(activity_hour)::bigint - {start:.0f}) // {width:.0f}"
    figures_of = hours.project(f"*, {bucket} as bucket").aggregate(
        _FIGURES_SQL, "grouping sets ((table_name, bucket), (bucket))"
    )
    # those of all tables have no name
    rows: dict[str | None, list[tuple[Any, ...]]] = {}
    for table, index, *figures in figures_of.fetchall():
        of_table = rows.setdefault(table, [(0, 0, None, None)] * len(period.starts))
        of_table[index] = tuple(figures)
    series = {table: Series(*zip(*each, strict=True)) for table, each in rows.items()}
    total = series.pop(None)
    return Activity(period, total, {str(table): each for table, each in series.items()})


def period_of(start: datetime, end: datetime) -> Period:
    """The span from start to end in as many buckets as a chart has room for.

    Buckets begin at multiples of their width since 1970, so daily ones begin at midnight.

    Args:
        start: the first moment that must be in it, UTC.
        end: the first moment after it.
    """
    for width in _WIDTHS:
        first = start - (start - _EPOCH) % width
        count = max(1, -((first - end) // width))
        if count <= _MOST_BUCKETS:
            break
    return Period([first + width * index for index in range(count)], width)
