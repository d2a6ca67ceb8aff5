"""What many small batches cost, with automatic compaction or without: `make bench-compaction`.

    python -m benchmarks.compaction --table-format iceberg --batches 200 --every 50

Runs the chain once per small batch, with `auto_compact` unless --no-auto-compact is given. After
every --every batches, and after `compact`, it measures reads of history and of current, and prints
them with the medians of the last runs and their steps. It prints each line at once, so an
interrupted run has shown all figures up to then.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence
from functools import partial

from pyspark.sql import functions as F

from benchmarks.chain import CURRENT, FIELDS, HISTORY, LOG
from benchmarks.measuring import common_options, timed, write_result
from benchmarks.project import RAW_SCHEMA, write_project
from benchmarks.session import Bench, running_bench
from benchmarks.workload import Workload, append_batch, create_raw_tables

READS = {"reading history": HISTORY, "reading current": CURRENT}
STEPS = {"pairing": LOG, "history": HISTORY, "current": CURRENT, "field changes": FIELDS}
CASES = (*READS, *STEPS, "whole run")


def run(bench: Bench, workload: Workload, batch: int) -> dict[str, float]:
    """Append a batch to the raw table and run the chain; returns seconds by step and in total."""
    append_batch(bench.session, workload, RAW_SCHEMA, batch)
    taken, results = timed(lambda: bench.dbt("run", "--select", "stg_items+"))
    models = {result.node.name: float(result.execution_time) for result in results}
    return {step: models[table.split(".")[-1]] for step, table in STEPS.items()} | {
        "whole run": taken
    }


def read(bench: Bench, table: str) -> None:
    """Read all columns of all rows. Delta with deletion vectors cannot be written to `noop`."""
    # a new query each time: Spark reuses the shuffle files of a query that it has run
    bench.session.table(table).select(F.bit_xor(F.xxhash64("*"))).collect()


def medians(bench: Bench, runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Medians of these runs, and of as many reads of the tables."""
    seconds = {}
    for case, table in READS.items():
        seconds[case] = statistics.median(timed(partial(read, bench, table))[0] for _ in runs)
    return seconds | {case: statistics.median(run[case] for run in runs) for case in runs[0]}


def main() -> None:
    """Measure and print, line by line."""
    parser = common_options(__doc__)
    parser.add_argument("--batches", type=int, default=200, help="number of batches")
    parser.add_argument("--every", type=int, default=50, help="batches between two measurements")
    parser.add_argument("--keys", type=int, default=20_000, help="rows of the base table")
    parser.add_argument("--changes", type=int, default=200, help="changes in a batch")
    parser.add_argument(
        "--auto-compact",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="the setting `auto_compact`; without it, runs leave small files alone",
    )
    options = parser.parse_args()
    workload = Workload(options.keys, 20, options.changes)
    lines: list[str] = []

    def say(line: str) -> None:
        print(line, flush=True)
        lines.append(line)
        write_result(
            options.results, f"compaction_{options.table_format}.md", "\n".join(lines) + "\n"
        )

    write = partial(write_project, auto_compact=options.auto_compact)
    with running_bench(options.table_format, write) as bench:
        create_raw_tables(bench.session, workload, RAW_SCHEMA, options.table_format)
        bench.dbt("run", "--select", "stg_items+")
        say(
            f"{options.table_format}: batches of {options.changes:,} changes on {options.keys:,} "
            f"rows, `auto_compact: {str(options.auto_compact).lower()}`; seconds, medians of "
            f"{options.repeats}"
        )
        say("")
        say(f"| | {' | '.join(CASES)} |")
        say("|---" * (len(CASES) + 1) + "|")

        def show(state: str, runs: Sequence[Mapping[str, float]]) -> None:
            seconds = medians(bench, runs[-options.repeats :])
            say(f"| {state} | {' | '.join(f'{seconds[case]:.2f}' for case in CASES)} |")

        runs = []
        for batch in range(options.batches):
            runs.append(run(bench, workload, batch))
            # the first runs are left out: the JVM is still warming up
            if len(runs) == 2 + options.repeats or len(runs) % options.every == 0:
                show(f"after {len(runs)} batches", runs)
        taken, _ = timed(lambda: bench.dbt("run-operation", "compact"))
        after = range(options.batches, options.batches + options.repeats)
        show("after `compact`", [run(bench, workload, batch) for batch in after])
        say("")
        say(f"`compact` of all tables took {taken:.0f} s.")


if __name__ == "__main__":
    main()
