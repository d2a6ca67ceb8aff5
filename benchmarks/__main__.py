"""Measures the steps of one table's chain against their baselines: `make bench`.

    python -m benchmarks --table-format iceberg --keys 1000000 --changes 100000 --repeats 3

Prints a Markdown table. Writes the table, and all figures as JSON, to the folder of --results.
"""

from __future__ import annotations

from benchmarks.chain import Chain
from benchmarks.measuring import common_options, write_result
from benchmarks.project import write_project
from benchmarks.report import as_json, as_markdown
from benchmarks.session import running_bench
from benchmarks.warehouse import Warehouse
from benchmarks.workload import Workload


def main() -> None:
    """Measure, print the table and write the results."""
    parser = common_options(__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000, help="rows of the base table")
    parser.add_argument("--changes", type=int, default=100_000, help="changes in a batch")
    parser.add_argument("--columns", type=int, default=20, help="columns, with the key")
    parser.add_argument("--closed", type=int, default=0, help="closed versions per open version")
    parser.add_argument("--no-snapshot", action="store_true", help="do not measure `dbt snapshot`")
    parser.add_argument("--no-late", action="store_true", help="do not measure late changes")
    parser.add_argument(
        "--workers", type=int, default=0, help="workers of a standalone cluster; 0 = no cluster"
    )
    options = parser.parse_args()
    with running_bench(options.table_format, write_project, workers=options.workers) as bench:
        session = bench.session
        session.conf.set("bench.scratch", str(bench.folder / "written"))
        workload = Workload(options.keys, options.columns, options.changes)
        warehouse = Warehouse(session, options.table_format)
        chain = Chain(warehouse, workload, bench.dbt, not options.no_snapshot, options.closed)
        chain.prepare()
        chain.measure(1, options.repeats)
        if not options.no_late:
            chain.measure_late(3, options.repeats)
        text = as_markdown(chain)
        print(text)
        write_result(options.results, f"{options.table_format}.md", text)
        figures = as_json(chain)
        write_result(options.results, f"{options.table_format}.json", figures)


if __name__ == "__main__":
    main()
