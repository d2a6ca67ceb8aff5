"""What a `dbt run` costs in a new process, and on a warm Connect server: `make bench-start`.

    python -m benchmarks.new_process --tables 10 --changes 200

Each run is a whole command, as under a scheduler. It runs Spark in its own process, or sends its
work to a server that has already built the same tables. Both continue the same tables in turn,
so that both find them equally large. Iceberg only: with the example's Delta target, one process
at a time has the metastore.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path

from afterimage_demo.ports import free_ports
from benchmarks.many_tables import QUIET_SCHEMA, write_tables
from benchmarks.measuring import common_options, timed, write_result
from benchmarks.project import RAW_SCHEMA
from benchmarks.session import Bench, running_bench
from benchmarks.workload import Workload, append_batch, create_raw_tables
from tests.functional.standalone import HOST, afterimage_server

OWN, SERVER = "Spark in the process", "warm server"
CHANGED, EMPTY = "all tables changed", "nothing new"


def run(bench: Bench, remote: str | None) -> None:
    """`dbt run` in a new process, on a server if an address is given."""
    command = [str(Path(sys.executable).with_name("dbt")), "--quiet", "run"]
    with bench.dbt.environment():
        environment = {**os.environ, **({"SPARK_REMOTE": remote} if remote else {})}
        subprocess.run(command, check=True, cwd=bench.dbt.path, env=environment)


def measure(bench: Bench, workload: Workload, repeats: int) -> dict[str, list[float]]:
    """Measure both kinds of runs; returns seconds by case."""
    seconds: dict[str, list[float]] = defaultdict(list)
    schemas = (RAW_SCHEMA, QUIET_SCHEMA)
    for schema in schemas:
        create_raw_tables(bench.session, workload, schema, bench.table_format)
    run(bench, None)
    batch = 0

    def land() -> None:
        nonlocal batch
        for schema in schemas:
            append_batch(bench.session, workload, schema, batch)
        batch += 1

    address = f"sc://{HOST}:{free_ports(1)[0]}"
    variables = {"DBT_PROFILES_DIR": str(bench.dbt.profiles)}
    with afterimage_server(bench.table_format, bench.dbt.path, address, variables):
        for _ in range(2):
            land()
            run(bench, address)  # warms up
        for _ in range(repeats):
            for where, remote in ((OWN, None), (SERVER, address)):
                land()
                seconds[f"{CHANGED}, {where}"].append(timed(partial(run, bench, remote))[0])
                seconds[f"{EMPTY}, {where}"].append(timed(partial(run, bench, remote))[0])
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
        print(f"{case:45} {statistics.median(measured):6.1f} s   ({each})")
    text = json.dumps({"seconds": seconds}, indent=2)
    write_result(options.results, f"new_process_{options.tables}.json", text)


if __name__ == "__main__":
    main()
