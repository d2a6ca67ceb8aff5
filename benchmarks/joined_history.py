"""How long a run of a `joined_history` takes, compared with the same join built as a table.

    make bench-joined BENCH_ARGS="--keys 200000 --changes 1000 --repeats 5"

Prints a Markdown table of medians. A history with a feed is joined with itself, on a column of the
base, so each changed key concerns its own rows and those of about one other key. Each repeat
appends a batch, runs the history, and then the two models in turn.
"""

from __future__ import annotations

import statistics
from functools import partial
from pathlib import Path

from benchmarks.chain import WRITTEN
from benchmarks.measuring import common_options, timed
from benchmarks.project import RAW_SCHEMA, SCHEMA, write_project
from benchmarks.session import running_bench
from benchmarks.workload import Workload, append_batch, create_raw_tables
from tests.functional.project_files import write_files

_JOIN = """\
{{ config(CONFIG) }}
select * from {{ temporal_join(base=ref('items_history'), columns=['id', 'c001', 'c002'], joins=[{
    'relation': ref('items_history'), 'on': {'c002': 'id'}, 'columns': ['c003'], 'prefix': 'other_',
}]) }}
"""


def main() -> None:
    """Measure and print."""
    parser = common_options(__doc__)
    parser.add_argument("--keys", type=int, default=200_000, help="rows of the base table")
    parser.add_argument("--changes", type=int, default=1_000, help="changes in a batch")
    options = parser.parse_args()
    models = {
        "joined_history": "materialized='joined_history'",
        "table": f"materialized='table', file_format='{options.table_format}'",
    }

    def write(folder: Path) -> None:
        write_project(folder)
        files = {"items_history.sql": "{{ history(ref('items_changes'), feed=true) }}\n"}
        for name, config in models.items():
            files[f"join_as_{name}.sql"] = _JOIN.replace("CONFIG", config)
        write_files(folder / "models", files)

    seconds: dict[str, list[float]] = {name: [] for name in models}
    with running_bench(options.table_format, write) as bench:
        workload = Workload(options.keys, 8, options.changes)
        create_raw_tables(bench.session, workload, RAW_SCHEMA, options.table_format)
        for table in WRITTEN:
            bench.session.sql(f"drop table if exists {table}")
        for batch in range(-1, options.repeats):
            if batch >= 0:
                append_batch(bench.session, workload, RAW_SCHEMA, batch)
            bench.dbt("run", "--select", "+items_history")
            for name, taken in seconds.items():
                took, _ = timed(partial(bench.dbt, "run", "--select", f"join_as_{name}"))
                if batch >= 0:
                    taken.append(took)
        rows = bench.session.table(f"{SCHEMA}.join_as_joined_history").count()
    print(
        f"{rows:,} rows, {options.changes:,} changes in a batch, {options.table_format}, "
        f"median of {options.repeats}\n"
    )
    print("| dbt run of the join as | seconds |")
    print("|---|---|")
    for name, taken in seconds.items():
        print(f"| `{name}` | {statistics.median(taken):.1f} |")


if __name__ == "__main__":
    main()
