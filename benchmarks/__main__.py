"""Measures the steps of one table's chain: `make bench`.

    python -m benchmarks --table-format iceberg --keys 1000000 --changes 100000 --repeats 3

Prints a Markdown table and writes it, with the raw figures as JSON, to --results.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.chain import Chain
from benchmarks.feed import Feed
from benchmarks.lakehouse import Lakehouse
from benchmarks.project import write_profiles, write_project
from benchmarks.report import as_json, as_markdown
from tests.functional.dbt_project import DbtProject


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table-format", choices=("iceberg", "delta"), default="iceberg")
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-snapshot", action="store_true")
    parser.add_argument("--results", type=Path, default=Path(".scratch/bench"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="afterimage_bench_") as folder:
        scratch = Path(folder)
        os.environ["AFTERIMAGE_WAREHOUSE"] = str(scratch / "warehouse")
        os.environ["PYSPARK_PYTHON"] = sys.executable
        (scratch / "warehouse").mkdir()
        write_project(scratch / "project")
        write_profiles(scratch / "profiles", threads=1)
        dbt = DbtProject(
            scratch / "project",
            scratch / "profiles",
            options.table_format,
            "bench",
            scratch / "dbt",
        )
        dbt("run-operation", "check_session")
        from pyspark.sql import SparkSession

        session = SparkSession.builder.getOrCreate()
        session.conf.set("bench.scratch", str(scratch / "written"))
        feed = Feed(options.keys, options.columns, options.changes)
        chain = Chain(Lakehouse(session, options.table_format), feed, dbt, not options.no_snapshot)
        chain.prepare()
        chain.measure(0, options.repeats)
        options.results.mkdir(parents=True, exist_ok=True)
        text = as_markdown(chain)
        print(text)
        (options.results / f"{options.table_format}.md").write_text(text, encoding="utf-8")
        (options.results / f"{options.table_format}.json").write_text(
            as_json(chain, session.version), encoding="utf-8"
        )
        session.stop()


if __name__ == "__main__":
    main()
