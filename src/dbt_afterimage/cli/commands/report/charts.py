"""The report's charts: which figures each shows, on which axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from dbt_afterimage.cli.commands.report.activity import Activity, Period, Series
from dbt_afterimage.cli.commands.report.growth import Growth
from dbt_afterimage.cli.commands.report.svg import Axis, Values, bars, lines
from dbt_afterimage.cli.commands.report.units import BYTES, COUNT, SECONDS, moment
from dbt_afterimage.cli.support.runs import Run

MOST_TABLES = 24
"""Charts of single tables: those with the most changes."""


@dataclass(frozen=True)
class TableCharts:
    """Throughput and lag of one table, or of all."""

    name: str
    changes: int
    throughput: Markup
    lag: Markup


def activity_charts(activity: Activity) -> list[TableCharts]:
    """Charts of all tables together, then of those with the most changes."""
    busiest = sorted(activity.tables.items(), key=lambda item: (-sum(item[1].changes), item[0]))
    found = [_table_charts("all tables", activity.total, activity.period)]
    if len(busiest) > 1:
        found += [
            _table_charts(name, series, activity.period) for name, series in busiest[:MOST_TABLES]
        ]
    elif busiest:
        found = [_table_charts(busiest[0][0], busiest[0][1], activity.period)]
    return found


def storage_chart(found: Growth) -> Markup:
    """Bytes over time."""
    span = (found.end - found.start).total_seconds()
    count = len(found.bytes)
    times = [
        found.start + (found.end - found.start) * index / (count - 1) for index in range(count)
    ]
    labels = (times[0], times[count // 2], times[-1])
    axis = Axis(
        [f"{time:%Y-%m-%d %H:%M:%S}" for time in times],
        (moment(labels[0], span), moment(labels[1], span), moment(labels[2], span)),
    )
    title = (
        f"Size of all tables: from {BYTES.text(found.bytes[0])} to {BYTES.text(found.bytes[-1])}"
    )
    return bars(title, axis, [Values("", "growth", found.bytes)], BYTES)


def runs_chart(runs: Sequence[Run]) -> Markup:
    """Seconds of each run, the oldest on the left; runs with a failed step have another colour."""
    oldest_first = list(reversed(runs))
    axis = Axis(
        [f"{moment(run.started_at)} dbt {run.command}" for run in oldest_first],
        (
            moment(oldest_first[0].started_at),
            "",
            moment(oldest_first[-1].started_at) if len(runs) > 1 else "",
        ),
    )
    good = [None if run.failures else run.seconds for run in oldest_first]
    bad = [run.seconds if run.failures else None for run in oldest_first]
    values = [Values("", "good", good), Values("(failed)", "bad", bad)]
    return bars(f"Time of the last {len(runs)} runs", axis, values, SECONDS)


def _table_charts(name: str, series: Series, period: Period) -> TableCharts:
    axis = _axis(period)
    changes, late = sum(series.changes), sum(series.late)
    greatest = max((each for each in series.greatest_lag if each is not None), default=None)
    on_time = [all_of - late for all_of, late in zip(series.changes, series.late, strict=True)]
    return TableCharts(
        name,
        changes,
        bars(
            f"Changes of {name} over time: {changes:,}, {late:,} of them late",
            axis,
            [Values("on time", "on-time", on_time), Values("late", "late", series.late)],
            COUNT,
        ),
        lines(
            f"Lag of {name} over time: up to {SECONDS.text(greatest)}",
            axis,
            [
                Values("on average", "average", series.average_lag),
                Values("slowest change", "slowest", series.greatest_lag),
            ],
            SECONDS,
        ),
    )


def _axis(period: Period) -> Axis:
    span = period.width * period.count
    buckets = [period.bucket(index) for index in range(period.count)]
    first, last = buckets[0][0], buckets[-1][1]
    labels = (moment(first, span), moment(first + (last - first) / 2, span), moment(last, span))
    return Axis([f"{moment(start)} to {moment(end)}" for start, end in buckets], labels)
