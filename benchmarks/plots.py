"""Plots of the measured figures."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor, log10
from pathlib import Path


def plot(file: Path, title: str, size: str, points: Mapping[int, Mapping[str, float]]) -> None:
    """Draw one line per case: seconds by size, on logarithmic axes.

    Args:
        file: the PNG to write.
        title: title of the plot.
        size: label of the x axis: the size that grows.
        points: by size, the seconds of each case.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, LogLocator

    figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
    sizes = list(points)
    for case in next(iter(points.values())):
        seconds = [points[value][case] for value in sizes]
        # baselines are dashed
        style = "--" if case.startswith(("append", "hand-written", "plain")) else "-"
        axes.plot(sizes, seconds, style, marker="o", label=case)
    # a size may be 0
    axes.set_xscale("symlog", linthresh=1)
    axes.set_yscale("log")
    measured = [seconds for cases in points.values() for seconds in cases.values()]
    axes.set_ylim(10 ** floor(log10(min(measured))), 10 ** ceil(log10(max(measured))))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:g}"))
    axes.yaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
    axes.set_xticks(sizes, [f"{value:,}" for value in sizes])
    axes.set_xlabel(size)
    axes.set_ylabel("seconds")
    axes.set_title(title)
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=110)
    pyplot.close(figure)
