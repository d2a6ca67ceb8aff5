"""The report's charts, which matplotlib draws as SVG for inside the page.

Its colours become those of the style sheet, for light and for dark. Each chart is 360 points wide,
about as many pixels as it gets on a telephone and in a column of a wide window.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from markupsafe import Markup, escape

from dbt_afterimage.cli.commands.report.activity import Activity, Period, Series
from dbt_afterimage.cli.commands.report.growth import Growth
from dbt_afterimage.cli.support.runs import Run
from dbt_afterimage.cli.support.units import BYTES, COUNT, SECONDS, Unit, moment
from dbt_afterimage.cli.support.warehouse import missing_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_TABLES = 24
"""Charts of single tables: those with the most changes."""

BLUE, ORANGE, RED, _MUTED, _LINE = "#2563a8", "#c2570c", "#b3261e", "#5b636d", "#d9dde2"
_OF_THE_PAGE = {BLUE: "blue", ORANGE: "orange", RED: "red", _MUTED: "muted", _LINE: "line"}
_BAR = 0.85
"""Share of a bar's place that it takes."""
_numbers = count()


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
    shown = busiest[:MOST_TABLES]
    if len(busiest) > 1:
        shown = [("all tables", activity.total), *shown]
    return [_table_charts(name, series, activity.period) for name, series in shown]


def _table_charts(name: str, series: Series, period: Period) -> TableCharts:
    changes, late = sum(series.changes), sum(series.late)
    greatest = max((each for each in series.greatest_lag if each is not None), default=None)
    on_time = [all_of - late for all_of, late in zip(series.changes, series.late, strict=True)]
    starts, width = period.starts, period.width
    throughput = bars(
        f"Changes of {name} over time: {changes:,}, {late:,} of them late",
        starts,
        width,
        [(BLUE, on_time), (ORANGE, series.late)],
        COUNT,
    )
    middles = [start + width / 2 for start in starts]
    title = f"Lag of {name} over time: up to {SECONDS.text(greatest)}"
    numbers = [(BLUE, series.average_lag), (ORANGE, series.greatest_lag)]
    return TableCharts(name, changes, throughput, lines(title, middles, numbers, SECONDS))


def storage_chart(found: Growth) -> Markup:
    """Bytes over time."""
    step = found.moments[1] - found.moments[0]
    first, last = BYTES.text(found.bytes[0]), BYTES.text(found.bytes[-1])
    title = f"Size of all tables: from {first} to {last}"
    return bars(title, found.moments, step, [(BLUE, found.bytes)], BYTES)


def runs_chart(runs: Sequence[Run]) -> Markup:
    """Seconds of each run, the oldest on the left; runs with a failed step have another colour."""
    oldest_first = list(reversed(runs))
    stacks = [
        (BLUE, [0 if run.failures else run.seconds for run in oldest_first]),
        (RED, [run.seconds if run.failures else 0 for run in oldest_first]),
    ]
    names = [moment(run.started_at) for run in oldest_first]
    return bars(f"Time of the last {len(runs)} runs", names, None, stacks, SECONDS)


def bars(
    title: str,
    starts: Sequence[datetime] | Sequence[str],
    width: timedelta | None,
    stacks: Sequence[tuple[str, Sequence[float]]],
    unit: Unit,
) -> Markup:
    """Bars on top of one another, the lowest first.

    Args:
        title: the chart in a sentence, for screen readers.
        starts: the times at which bars start; without a width names, of which the ends are shown.
        stacks: colour and numbers of each layer.
        unit: of the numbers.
    """
    totals = [sum(place) for place in zip(*(numbers for _, numbers in stacks), strict=True)]
    axes, scale = _axes(max(totals, default=0), unit)
    below = [0.0] * len(starts)
    for colour, numbers in stacks:
        heights = [number / scale for number in numbers]
        places: Any = starts if width else range(len(starts))
        wide: Any = (width or 1) * _BAR
        axes.bar(places, heights, wide, below, align="edge", color=colour)
        below = [low + height for low, height in zip(below, heights, strict=True)]
    if not width:
        ends = sorted({0, len(starts) - 1})
        axes.set_xticks([end + _BAR / 2 for end in ends], [str(starts[end]) for end in ends])
    return _markup(axes, title, is_over_time=width is not None)


def lines(
    title: str,
    times: Sequence[datetime],
    values: Sequence[tuple[str, Sequence[float | None]]],
    unit: Unit,
) -> Markup:
    """A line for each of the values; a number between two gaps is a dot.

    Args:
        title: the chart in a sentence, for screen readers.
        values: colour and numbers of each line; None leaves a gap.
        unit: of the numbers.
    """
    known = [number for _, numbers in values for number in numbers if number is not None]
    axes, scale = _axes(max(known, default=0), unit)
    for colour, numbers in values:
        # a lag is negative where the source's clock is ahead
        heights = [float("nan") if each is None else max(0, each) / scale for each in numbers]
        places: Any = times
        axes.plot(places, heights, color=colour, marker="o", markersize=3, linewidth=1.8)
    return _markup(axes, title)


def _axes(greatest: float, unit: Unit) -> tuple[Axes, float]:
    """Empty axes from 0 to a greatest value, and the number by which values are divided."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator
    except ImportError as error:
        raise missing_extra("matplotlib") from error
    scale, name = unit.scale(greatest)
    axes = Figure(figsize=(5, 2), layout="constrained").subplots()
    # the smallest scale counts things: no half of one
    whole = scale == unit.scales[-1][0]
    axes.yaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 2.5, 5, 10], integer=whole))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g} {name}".rstrip())
    axes.set_ylim(0, max(greatest / scale * 1.05, 1))
    axes.grid(axis="y", color=_LINE)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelcolor=_MUTED)
    return axes, scale


def _markup(axes: Axes, title: str, is_over_time: bool = True) -> Markup:
    """The chart as an element of a page: ids of its own, and no name spaces: they are addresses."""
    from matplotlib import rc_context
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    if is_over_time:
        locator = AutoDateLocator(minticks=2, maxticks=5)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    text, figure = io.StringIO(), cast("Figure", axes.figure)
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with rc_context({"svg.fonttype": "none"}):
        figure.savefig(text, format="svg", transparent=True, metadata=nothing)
    svg = text.getvalue()
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg[svg.index("<svg") :])
    svg = re.sub(r"( id=\"|url\(#|href=\"#)", rf"\g<1>chart{next(_numbers)}_", svg)
    for colour, name in _OF_THE_PAGE.items():
        svg = svg.replace(colour, f"var(--{name})")
    label = f'<svg class="chart" role="img" aria-label="{escape(title)}"'
    # matplotlib escapes all texts
    return Markup(svg.replace("<svg", label, 1))
