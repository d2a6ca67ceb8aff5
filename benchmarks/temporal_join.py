"""How long `temporal_join` takes, compared with a plain equi-join of the same versions on the key.

    make bench-joins BENCH_ARGS="--versions 1000000 --repeats 5"

Prints a Markdown table of medians. Orders and customers have four versions per key and one key in
four has a gap; orders are joined with customers. Each repeat runs all cases in turn, so that a
machine that slows down affects all of them. Rows are read from Parquet files and not written.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from typing import TYPE_CHECKING

from benchmarks.measuring import timed
from tests.macro_renderer import MacroRenderer
from tests.temporal_joins import Relation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DATA = [f"value_{number}" for number in range(8)]
PER_KEY = 4


def versions(session: SparkSession, name: str, count: int) -> DataFrame:
    """A history of `count` versions; every fourth key has a gap after its second version."""
    keys = count // PER_KEY
    # seconds; the versions of a key follow each other, those of two keys begin at any time
    length = 7 * keys
    numbered = session.range(count).selectExpr(
        f"id % {keys} as {name}_id",
        f"id div {keys} as number",
        f"pmod(hash(id), {keys}) as random_id",
        f"{length} * (id div {keys} + 1) + pmod(hash('{name}', id % {keys}), {length}) as begins",
        *(f"concat('{column} ', hash(id, '{column}')) as {column}" for column in DATA),
    )
    last, gap = f"number = {PER_KEY - 1}", f"{name}_id % 4 = 0 and number = 1"
    lasts = f"if({last}, null, begins + if({gap}, {length // 2}, {length}))"
    return numbered.selectExpr(
        f"sha2(concat({name}_id, ' ', begins), 256) as {name}s_history_id",
        f"{name}_id",
        *(["random_id as customer_id"] if name == "order" else []),
        "timestamp_seconds(begins) as valid_from",
        f"timestamp_seconds({lasts}) as valid_to",
        "lpad(begins, 35, '0') as valid_from_seq",
        f"lpad({lasts}, 35, '0') as valid_to_seq",
        *DATA,
    )


def statement(by: str) -> str:
    """The join of the two histories."""
    key = {"orders_history": "order_id", "customers_history": "customer_id"}
    render = MacroRenderer(
        _settings_of_relation=lambda table: {"key": [key[table]], "task": None},
        _raw_columns=lambda table: [
            {"name": name} for name in (f"{table}_id", *{"customer_id", key[table]}, *DATA)
        ],
    )
    side = {
        "relation": Relation("customers_history"),
        "on": {"customer_id": "customer_id"},
        "prefix": "customer_",
    }
    return str(render("temporal_join", Relation("orders_history"), [side], by=by))


def plain_join() -> str:
    """The baseline: the same columns, joined on the key alone."""
    columns = ("customers_history_id", "valid_from", "valid_to", *DATA)
    named = ", ".join(f"customers.{name} as customer_{name}" for name in columns)
    return (
        f"select orders.*, {named} from orders_history as orders"
        " join customers_history as customers on orders.customer_id = customers.customer_id"
    )


def main() -> None:
    """Measure and print."""
    from pyspark.sql import SparkSession

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--versions", type=int, default=1_000_000, help="versions on each side")
    parser.add_argument("--repeats", type=int, default=5, help="repeats; figures are their medians")
    options = parser.parse_args()
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "3g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "8")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("order", "customer"):
            path = f"{folder}/{name}"
            versions(session, name, options.versions).write.parquet(path)
            session.read.parquet(path).createOrReplaceTempView(f"{name}s_history")
        cases = {
            "plain equi-join on the key": plain_join(),
            "temporal_join by change_seq": statement("change_seq"),
            "temporal_join by time": statement("time"),
        }
        seconds: dict[str, list[float]] = {what: [] for what in cases}
        for _ in range(options.repeats):
            for what, sql in cases.items():
                writer = session.sql(sql).write.format("noop").mode("overwrite")
                seconds[what].append(timed(writer.save)[0])
                print(f"{what}: {seconds[what][-1]:.1f} s", file=sys.stderr, flush=True)
    session.stop()
    medians = {what: statistics.median(taken) for what, taken in seconds.items()}
    baseline = next(iter(medians.values()))
    print(f"{options.versions:,} versions on each side, 2 cores, median of {options.repeats}\n")
    print("| case | seconds | times the baseline |")
    print("|---|---|---|")
    for what, median in medians.items():
        print(f"| {what} | {median:.1f} | {median / baseline:.1f} |")


if __name__ == "__main__":
    main()
