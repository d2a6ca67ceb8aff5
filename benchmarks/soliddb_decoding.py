"""How fast solidDB rows are decoded, compared with reading the same rows already decoded.

    make bench-soliddb BENCH_ARGS="--rows 200000 --repeats 5"

Prints a Markdown table of medians. The data is reproducible. Each repeat runs all cases in turn, so
that a machine that slows down affects all of them. Every case reads a Parquet table and casts each
column to its type; the cases differ only in how the table stores the values.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from afterimage_demo.soliddb.encoding import (
    Value,
    encode_value,
    frame_engine,
    frame_length_prefixed,
)
from benchmarks.measuring import timed
from dbt_afterimage.sources.soliddb.arrow import RESULT_TYPE, batch_decoder
from dbt_afterimage.sources.soliddb.value_columns import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RANDOM_SEED = 7
# name, type number, SQL type, Spark type: every type, and common types more than once
COLUMNS = (
    ("ID", 8, "BIGINT", "bigint"),
    ("CLIENT", 1, "INTEGER", "int"),
    ("NAME", 7, "WVARCHAR", "string"),
    ("CITY", 0, "VARCHAR", "string"),
    ("BALANCE", 5, "DECIMAL", "decimal(18,2)"),
    ("RATE", 3, "DOUBLE PRECISION", "double"),
    ("SCORE", 2, "REAL", "double"),
    ("OPENED_AT", 4, "TIMESTAMP", "timestamp"),
    ("BORN_ON", 4, "DATE", "date"),
    ("SIGNATURE", 6, "VARBINARY", "binary"),
)
FRAMES = {"length_prefixed": frame_length_prefixed, "engine": frame_engine}


def rows(count: int) -> list[list[Value]]:
    """Reproducible rows; one value in ten is NULL, except in the first column."""
    chooser = random.Random(RANDOM_SEED)
    start = datetime(2026, 3, 2)

    def row(number: int) -> list[Value]:
        values: list[Value] = [
            number,
            chooser.randrange(10**6),
            f"Zoë Ångström {number % 1000}",
            f"City {number % 100}",
            Decimal(chooser.randrange(10**9)).scaleb(-2),
            chooser.random(),
            chooser.randrange(100) / 4,
            start + timedelta(microseconds=chooser.randrange(10**12)),
            start.date() - timedelta(days=chooser.randrange(20_000)),
            chooser.getrandbits(64).to_bytes(8, "big"),
        ]
        return [
            None if index and chooser.random() < 0.1 else value
            for index, value in enumerate(values)
        ]

    return [row(number) for number in range(count)]


def texts(row: list[Value]) -> list[tuple[str, str | None]]:
    """A decoded row: pairs of column name and text."""

    def text(value: Value) -> str | None:
        if isinstance(value, bytes):
            return value.hex()
        return None if value is None else str(value)

    return [(column[0], text(value)) for column, value in zip(COLUMNS, row, strict=True)]


def typed(image: DataFrame) -> DataFrame:
    """The columns of a map of texts, cast to their types."""
    return image.selectExpr(
        *(
            f"unhex(image['{name}']) as {name}"
            if kind == "binary"
            else f"try_cast(image['{name}'] as {kind}) as {name}"
            for name, _, _, kind in COLUMNS
        )
    )


def main() -> None:
    """Measure and print."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000, help="rows to decode")
    parser.add_argument("--repeats", type=int, default=5, help="repeats; figures are their medians")
    options = parser.parse_args()
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.ansi.enabled", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    columns = [Column(name, number, sql_type) for name, number, sql_type, _ in COLUMNS]
    with tempfile.TemporaryDirectory() as folder:
        original = rows(options.rows)
        encoded = [
            [
                encode_value(value, column.type_number)
                for value, column in zip(row, columns, strict=True)
            ]
            for row in original
        ]
        # eight files, so that both cores stay busy to the end
        size = -(-options.rows // 8)
        for name, frame in FRAMES.items():
            _write(folder, name, [frame(row) for row in encoded], pa.binary(), size)
        image = pa.map_(pa.string(), pa.string())
        _write(folder, "decoded", [texts(row) for row in original], image, size)

        def decoded_already() -> DataFrame:
            return typed(session.read.parquet(f"{folder}/decoded"))

        def framed(name: str) -> Callable[[], DataFrame]:
            decode = F.arrow_udf(  # type: ignore[attr-defined]  # PySpark's stubs lack it
                batch_decoder({0: columns}, name, "utf-8"), RESULT_TYPE
            )

            def read() -> DataFrame:
                raw = session.read.parquet(f"{folder}/{name}")
                result = raw.select(decode("image", F.lit(0)).alias("result"))
                return typed(result.select(F.col("result.values").alias("image")))

            return read

        cases = {"decoded already": decoded_already} | {
            f"framing {name}": framed(name) for name in FRAMES
        }
        expected = decoded_already().orderBy("ID").limit(1000).collect()
        for what, read in cases.items():
            if read().orderBy("ID").limit(1000).collect() != expected:
                raise AssertionError(f"{what}: rows differ from those that were encoded")
        seconds: dict[str, list[float]] = {what: [] for what in cases}
        for _ in range(options.repeats):
            for what, read in cases.items():
                writer = read().write.format("noop").mode("overwrite")
                seconds[what].append(timed(writer.save)[0])
    session.stop()
    medians = {what: statistics.median(taken) for what, taken in seconds.items()}
    fastest = medians["decoded already"]
    print(f"{options.rows:,} rows, {len(COLUMNS)} columns, 2 cores, median of {options.repeats}\n")
    print("| case | seconds | rows/s | times the baseline |")
    print("|---|---|---|---|")
    for what, median in medians.items():
        print(f"| {what} | {median:.2f} | {options.rows / median:,.0f} | {median / fastest:.1f} |")


def _write(folder: str, name: str, values: list[object], kind: pa.DataType, size: int) -> None:
    (Path(folder) / name).mkdir()
    for number, first in enumerate(range(0, len(values), size)):
        part = pa.table({"image": pa.array(values[first : first + size], kind)})
        pq.write_table(part, f"{folder}/{name}/{number}.parquet")


if __name__ == "__main__":
    main()
