"""Changes, late changes and lag over time, from the change_activity table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from dbt_afterimage.cli.commands.query import connect, run
from dbt_afterimage.cli.support.warehouse import Warehouse

_MOST_BUCKETS = 72
_HOUR = 3600
_WIDTHS = tuple(_HOUR * hours for hours in (1, 2, 3, 6, 12, 24, 48, 168))

_SQL = """
    select table_name, activity_hour, changes, late_changes, total_lag_seconds, max_lag_seconds
    from "{activity}" where changes > 0 and activity_hour <= to_timestamp({now})
"""


@dataclass(frozen=True)
class Period:
    """A span of time, cut into equal buckets.

    Attributes:
        start: its first moment, UTC.
        width: seconds of a bucket.
        count: number of buckets.
    """

    start: datetime
    width: int
    count: int

    def bucket(self, index: int) -> tuple[datetime, datetime]:
        """The first moment of a bucket, and that of the next one."""
        first = self.start + timedelta(seconds=self.width * index)
        return first, first + timedelta(seconds=self.width)

    @property
    def span(self) -> tuple[datetime, datetime]:
        """The first moment, and the first one after it."""
        return self.bucket(0)[0], self.bucket(self.count - 1)[1]


@dataclass
class Series:
    """The activity of one table in each bucket of a period.

    Attributes:
        changes: changes that the source committed then.
        late: those of them that came after newer ones.
        average_lag: seconds from commit to change log, on average; None without changes.
        greatest_lag: the same of the slowest change.
    """

    changes: list[int]
    late: list[int]
    average_lag: list[float | None]
    greatest_lag: list[float | None]
    _total_lag: list[float] = field(default_factory=list, repr=False)

    @classmethod
    def empty(cls, count: int) -> Series:
        """A series of a number of buckets without changes."""
        nothing: list[float | None] = [None] * count
        return cls([0] * count, [0] * count, list(nothing), list(nothing), [0.0] * count)

    def add(self, index: int, changes: int, late: int, lag: float, greatest: float | None) -> None:
        """Count changes in a bucket; `lag` is the sum of their seconds."""
        self.changes[index] += changes
        self.late[index] += late
        self._total_lag[index] += lag
        self.average_lag[index] = self._total_lag[index] / self.changes[index]
        known = [each for each in (self.greatest_lag[index], greatest) if each is not None]
        self.greatest_lag[index] = max(known, default=None)


@dataclass(frozen=True)
class Activity:
    """Series by table over one period, and `total` over all tables."""

    period: Period
    total: Series
    tables: dict[str, Series]

    def has(self, table: str) -> bool:
        """Whether a table changed in the period."""
        return table in self.tables


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
    found = run(connect(), warehouse, schema, _SQL.format(activity=activity, now=now.timestamp()))
    rows = found.fetchall()
    if not rows:
        return None
    end = max(row[1] for row in rows) + timedelta(hours=1)
    rows = [row for row in rows if row[1] >= end - timedelta(days=days)]
    period = period_of(min(row[1] for row in rows), end)
    total = Series.empty(period.count)
    tables: dict[str, Series] = {}
    for table, hour, changes, late, lag, greatest in rows:
        index = int((hour - period.start).total_seconds() // period.width)
        own = tables.setdefault(str(table), Series.empty(period.count))
        for series in (own, total):
            series.add(index, int(changes), int(late), float(lag or 0), _number(greatest))
    return Activity(period, total, tables)


def period_of(
    start: datetime, end: datetime, widths: Sequence[int] = _WIDTHS, most: int = _MOST_BUCKETS
) -> Period:
    """The span from start to end in as many buckets as a chart has room for.

    Buckets begin at multiples of their width since 1970, so daily ones begin at midnight.

    Args:
        start: the first moment that must be in it, UTC.
        end: the first moment after it.
        widths: allowed widths of a bucket in seconds, the least first.
        most: number of buckets; only the greatest width may give more.
    """
    for width in widths:
        first = int(start.timestamp()) // width * width
        count = max(1, -(-int(end.timestamp() - first) // width))
        if count <= most:
            break
    return Period(datetime.fromtimestamp(first, timezone.utc), width, count)


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)
