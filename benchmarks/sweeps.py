"""How cost grows as one size varies: `make bench-sweeps`.

    python -m benchmarks.sweeps --table-format iceberg --only share columns

Each point is measured in a new process, so that no point profits from a warm JVM. The figures of
finished points stay in the folder of --results, so an interrupted run can be resumed; --only limits
a run to some sweeps. Writes a plot (PNG) and a Markdown table for each sweep.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.many_tables import ALL, NONE, ONE, VIEWS
from benchmarks.measuring import common_options
from benchmarks.plots import plot

CHAIN, MANY_TABLES = "benchmarks", "benchmarks.many_tables"
CASES = {
    CHAIN: (
        "items_changes",
        "items_history",
        "items_current",
        "items_field_changes",
        "append items_history",
        "hand-written history",
    ),
    MANY_TABLES: (ALL, ONE, NONE, VIEWS),
}
"""The cases of each module that plots and tables show."""


@dataclass(frozen=True)
class Sweep:
    """One size varies, all others are fixed.

    Attributes:
        title: title of the plot: the fixed sizes.
        size: label of the x axis: the size that varies.
        option: command line option that sets the size.
        values: values of that option, one per point.
        others: further command line options.
        module: module that measures a point.
    """

    title: str
    size: str
    option: str
    values: tuple[int, ...]
    others: tuple[str, ...] = ()
    module: str = CHAIN


SWEEPS = {
    "share": Sweep(
        "1,000,000 keys, 20 columns",
        "changes in the batch",
        "--changes",
        (100, 1_000, 10_000, 100_000, 1_000_000, 5_000_000),
    ),
    "closed": Sweep(
        "1,000,000 keys, 20 columns, 100,000 changes",
        "closed versions per open version",
        "--closed",
        (0, 1, 10, 30),
    ),
    "columns": Sweep(
        "100,000 keys, 10,000 changes",
        "columns",
        "--columns",
        (10, 100, 500),
        ("--keys", "100000", "--changes", "10000"),
    ),
    "keys": Sweep(
        "20 columns, 10,000 changes",
        "keys",
        "--keys",
        (100_000, 1_000_000, 10_000_000),
        ("--changes", "10000"),
    ),
    "tables": Sweep(
        "5 models per table, 2 dbt threads", "tables", "--tables", (1, 10, 100), (), MANY_TABLES
    ),
    "threads": Sweep(
        "10 tables, 2 cores", "dbt threads", "--threads", (1, 2, 4), ("--all",), MANY_TABLES
    ),
}


def measured(
    folder: Path, sweep: Sweep, value: int, table_format: str, repeats: int
) -> dict[str, float]:
    """The medians of a point by case; measures the point if it has no figures yet."""
    seconds: dict[str, list[float]] = {}
    files = {f"{table_format}.json": ["--no-snapshot", "--no-late"]}
    if sweep.module == MANY_TABLES:
        files = {f"{table_format}.json": [], f"{table_format}_views.json": ["--views"]}
    for name, options in files.items():
        file = folder / name
        if not file.exists():
            command = [sys.executable, "-m", sweep.module, "--table-format", table_format]
            command += ["--repeats", str(repeats), "--results", str(folder)]
            command += [*options, *sweep.others, sweep.option, str(value)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds |= json.loads(file.read_text(encoding="utf-8"))["seconds"]
    cases = [case for case in CASES[sweep.module] if case in seconds]
    return {case: statistics.median(seconds[case]) for case in cases}


def as_table(sweep: Sweep, points: dict[int, dict[str, float]]) -> str:
    """A Markdown table with one row per point."""
    cases = list(next(iter(points.values())))
    lines = [
        f"{sweep.title}; seconds",
        "",
        f"| {sweep.size} | {' | '.join(cases)} |",
        "|---" * (len(cases) + 1) + "|",
    ]
    for value, seconds in points.items():
        cells = " | ".join(f"{seconds[case]:.1f}" for case in cases)
        lines.append(f"| {value:,} | {cells} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, then draw the plots and print the tables."""
    parser = common_options(__doc__)
    parser.add_argument(
        "--only", nargs="*", choices=tuple(SWEEPS), default=list(SWEEPS), help="sweeps to run"
    )
    options = parser.parse_args()
    for name in options.only:
        sweep, points = SWEEPS[name], {}
        for value in sweep.values:
            folder = options.results / name / str(value)
            folder.mkdir(parents=True, exist_ok=True)
            points[value] = measured(folder, sweep, value, options.table_format, options.repeats)
        base = options.results / f"{name}_{options.table_format}"
        text = as_table(sweep, points)
        base.with_suffix(".md").write_text(text, encoding="utf-8")
        plot(base.with_suffix(".png"), sweep.title, sweep.size, points)
        print(text)


if __name__ == "__main__":
    main()
