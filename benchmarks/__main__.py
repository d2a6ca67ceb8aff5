"""Measures the steps of one table's chain: `make bench`.

    python -m benchmarks --table-format iceberg --keys 1000000 --changes 100000 --repeats 3

Prints a Markdown table and writes it, with the raw figures as JSON, to --results.
"""

from __future__ import annotations

from benchmarks.chain import Chain
from benchmarks.feed import Feed
from benchmarks.lakehouse import Lakehouse
from benchmarks.measuring import options_of, write_result
from benchmarks.project import write_project
from benchmarks.report import as_json, as_markdown
from benchmarks.session import running_bench


def main() -> None:
    """Measure, print and write."""
    parser = options_of(__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--closed", type=int, default=0, help="closed versions per open one")
    parser.add_argument("--no-snapshot", action="store_true", help="leave out `dbt snapshot`")
    parser.add_argument("--no-late", action="store_true", help="leave out a batch of late changes")
    options = parser.parse_args()
    with running_bench(options.table_format, write_project) as bench:
        session = bench.session
        session.conf.set("bench.scratch", str(bench.folder / "written"))
        feed = Feed(options.keys, options.columns, options.changes)
        lakehouse = Lakehouse(session, options.table_format)
        chain = Chain(lakehouse, feed, bench.dbt, not options.no_snapshot, options.closed)
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
