"""A dbt project with its own warehouse, and the Spark session that dbt uses."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.project import SCHEMA, spark_settings, write_profiles
from tests.functional.dbt_project import DbtProject
from tests.functional.standalone import parameters_of_cluster, standalone_cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_WORKER_MEMORY = "3g"
_EXECUTOR_MEMORY = "2g"


@dataclass(frozen=True)
class Bench:
    """The dbt project and its session; `folder` is removed at the end."""

    dbt: DbtProject
    session: SparkSession
    table_format: str
    folder: Path


@contextmanager
def running_bench(
    table_format: str,
    write_project: Callable[[Path], None],
    threads: int = 1,
    workers: int = 0,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Bench]:
    """Start Spark with the settings of `profiles.yml.example`, and stop it at the end.

    Args:
        table_format: `iceberg` or `delta`.
        write_project: writes the dbt project to an empty folder.
        threads: dbt threads; with one thread, steps do not overlap.
        workers: workers, of one core each, of a standalone cluster that is started for the
            benchmark; 0 = Spark runs in this process alone.
        settings: Spark settings besides those of the profile, or instead of them.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="afterimage_bench_")))
        os.environ["AFTERIMAGE_WAREHOUSE"] = str(folder / "warehouse")
        os.environ["PYSPARK_PYTHON"] = sys.executable
        (folder / "warehouse").mkdir()
        (folder / "project").mkdir()
        write_project(folder / "project")
        settings = dict(settings or {})
        if workers:
            (folder / "cluster").mkdir()
            cluster = stack.enter_context(
                standalone_cluster(folder / "cluster", workers, memory=_WORKER_MEMORY)
            )
            java = spark_settings(table_format)["spark.driver.extraJavaOptions"]
            settings |= {
                **parameters_of_cluster(cluster.master, _EXECUTOR_MEMORY),
                "spark.executor.extraJavaOptions": java,
            }
        write_profiles(folder / "profiles", threads, settings)
        dbt = DbtProject(
            folder / "project", folder / "profiles", table_format, SCHEMA, folder / "dbt"
        )
        dbt("run-operation", "check_session")
        from pyspark.sql import SparkSession

        session = SparkSession.builder.getOrCreate()
        try:
            yield Bench(dbt, session, table_format, folder)
        finally:
            session.stop()
