"""A program of its own that reads a table again and again, as an analyst would beside a build.

    python -m tests.functional.reader pyiceberg SCHEMA TABLE
    python -m tests.functional.reader spark SCHEMA TABLE

Prints one line per reading: how many versions, how many of them are open, the greatest change_seq.
Reads AFTERIMAGE_WAREHOUSE and READER_SPARK_CONF (JSON); ends when its input ends.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from dbt_afterimage.cli.commands.query import connect, run
from dbt_afterimage.cli.support.warehouse import IcebergWarehouse, SparkWarehouse

READINGS = "count(*), count(case when is_current then 1 end), max(valid_from_seq)"


def pyiceberg_reader(schema: str, table: str) -> Callable[[], tuple[object, ...]]:
    """What `afterimage query` does, without Spark or Java."""
    folder = os.environ["AFTERIMAGE_WAREHOUSE"]

    def read() -> tuple[object, ...]:
        warehouse = IcebergWarehouse("lake", Path(folder) / "catalog.db", folder, SparkWarehouse())
        found = run(connect(), warehouse, schema, f"select {READINGS} from {table}")
        assert found is not None
        rows: list[tuple[object, ...]] = found.fetchall()
        return rows[0]

    return read


def spark_reader(schema: str, table: str) -> Callable[[], tuple[object, ...]]:
    """A Spark that shares nothing with the one that builds but the files."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.driver.host", "127.0.0.1")
    for name, value in json.loads(os.environ["READER_SPARK_CONF"]).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    by_path = Path(os.environ["AFTERIMAGE_WAREHOUSE"]) / "delta" / f"{schema}.db" / table
    is_delta = (by_path / "_delta_log").is_dir()

    def read() -> tuple[object, ...]:
        # the embedded metastore of the Delta target admits one process: others read by path
        name = f"delta.`{by_path}`" if is_delta else f"{schema}.{table}"
        if not is_delta:
            session.sql(f"refresh table {name}")
        return tuple(session.sql(f"select {READINGS} from {name}").collect()[0])

    return read


def main() -> None:
    """Read until the standard input is closed."""
    kind, schema, table = sys.argv[1:]
    read = {"pyiceberg": pyiceberg_reader, "spark": spark_reader}[kind](schema, table)
    ended = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    while not ended.is_set():
        print(*read(), sep="\t", flush=True)
        ended.wait(0.2)


if __name__ == "__main__":
    main()
