"""What a project with many tables costs: part of `make bench-sweeps`.

    python -m benchmarks.many_tables --tables 10 --threads 2

One chain has raw tables of its own; all others share a second pair. Measures runs in which one
table has changes, no table has changes and, with --all, all tables have changes. With --views it
measures the baseline instead: a project of as many plain views, which shows the cost of dbt alone.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.measuring import common_options, timed, write_result
from benchmarks.project import RAW_SCHEMA, SCHEMA, chain_models, raw_source
from benchmarks.session import Bench, running_bench
from benchmarks.workload import Workload, append_batch, create_raw_tables
from tests.functional.project_files import write_files, write_settings

ONE, ALL, NONE, VIEWS = "one table changed", "all tables changed", "nothing new", "plain views"
MODELS_PER_TABLE = 5
QUIET_SCHEMA = f"{RAW_SCHEMA}_quiet"
WORKLOAD = Workload(keys=1_000, columns=10, changes=1_000)


def write_tables(folder: Path, tables: int) -> None:
    """Write a project with this many chains; the first one has raw tables of its own."""
    write_settings(folder)
    models: dict[str, Any] = {}
    sources = []
    for number in range(tables):
        name = f"t{number:03}"
        schema = RAW_SCHEMA if number == 0 else QUIET_SCHEMA
        sources.append(raw_source(f"raw_{name}", schema))
        models |= chain_models(name, f"raw_{name}")
    models["sources.yml"] = {"version": 2, "sources": sources}
    write_files(folder / "models", models)


def write_views(folder: Path, tables: int) -> None:
    """Write a project with as many models, all of them views that read nothing."""
    write_settings(folder)
    names = [f"v{number:03}.sql" for number in range(tables * MODELS_PER_TABLE)]
    view = "{{ config(materialized='view') }}\nselect 1 as one\n"
    write_files(folder / "models", dict.fromkeys(names, view))


def measure(bench: Bench, repeats: int, *, with_all: bool) -> dict[str, list[float]]:
    """Measure the runs; returns seconds by case."""
    seconds: dict[str, list[float]] = defaultdict(list)
    schemas = (RAW_SCHEMA, QUIET_SCHEMA)
    for schema in schemas:
        create_raw_tables(bench.session, WORKLOAD, schema, bench.table_format)
    bench.dbt("run")
    batch = 0

    def run(case: str, *changed: str) -> None:
        for schema in changed:
            append_batch(bench.session, WORKLOAD, schema, batch)
        seconds[case].append(timed(partial(bench.dbt, "run"))[0])

    cases: list[Callable[[], None]] = [partial(run, ONE, RAW_SCHEMA), partial(run, NONE)]
    if with_all:
        cases.append(partial(run, ALL, *schemas))
    for _ in range(repeats):
        for case in cases:
            case()
            batch += 1
    return seconds


def measure_views(bench: Bench, repeats: int) -> dict[str, list[float]]:
    """Measure runs of the project of views."""
    bench.session.sql(f"create schema if not exists {SCHEMA}")
    seconds = [timed(partial(bench.dbt, "run"))[0] for _ in range(1 + repeats)]
    return {VIEWS: seconds[1:]}


def main() -> None:
    """Measure, print and write the figures for one number of tables and threads."""
    parser = common_options(__doc__)
    parser.add_argument("--tables", type=int, default=10, help="tables in the project")
    parser.add_argument("--threads", type=int, default=2, help="dbt threads")
    parser.add_argument("--all", action="store_true", help="also measure changes in all tables")
    parser.add_argument("--views", action="store_true", help="measure plain views instead")
    options = parser.parse_args()
    write = partial(write_views if options.views else write_tables, tables=options.tables)
    with running_bench(options.table_format, write, options.threads) as bench:
        if options.views:
            seconds = measure_views(bench, options.repeats)
        else:
            seconds = measure(bench, options.repeats, with_all=options.all)
    text = json.dumps({"seconds": seconds}, indent=2)
    print(text)
    name = f"{options.table_format}{'_views' if options.views else ''}.json"
    write_result(options.results, name, text)


if __name__ == "__main__":
    main()
