"""Debezium's MySQL connector, which reads MariaDB too, in a worker of Kafka Connect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from afterimage_demo.broker import Broker
from afterimage_demo.connect import Connector, ConnectorError, running_worker
from afterimage_demo.mariadb.server import Database
from afterimage_demo.servers import is_true_within

TOPICS = "shop"
"""The topic of a table is `shop.bank.<table>`."""
_SECONDS = 180
_CONNECTOR = """\
name={topics}
connector.class=io.debezium.connector.mysql.MySqlConnector
tasks.max=1
database.hostname=127.0.0.1
database.port={port}
database.user=root
database.password=
database.ssl.mode=disabled
database.server.id=5400
database.include.list=bank
topic.prefix={topics}
schema.history.internal=io.debezium.storage.file.history.FileSchemaHistory
schema.history.internal.file.filename={folder}/schemas
bigint.unsigned.handling.mode=precise
skipped.operations=none
provide.transaction.metadata=true
signal.data.collection=bank.signals
table.exclude.list=bank.signals
"""
SIGNALS = "create table signals (id varchar(42) primary key, type varchar(32), data varchar(2048));"
"""Debezium's signaling table: a row in it starts a snapshot."""


@contextmanager
def running_connector(folder: Path, database: Database, broker: Broker) -> Iterator[Connector]:
    """Start the connector; it is killed in the end.

    Args:
        folder: where it has its files; must exist.
        database: has the table of signals.
        broker: where its messages go.

    Raises:
        ConnectorError: it does not start.
        JarsError: its jars cannot be fetched.
    """
    properties = _CONNECTOR.format(topics=TOPICS, port=database.port, folder=folder)
    log = folder / "connect.log"

    def wait_until_reading() -> None:
        before = _times_connected(log)
        if not is_true_within(_SECONDS, lambda: _times_connected(log) > before):
            raise ConnectorError("Debezium does not read MariaDB's log.")

    with running_worker(folder, broker, "mysql", properties, wait_until_reading) as connector:
        yield connector


def _times_connected(log: Path) -> int:
    return log.read_text(encoding="utf-8", errors="replace").count("Connected to binlog at")


def start_snapshot(database: Database, table: str) -> None:
    """Have a table read again, piece by piece among the changes; returns before that is done."""
    database.run(
        "insert into signals values (uuid(), 'execute-snapshot', "
        f"""'{{"data-collections": ["bank.{table}"], "type": "incremental"}}');"""
    )
