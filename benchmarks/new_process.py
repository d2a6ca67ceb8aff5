"""What a `dbt run` costs in a new process, and what makes it cheaper: `make bench-start`.

    python -m benchmarks.new_process --tables 10 --changes 200

Each run is a whole command, as under a scheduler: with the settings of the example's profile, with
an archive of Java's classes, also with Java's first compiler alone, and as a client of a Spark
Connect server that has already built the same tables. All continue the same tables in turn, so
that each finds them equally large. Iceberg only: with the example's Delta target, one process at a
time has the metastore.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from benchmarks.many_tables import QUIET_SCHEMA, write_tables
from benchmarks.measuring import common_options, timed, write_result
from benchmarks.project import RAW_SCHEMA
from benchmarks.session import Bench, running_bench
from benchmarks.workload import Workload, append_batch, create_raw_tables
from dbt_afterimage.spark import class_archive
from tests.functional.standalone import afterimage_server, free_address

CHANGED, EMPTY = "all tables changed", "nothing new"
FIRST_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=400m"


def kinds_of_runs(folder: Path, remote: str) -> dict[str, dict[str, str]]:
    """Environment variables by kind of run.

    Args:
        folder: for archives of classes.
        remote: address of the server.
    """
    archive = {class_archive.FOLDER: str(folder)}
    return {
        "Spark in the process": {},
        "with an archive": archive,
        "with an archive, first compiler": {**archive, "JDK_JAVA_OPTIONS": FIRST_COMPILER},
        "warm server": {"SPARK_REMOTE": remote},
    }


def run(bench: Bench, variables: Mapping[str, str]) -> None:
    """`dbt run` in a new process."""
    command = [str(Path(sys.executable).with_name("dbt")), "--quiet", "run"]
    with bench.dbt.environment():
        own = {name: each for name, each in os.environ.items() if name != class_archive.FOLDER}
        subprocess.run(command, check=True, cwd=bench.dbt.path, env={**own, **variables})


def measure(bench: Bench, workload: Workload, repeats: int) -> dict[str, list[float]]:
    """Measure all kinds of runs; returns seconds by case."""
    seconds: dict[str, list[float]] = defaultdict(list)
    schemas = (RAW_SCHEMA, QUIET_SCHEMA)
    for schema in schemas:
        create_raw_tables(bench.session, workload, schema, bench.table_format)
    batch = 0

    def land() -> None:
        nonlocal batch
        for schema in schemas:
            append_batch(bench.session, workload, schema, batch)
        batch += 1

    address = free_address()
    kinds = kinds_of_runs(bench.folder / "archives", address)
    run(bench, {})
    land()
    run(bench, kinds["with an archive"])  # writes it
    variables = {"DBT_PROFILES_DIR": str(bench.dbt.profiles)}
    with afterimage_server(bench.table_format, bench.dbt.path, address, variables):
        for _ in range(2):
            land()
            run(bench, kinds["warm server"])  # warms it up
        for _ in range(repeats):
            for kind, given in kinds.items():
                land()
                seconds[f"{CHANGED}, {kind}"].append(timed(partial(run, bench, given))[0])
                seconds[f"{EMPTY}, {kind}"].append(timed(partial(run, bench, given))[0])
    return seconds


def main() -> None:
    """Measure, print the medians, and write all figures."""
    parser = common_options(__doc__, ["iceberg"])
    parser.add_argument("--tables", type=int, default=10, help="tables in the project")
    parser.add_argument("--keys", type=int, default=20_000, help="rows of each base table")
    parser.add_argument("--changes", type=int, default=200, help="changes per table and batch")
    parser.add_argument("--threads", type=int, default=2, help="dbt threads")
    options = parser.parse_args()
    workload = Workload(options.keys, columns=20, changes=options.changes)
    write = partial(write_tables, tables=options.tables)
    with running_bench(options.table_format, write, options.threads) as bench:
        seconds = measure(bench, workload, options.repeats)
    for case, measured in seconds.items():
        each = ", ".join(f"{value:.1f}" for value in measured)
        print(f"{case:52} {statistics.median(measured):6.1f} s   ({each})")
    text = json.dumps({"seconds": seconds}, indent=2)
    write_result(options.results, f"new_process_{options.tables}.json", text)


if __name__ == "__main__":
    main()
