"""Messages of the web shop go to a broker of its own, and from there into raw tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from afterimage_demo.broker import producer_options, running_broker
from afterimage_demo.kafka.messages import PARTITIONS, Message
from afterimage_demo.land import LandingError
from afterimage_demo.transport import Destination, Operation, Transport
from dbt_afterimage.dbt_spark.jars import avro_jars, give_to_spark, kafka_jars
from dbt_afterimage.spark.session import java
from dbt_afterimage.storage.progress import reset_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPICS = {"shop": r"shop\..*", "checkout": r"checkout\..*"}
"""Name -> a pattern for topics: the source `demo_<name>` and its raw table `<name>_messages`."""


@contextmanager
def _running(scale: int) -> Iterator[tuple[dict[str, Any], Sequence[Operation]]]:
    with (
        TemporaryDirectory(prefix="afterimage_kafka_") as folder,
        running_broker(Path(folder), PARTITIONS) as broker,
    ):
        # before the first operation, which starts Spark
        give_to_spark([*kafka_jars(), *avro_jars()])
        yield {"brokers": broker.address}, [_landing(name, broker.address) for name in TOPICS]


def _landing(name: str, brokers: str) -> Operation:
    """What `afterimage land kafka demo_shop --brokers ... --pattern ...` runs."""
    request = {"brokers": brokers, "pattern": TOPICS[name]}
    return "land_kafka", {"source_name": f"demo_{name}", "request": request}


def _deliver(session: SparkSession, delivery: Any, destination: Destination) -> None:
    number, messages = delivery
    if destination.brokers is None:
        raise LandingError(
            "The messages of the demo of kafka go to a broker, and `brokers` names none. Fix: run "
            "`afterimage demo --system kafka`, which starts one."
        )
    if number == 1:
        # the broker is new, and so are its offsets
        for name in TOPICS:
            table = f"{destination.schema}.{name}_messages"
            session.sql(f"drop table if exists {table}")
            reset_progress(session, destination.progress, table)
    send(session, destination.brokers, messages)


def send(session: SparkSession, brokers: str, messages: Iterable[Message]) -> None:
    """Send messages in their order, each with its own time, by Kafka's producer in Spark's JVM."""
    jvm = java(session)
    kafka = jvm.org.apache.kafka
    properties = jvm.java.util.Properties()
    for name, value in producer_options(brokers).items():
        properties.setProperty(name, value)
    serializer = kafka.common.serialization.ByteArraySerializer
    producer = kafka.clients.producer.KafkaProducer(properties, serializer(), serializer())
    try:
        sent = [
            producer.send(
                kafka.clients.producer.ProducerRecord(
                    message.topic,
                    message.partition,
                    int(message.at.timestamp() * 1000),
                    message.key,
                    message.value,
                    None,
                )
            )
            for message in messages
        ]
        producer.flush()
        for answer in sent:
            answer.get()
    finally:
        producer.close()


THROUGH_KAFKA = Transport(_deliver, _running)
