"""A worker of Kafka Connect with one connector of Debezium, as a team would run it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from afterimage_demo.broker import KAFKA, Broker
from afterimage_demo.servers import free_ports
from dbt_afterimage.dbt_spark.jars import Coordinate, fetched
from dbt_afterimage.spark.java import java

_DEBEZIUM = "3.3.1.Final"
_JARS = [
    ("org.apache.kafka", "connect-runtime", KAFKA[2]),
    ("org.apache.kafka", "connect-json", KAFKA[2]),
    # Ivy would choose 1.7, which Connect's web server cannot log to
    ("org.slf4j", "slf4j-api", "2.0.17"),
    ("org.slf4j", "slf4j-simple", "2.0.17"),
]
_WORKER = """\
bootstrap.servers={brokers}
listeners=http://127.0.0.1:{port}
key.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=false
value.converter=org.apache.kafka.connect.json.JsonConverter
value.converter.schemas.enable=false
offset.storage.file.filename={folder}/offsets
offset.flush.interval.ms=500
plugin.discovery=service_load
"""
_CONNECTOR = """\
name={topics}
tasks.max=1
topic.prefix={topics}
skipped.operations=none
provide.transaction.metadata=true
"""


class ConnectorError(RuntimeError):
    """What Debezium reads, or Debezium, does not do its work; the text is meant for the user."""


@dataclass
class Connector:
    """A connector that runs, or can be started again where it was.

    Attributes:
        folder: of its settings, its log, and its place in the database's log.
        address: of its REST interface.
        classpath: of Kafka Connect and Debezium.
        wait_until_reading: returns once it reads the log; raises ConnectorError if it does not.
    """

    folder: Path
    address: str
    classpath: str
    wait_until_reading: Callable[[], None]
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        """Start the worker, and wait until it reads the log, with the first snapshot behind it."""
        with (self.folder / "connect.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(java(), "-Xmx512m", "-cp", self.classpath),
                    "org.apache.kafka.connect.cli.ConnectStandalone",
                    *("worker.properties", "connector.properties"),
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
            )
        try:
            self.wait_until_reading()
        except ConnectorError as error:
            said = (self.folder / "connect.log").read_text(encoding="utf-8", errors="replace")
            raise ConnectorError(f"{error} Its last lines:\n{said[-2000:]}") from None

    def kill(self) -> None:
        """End the worker as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def running_worker(
    folder: Path,
    broker: Broker,
    database: str,
    topics: str,
    properties: str,
    wait_until_reading: Callable[[], None],
    jars: Sequence[Coordinate] = (),
) -> Iterator[Connector]:
    """Start a connector; it is killed in the end.

    Args:
        folder: where it has its files; must exist.
        broker: where its messages go.
        database: of the connector's name, such as `postgres`.
        topics: the first part of their names.
        properties: of the connector, besides these.
        wait_until_reading: see `Connector`.
        jars: those that its properties need.

    Raises:
        ConnectorError: it does not start.
        JarsError: its jars cannot be fetched.
    """
    wanted = [*_JARS, ("io.debezium", f"debezium-connector-{database}", _DEBEZIUM), *jars]
    classpath = os.pathsep.join(map(str, fetched(wanted, transitive=True)))
    (port,) = free_ports(1)
    worker = _WORKER.format(brokers=broker.address, port=port, folder=folder)
    connector_properties = _CONNECTOR.format(topics=topics) + properties
    for name, text in (("worker", worker), ("connector", connector_properties)):
        (folder / f"{name}.properties").write_text(text, encoding="utf-8")
    address = f"http://127.0.0.1:{port}/connectors/{topics}"
    connector = Connector(folder, address, classpath, wait_until_reading)
    try:
        connector.start()
        yield connector
    finally:
        connector.kill()
