"""How fast messages are ingested and decoded, compared with a plain copy of the topic.

    make bench-kafka BENCH_ARGS="--messages 200000 --repeats 3"

Starts a Kafka broker on loopback and produces reproducible messages: JSON in the Qlik envelope,
nine updates with before images per insert. Each repeat measures four cases, one after the other:
Spark's own stream from the topic to a new table; `afterimage land kafka` to a new raw table;
decoding the raw messages without writing them; and the model that decodes and writes. The first
repeat warms up the JVM and does not count.
"""

from __future__ import annotations

import json
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from afterimage_demo.broker import Broker, running_broker, send
from benchmarks.measuring import common_options, timed, write_result
from benchmarks.project import SCHEMA
from benchmarks.session import Bench, running_bench
from dbt_afterimage.dbt_spark.jars import avro_jars, give_to_spark, kafka_jars
from dbt_afterimage.settings import SourceSettings
from dbt_afterimage.sources.qlik_messages.decode import JSON
from dbt_afterimage.sources.qlik_messages.schema_decoder import Decoder
from tests.functional.killed_landing import arguments
from tests.functional.messages_project import write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "bench.items"
COLUMNS = {
    "id": "bigint",
    **{f"c{number:02}": "string" for number in range(1, 8)},
    **{f"n{number:02}": "decimal(12,2)" for number in range(1, 5)},
}
COPY, LAND, DECODE, MODEL = "plain copy", "land kafka", "decode", "decode and write, by dbt"
# the source settings that decoding needs
SETTINGS: SourceSettings = {
    "table_from": "topic",
    "table_header": None,
    "schemas_from": "columns",
    "mask_byte_order": "auto",
}


def produce(session: SparkSession, broker: Broker, count: int) -> None:
    """Produce messages to three partitions."""
    operation = "if(id % 10 = 0, 'INSERT', 'UPDATE')"
    message = (
        f"named_struct('data', {_image(0)}, 'beforeData', if(id % 10 = 0, null, {_image(1)}), "
        f"'headers', named_struct('operation', {operation}, "
        "'changeSequence', concat('2026030212000000', lpad(id, 19, '0')), "
        "'timestamp', '2026-03-02T11:59:59.500', 'streamPosition', hex(id), "
        "'transactionId', hex(id div 3), 'changeMask', '0FFE', 'columnMask', '0FFF', "
        "'transactionEventCounter', id % 3 + 1, 'transactionLastEvent', id % 3 = 2))"
    )
    envelope = (
        "named_struct('magic', 'atMSG', 'type', 'DT', 'headers', cast(null as string), "
        "'messageSchemaId', cast(null as string), 'messageSchema', cast(null as string), "
        f"'message', {message})"
    )
    rows = session.range(count).selectExpr(
        f"'{TOPIC}' as topic",
        "cast(id % 1000 as string) as key",
        "cast(id % 3 as int) as partition",
        f"to_json({envelope}, map('ignoreNullFields', 'false')) as value",
    )
    send(rows, broker.address)


def _image(age: int) -> str:
    """Values as Qlik writes them: integers as numbers, NUMERIC as text."""
    values = ["'id', id % 100000"]
    for name, kind in COLUMNS.items():
        drawn = f"xxhash64(id - {age}, '{name}')"
        if kind == "string":
            values.append(f"'{name}', substr(hex({drawn}), 1, 12)")
        elif name != "id":
            number = f"cast(pmod({drawn}, 1000000) * 0.01 as decimal(12,2))"
            values.append(f"'{name}', cast({number} as string)")
    return f"named_struct({', '.join(values)})"


def copy(bench: Bench, broker: Broker) -> None:
    """Copy the topic to a table with Spark's own stream: the baseline."""
    checkpoint = bench.folder / f"checkpoint_{time.monotonic_ns()}"
    (
        bench.session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", broker.address)
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
        .load()
        .writeStream.format(bench.table_format)
        .option("checkpointLocation", f"file://{checkpoint}")
        .trigger(availableNow=True)
        .toTable(f"{SCHEMA}.copied")
        .awaitTermination()
    )


def decode(bench: Bench) -> None:
    """Decode the raw messages and discard the result."""
    raw = bench.session.table("raw_kafka.messages")
    rows = Decoder(bench.session, SETTINGS, None).decoded(raw, {JSON}, {})
    rows.write.format("noop").mode("overwrite").save()


def measure(bench: Bench, broker: Broker, repeats: int) -> dict[str, list[float]]:
    """Measure the cases; returns seconds by case, without the first repeat."""
    seconds: dict[str, list[float]] = defaultdict(list)

    def measure_case(case: str, action: Callable[[], Any]) -> None:
        seconds[case].append(timed(action)[0])

    operation_arguments = arguments(broker.address, topics=[TOPIC])
    for _ in range(1 + repeats):
        for table in (f"{SCHEMA}.copied", "raw_kafka.messages", f"{SCHEMA}.raw_kafka_messages"):
            bench.session.sql(f"drop table if exists {table}")
        bench.session.sql(f"drop table if exists {SCHEMA}.afterimage_progress")
        measure_case(COPY, lambda: copy(bench, broker))
        measure_case(
            LAND,
            lambda: bench.dbt("run-operation", "land_kafka", "--args", operation_arguments),
        )
        measure_case(DECODE, lambda: decode(bench))
        measure_case(MODEL, lambda: bench.dbt("run", "--select", "raw_kafka_messages"))
    return {case: taken[1:] for case, taken in seconds.items()}


def main() -> None:
    """Measure, check that all messages were decoded, and print."""
    parser = common_options(__doc__)
    parser.add_argument("--messages", type=int, default=200_000, help="messages in the topic")
    options = parser.parse_args()
    give_to_spark([*kafka_jars(), *avro_jars()])

    def write(folder: Path) -> None:
        settings = {"key": ["id"], "message_table": TOPIC}
        write_project(folder, {"raw_kafka": {}}, {"items": ("raw_kafka", settings, COLUMNS)})

    with running_bench(options.table_format, write) as bench:
        folder = bench.folder / "broker"
        folder.mkdir()
        with running_broker(folder, partitions=3) as broker:
            produce(bench.session, broker, options.messages)
            seconds = measure(bench, broker, options.repeats)
            decoded = bench.session.table(f"{SCHEMA}.raw_kafka_messages").filter("kind = 'change'")
            if decoded.count() != options.messages:
                raise AssertionError("not all messages were decoded")
    medians = {case: statistics.median(taken) for case, taken in seconds.items()}
    print(
        f"{options.table_format}: {options.messages:,} messages, {len(COLUMNS)} columns, "
        f"median of {options.repeats}\n\n| case | seconds | messages/s | times the plain copy |\n"
        "|---|---|---|---|"
    )
    for case, median in medians.items():
        print(
            f"| {case} | {median:.1f} ({min(seconds[case]):.1f} to {max(seconds[case]):.1f}) "
            f"| {options.messages / median:,.0f} | {median / medians[COPY]:.2f} |"
        )
    figures = json.dumps(seconds)
    print(figures)
    write_result(options.results, f"kafka_{options.table_format}.json", figures)


if __name__ == "__main__":
    main()
