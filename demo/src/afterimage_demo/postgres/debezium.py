"""Debezium's PostgreSQL connector in a worker of Kafka Connect, as a team would run it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from afterimage_demo.broker import KAFKA, Broker
from afterimage_demo.ports import free_ports
from afterimage_demo.postgres.server import Database, PostgresError
from dbt_afterimage.dbt_spark.jars import fetched
from dbt_afterimage.spark.java import java

TOPICS = "bank"
"""The topic of a table is `bank.public.<table>`."""
SIGNALS = "debezium_signals"
"""Debezium's signaling table: a row in it starts a snapshot."""

_JARS = [
    ("org.apache.kafka", "connect-runtime", KAFKA[2]),
    ("org.apache.kafka", "connect-json", KAFKA[2]),
    ("io.debezium", "debezium-connector-postgres", "3.3.1.Final"),
    # Ivy would choose 1.7, which Connect's web server cannot log to
    ("org.slf4j", "slf4j-api", "2.0.17"),
    ("org.slf4j", "slf4j-simple", "2.0.17"),
]
_SECONDS = 180

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
connector.class=io.debezium.connector.postgresql.PostgresConnector
tasks.max=1
database.hostname={host}
database.port={port}
database.user={user}
database.dbname={database}
topic.prefix={topics}
plugin.name=pgoutput
skipped.operations=none
provide.transaction.metadata=true
signal.data.collection=public.{signals}
table.exclude.list=public.{signals}
"""


@dataclass
class Connector:
    """A connector that runs, or can be started again where it was.

    Attributes:
        folder: of its settings, its log, and its place in PostgreSQL's log.
        classpath: of Kafka Connect and Debezium.
        database: what it reads.
    """

    folder: Path
    classpath: str
    database: Database
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
            _wait(self.database, "select count(*) from pg_replication_slots where active", "1")
            wait_until_captured(self.database)
        except PostgresError as error:
            said = (self.folder / "connect.log").read_text(encoding="utf-8", errors="replace")
            raise PostgresError(f"{error} Its last lines:\n{said[-2000:]}") from None

    def kill(self) -> None:
        """End the worker as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def running_connector(folder: Path, database: Database, broker: Broker) -> Iterator[Connector]:
    """Start the connector; it is killed in the end.

    Args:
        folder: where it has its files; must exist.
        database: has the table of signals.
        broker: where its messages go.

    Raises:
        PostgresError: it does not start.
        JarsError: its jars cannot be fetched.
    """
    classpath = os.pathsep.join(map(str, fetched(_JARS, transitive=True)))
    (port,) = free_ports(1)
    at = urlsplit(database.url)
    settings = {
        "worker.properties": _WORKER.format(brokers=broker.address, port=port, folder=folder),
        "connector.properties": _CONNECTOR.format(
            host=at.hostname,
            port=at.port,
            user=at.username,
            database=at.path[1:],
            topics=TOPICS,
            signals=SIGNALS,
        ),
    }
    for name, text in settings.items():
        (folder / name).write_text(text, encoding="utf-8")
    connector = Connector(folder, classpath, database)
    try:
        connector.start()
        yield connector
    finally:
        connector.kill()


def wait_until_captured(database: Database) -> None:
    """Wait until Kafka has all that PostgreSQL has committed: Debezium confirms what it has sent.

    Raises:
        PostgresError: three minutes have passed.
    """
    (place,) = database.query("select pg_current_wal_insert_lsn()")
    # Debezium confirms the place of a transaction that it sends, and this one it always does
    database.query("select pg_logical_emit_message(true, 'demo', 'all of it')")
    _wait(database, f"select confirmed_flush_lsn >= '{place}' from pg_replication_slots", "t")


def start_snapshot(database: Database, table: str) -> None:
    """Have a table read again, piece by piece among the changes; returns before that is done.

    Args:
        database: where the table is.
        table: in the schema public.
    """
    database.script(
        f"insert into {SIGNALS} values (gen_random_uuid(), 'execute-snapshot', "
        f"""'{{"data-collections": ["public.{table}"], "type": "incremental"}}');"""
    )


def _wait(database: Database, question: str, answer: str) -> None:
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        if database.query(question) == [answer]:
            return
        time.sleep(0.2)
    raise PostgresError(f"Debezium has not done its work: `{question}` is not {answer}.")
