"""An Apache Kafka broker of its own: one process on loopback, for demos and tests.

It runs in KRaft mode, so that it needs nothing beside itself.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from afterimage_demo.servers import free_ports, is_listening, wait_until_started
from dbt_afterimage.dbt_spark.jars import fetched
from dbt_afterimage.spark.java import java

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KAFKA = ("org.apache.kafka", "kafka_2.13", "4.1.1")
_MEMORY = "-Xmx256m"
# 16 bytes in base64, as Kafka wants it. The same for all, since each broker has its own folder: of
# random ones, every 64th begins with a hyphen, which Kafka's command line takes for an option.
_CLUSTER = "YWZ0ZXJpbWFnZSBicm9rZQ"

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
num.partitions={partitions}
log.retention.ms=-1
"""


class BrokerError(RuntimeError):
    """The broker did not start; the text is meant for the user."""


@dataclass(frozen=True)
class Broker:
    """A running broker.

    Attributes:
        address: host and port, as clients want it.
    """

    address: str


def producer_options(brokers: str) -> dict[str, str]:
    """Options of a producer that may be the first to write to a topic.

    One request at a time: the leader of a partition that has just been made can refuse the first
    batch and then take the second one, whose number it has nothing to compare with. From there on
    it refuses the first one for good, and the producer gives up after two minutes. Seen with Kafka
    4.1.1 on a busy machine.
    """
    return {"bootstrap.servers": brokers, "max.in.flight.requests.per.connection": "1"}


def send(rows: DataFrame, brokers: str, **options: str) -> None:
    """Send rows, as Spark's Kafka sink takes them, to topics that may be new.

    Args:
        rows: topic, key, value, partition, headers, as far as they have them.
        brokers: Kafka's bootstrap.servers.
        options: further ones of the sink.
    """
    of_kafka = {f"kafka.{name}": value for name, value in producer_options(brokers).items()}
    rows.write.format("kafka").options(**of_kafka, **options).save()


@contextmanager
def running_broker(folder: Path, partitions: int = 1) -> Iterator[Broker]:
    """Start a broker; it is stopped in the end.

    Args:
        folder: where it has its files; must exist.
        partitions: of a topic, which is made when it is written to.

    Raises:
        BrokerError: it does not start.
        JarsError: its jars cannot be fetched.
    """
    classpath = os.pathsep.join(map(str, fetched([KAFKA], transitive=True)))
    port, controller = free_ports(2)
    properties = folder / "server.properties"
    properties.write_text(
        _PROPERTIES.format(port=port, controller=controller, folder=folder, partitions=partitions),
        encoding="utf-8",
    )
    _java(classpath, "kafka.tools.StorageTool", ["format", "-t", _CLUSTER, "-c", str(properties)])
    with (folder / "broker.log").open("wb") as log:
        process = subprocess.Popen(
            [java(), _MEMORY, "-cp", classpath, "kafka.Kafka", str(properties)],
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
        try:
            wait_until_started(
                "The broker",
                process,
                lambda: is_listening(port),
                folder / "broker.log",
                BrokerError,
            )
            yield Broker(f"127.0.0.1:{port}")
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _java(classpath: str, program: str, arguments: list[str]) -> None:
    run = subprocess.run(
        [java(), _MEMORY, "-cp", classpath, program, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        raise BrokerError(f"{program} failed:\n{(run.stdout + run.stderr)[-2000:]}")
