"""Counts what Spark does for small batches through one table's chain: `make bench-statements`.

    python -m benchmarks.statements --keys 50000 --changes 200 --batches 6

For each model of a batch: SQL executions, jobs, generated classes, seconds; with --list, each
execution of the last batch.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.chain import WRITTEN
from benchmarks.measuring import common_options, timed, write_result
from benchmarks.project import RAW_SCHEMA, write_project
from benchmarks.session import running_bench
from benchmarks.workload import Workload, append_batch, create_raw_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Execution:
    """One SQL execution; `at` in milliseconds since 1970."""

    number: int
    at: int
    milliseconds: int
    jobs: int
    text: str


class Counters:
    """What Spark has done so far, from its own status stores."""

    def __init__(self, session: SparkSession) -> None:
        self._java: Any = session._jsparkSession
        self._jvm: Any = session._jvm

    @property
    def classes(self) -> int:
        """Generated classes that were compiled."""
        metrics = getattr(self._jvm, "org.apache.spark.metrics.source.CodegenMetrics")
        return int(metrics.METRIC_COMPILATION_TIME().getCount())

    @property
    def last_execution(self) -> int:
        """The number of the newest SQL execution; -1 before the first one."""
        rows = self._executions()
        return int(rows.apply(rows.size() - 1).executionId()) if rows.size() else -1

    def executions(self, after: int) -> list[Execution]:
        """SQL executions with a greater number, in their order."""
        rows, found = self._executions(), []
        for place in range(rows.size()):
            row = rows.apply(place)
            if row.executionId() > after:
                end = row.completionTime()
                took = end.get().getTime() - row.submissionTime() if end.isDefined() else 0
                text = row.description() + " | " + row.physicalPlanDescription()
                found.append(
                    Execution(
                        row.executionId(), row.submissionTime(), took, row.jobs().size(), text
                    )
                )
        return found

    def _executions(self) -> Any:
        return self._java.sharedState().statusStore().executionsList()

    def cpu(self) -> float:
        """Processor seconds of the JVM (Linux)."""
        from pyspark import SparkContext

        gateway = SparkContext._gateway
        assert gateway is not None  # the session is running
        process = gateway.proc.pid
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
        user, system = text.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def jobs(self) -> int:
        """Jobs so far."""
        return int(self._java.sparkContext().dagScheduler().nextJobId())


def main() -> None:
    """Run, count, print and write the figures."""
    parser = common_options(__doc__)
    parser.add_argument("--keys", type=int, default=50_000, help="rows of the base table")
    parser.add_argument("--changes", type=int, default=200, help="changes in a batch")
    parser.add_argument("--columns", type=int, default=20, help="columns, with the key")
    parser.add_argument("--batches", type=int, default=6, help="batches after the first run")
    parser.add_argument("--list", action="store_true", help="list the last batch's executions")
    parser.add_argument(
        "--set", action="append", default=[], help="another Spark setting, as name=value"
    )
    options = parser.parse_args()
    settings = dict(setting.split("=", 1) for setting in options.set)
    figures: list[dict[str, Any]] = []
    with running_bench(options.table_format, write_project, settings=settings) as bench:
        session = bench.session
        workload = Workload(options.keys, options.columns, options.changes)
        create_raw_tables(session, workload, RAW_SCHEMA, options.table_format)
        for table in WRITTEN:
            session.sql(f"drop table if exists {table}")
        bench.dbt("run", "--select", "stg_items+")
        counters = Counters(session)
        for batch in range(options.batches):
            append_batch(session, workload, RAW_SCHEMA, batch)
            classes, jobs, cpu = counters.classes, counters.jobs(), counters.cpu()
            last = counters.last_execution
            seconds, results = timed(lambda: bench.dbt("run", "--select", "stg_items+"))
            executions = counters.executions(last)
            figures.append(
                {
                    "batch": batch,
                    "seconds": round(seconds, 2),
                    "cpu": round(counters.cpu() - cpu, 2),
                    "executions": len(executions),
                    "jobs": counters.jobs() - jobs,
                    "classes": counters.classes - classes,
                    "models": _by_model(results, executions),
                }
            )
            print(json.dumps(figures[-1]), flush=True)
        if options.list:
            text = "\n".join(
                f"{row.number} {row.milliseconds} ms, {row.jobs} jobs: {row.text}"
                for row in executions
            )
            write_result(options.results, "executions.txt", text)
    write_result(options.results, "statements.json", json.dumps(figures, indent=2))


def _by_model(results: Any, executions: list[Execution]) -> dict[str, Any]:
    counts = {}
    for result in results.results:
        timing = {part.name: part for part in result.timing}
        begin = timing["compile"].started_at.timestamp() * 1000
        end = timing["execute"].completed_at.timestamp() * 1000
        rows = [row for row in executions if begin <= row.at <= end]
        counts[result.node.name] = {
            "seconds": round(result.execution_time, 2),
            "executions": len(rows),
            "jobs": sum(row.jobs for row in rows),
        }
    return counts


if __name__ == "__main__":
    main()
