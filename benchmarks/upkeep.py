"""What many small batches do to the tables, and what `compact` does about it: `make bench-upkeep`.

    python -m benchmarks.upkeep --table-format iceberg --batches 200 --every 50

Small batches go through the chain, one run each. Every so many of them, and again after `compact`,
reading the history and the current state are measured, beside what the last runs and their steps
took. Each line is printed when it is known, so a run that is stopped has shown what it found.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import partial

from pyspark.sql import functions as F

from benchmarks.chain import CURRENT, FIELDS, HISTORY, LOG
from benchmarks.feed import Feed, land, land_batch
from benchmarks.measuring import options_of, timed, write_result
from benchmarks.project import RAW_SCHEMA, write_project
from benchmarks.session import Bench, running_bench

READS = {"reading history": HISTORY, "reading current": CURRENT}
STEPS = {"pairing": LOG, "history": HISTORY, "current": CURRENT, "field changes": FIELDS}
CASES = (*READS, *STEPS, "a run")


def run(bench: Bench, feed: Feed, batch: int) -> dict[str, float]:
    """Land a batch and bring it through the chain; seconds of its steps, and of the whole."""
    land_batch(bench.session, feed, RAW_SCHEMA, batch)
    taken, results = timed(lambda: bench.dbt("run", "--select", "stg_items+"))
    models = {result.node.name: float(result.execution_time) for result in results}
    return {step: models[table.split(".")[-1]] for step, table in STEPS.items()} | {"a run": taken}


def read(bench: Bench, table: str) -> None:
    """Read every column of every row. Delta cannot write to `noop` what has deletion vectors."""
    # a new query each time: Spark keeps what the last one has shuffled
    bench.session.table(table).select(F.bit_xor(F.xxhash64("*"))).collect()


def look(bench: Bench, runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Medians of reading the tables, as often as there are runs, and of these runs."""
    found = {}
    for case, table in READS.items():
        found[case] = statistics.median(timed(partial(read, bench, table))[0] for _ in runs)
    return found | {case: statistics.median(run[case] for run in runs) for case in runs[0]}


def main() -> None:
    """Measure and print."""
    parser = options_of(__doc__)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--keys", type=int, default=20_000)
    parser.add_argument("--changes", type=int, default=200)
    options = parser.parse_args()
    feed = Feed(options.keys, 20, options.changes)
    lines: list[str] = []

    def say(line: str) -> None:
        print(line, flush=True)
        lines.append(line)
        write_result(options.results, f"upkeep_{options.table_format}.md", "\n".join(lines) + "\n")

    with running_bench(options.table_format, write_project) as bench:
        land(bench.session, feed, RAW_SCHEMA, options.table_format)
        bench.dbt("run", "--select", "stg_items+")
        say(
            f"{options.table_format}: batches of {options.changes:,} changes on {options.keys:,} "
            f"rows; seconds, medians of {options.repeats}"
        )
        say("")
        say(f"| | {' | '.join(CASES)} |")
        say("|---" * (len(CASES) + 1) + "|")

        def show(state: str, runs: Sequence[Mapping[str, float]]) -> None:
            found = look(bench, runs[-options.repeats :])
            say(f"| {state} | {' | '.join(f'{found[case]:.2f}' for case in CASES)} |")

        runs = []
        for batch in range(options.batches):
            runs.append(run(bench, feed, batch))
            # Java knows the code of the chain after a few runs
            if len(runs) == 2 + options.repeats or len(runs) % options.every == 0:
                show(f"after {len(runs)} batches", runs)
        taken, _ = timed(lambda: bench.dbt("run-operation", "compact"))
        after = range(options.batches, options.batches + options.repeats)
        show("after `compact`", [run(bench, feed, batch) for batch in after])
        say("")
        say(f"`compact` of all tables took {taken:.0f} s.")


if __name__ == "__main__":
    main()
