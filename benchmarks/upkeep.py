"""What many small batches do to the tables, and what `compact` does about it: `make bench-upkeep`.

    python -m benchmarks.upkeep --table-format iceberg --batches 200

Small batches go through the chain, one run each. Then reading the history, reading the current
state and one more batch are measured, `compact` runs, and the same is measured again.
"""

from __future__ import annotations

import statistics

from benchmarks.chain import CURRENT, HISTORY
from benchmarks.feed import Feed, land, land_batch
from benchmarks.measuring import options_of, timed, write_result
from benchmarks.project import RAW_SCHEMA, write_project
from benchmarks.session import Bench, running_bench

READS = {"read history": HISTORY, "read current": CURRENT}


def look(bench: Bench, feed: Feed, first_batch: int, repeats: int) -> dict[str, float]:
    """Medians of reading the tables, and of runs with a batch each."""
    found = {}
    for case, table in READS.items():
        rows = bench.session.table(table).write.format("noop").mode("overwrite")
        found[case] = statistics.median(timed(rows.save)[0] for _ in range(repeats))
    runs = [run(bench, feed, first_batch + number) for number in range(repeats)]
    return found | {"a run": statistics.median(runs)}


def run(bench: Bench, feed: Feed, batch: int) -> float:
    """Land a batch and bring it through the chain; seconds of the latter."""
    land_batch(bench.session, feed, RAW_SCHEMA, batch)
    return timed(lambda: bench.dbt("run", "--select", "stg_items+"))[0]


def main() -> None:
    """Measure and print."""
    parser = options_of(__doc__)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--changes", type=int, default=1_000)
    options = parser.parse_args()
    repeats = options.repeats
    feed = Feed(options.keys, 20, options.changes)
    with running_bench(options.table_format, write_project) as bench:
        land(bench.session, feed, RAW_SCHEMA, options.table_format)
        bench.dbt("run", "--select", "stg_items+")
        run(bench, feed, 0)
        states = {"after 1 batch": look(bench, feed, 1, repeats)}
        for batch in range(1 + repeats, options.batches):
            run(bench, feed, batch)
        states[f"after {options.batches} batches"] = look(bench, feed, options.batches, repeats)
        taken, _ = timed(lambda: bench.dbt("run-operation", "compact"))
        states["compacted"] = look(bench, feed, options.batches + repeats, repeats)
    cases = [*READS, "a run"]
    lines = [
        f"{options.table_format}: batches of {options.changes:,} changes on {options.keys:,} keys; "
        f"medians of {repeats}, seconds; `compact` of all tables took {taken:.0f} s",
        "",
        f"| | {' | '.join(cases)} |",
        "|---" * (len(cases) + 1) + "|",
        *[
            f"| {state} | {' | '.join(f'{found[case]:.2f}' for case in cases)} |"
            for state, found in states.items()
        ],
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    write_result(options.results, f"upkeep_{options.table_format}.md", text)


if __name__ == "__main__":
    main()
