"""Debezium's MySQL connector, which reads MariaDB too, in a worker of Kafka Connect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from afterimage_demo.broker import Broker
from afterimage_demo.connect import Connector, ConnectorError, running_worker
from afterimage_demo.mariadb.server import SCHEMA, Database
from afterimage_demo.servers import is_true_within

TOPICS = "post"
"""The topic of a table is `post.parcel_service.<table>`."""
_SECONDS = 180
_CONNECTOR = """\
connector.class=io.debezium.connector.mysql.MySqlConnector
database.hostname=127.0.0.1
database.port={port}
database.user=root
database.password=
database.ssl.mode=disabled
database.server.id=5400
database.include.list={schema}
schema.history.internal=io.debezium.storage.file.history.FileSchemaHistory
schema.history.internal.file.filename={folder}/schemas
bigint.unsigned.handling.mode=precise
signal.data.collection={schema}.signals
table.exclude.list={schema}.signals
"""
SIGNALS = "create table signals (id varchar(42) primary key, type varchar(32), data varchar(2048));"
"""Debezium's signaling table: a row in it starts a snapshot."""
HEARTBEATS = "create table heartbeats (id int auto_increment primary key);"
"""A row in it has Debezium send something, and so confirm all that it has sent before."""


@contextmanager
def running_connector(folder: Path, database: Database, broker: Broker) -> Iterator[Connector]:
    """Start the connector; it is killed in the end.

    Args:
        folder: where it has its files; must exist.
        database: has the tables of signals and heartbeats.
        broker: where its messages go.

    Raises:
        ConnectorError: it does not start.
        JarsError: its jars cannot be fetched.
    """
    properties = _CONNECTOR.format(schema=SCHEMA, port=database.port, folder=folder)
    log = folder / "connect.log"

    def wait_until_reading() -> None:
        before = _times_connected(log)
        if not is_true_within(_SECONDS, lambda: _times_connected(log) > before):
            raise ConnectorError("Debezium does not read MariaDB's log.")

    with running_worker(
        folder, broker, "mysql", TOPICS, properties, wait_until_reading
    ) as connector:
        yield connector


def _times_connected(log: Path) -> int:
    return log.read_text(encoding="utf-8", errors="replace").count("Connected to binlog at")


def wait_until_captured(database: Database, connector: str) -> None:
    """Wait until Kafka has all that MariaDB has committed.

    Args:
        database: has the table of heartbeats.
        connector: `Connector.address`.

    Raises:
        ConnectorError: three minutes have passed.
    """
    (status,) = database.run("show master status")
    file, position, *_ = status.split("\t")
    database.run("insert into heartbeats values ()")
    if not is_true_within(_SECONDS, lambda: _sent(connector) >= (file, int(position))):
        raise ConnectorError(f"Debezium has not sent all changes: {_sent(connector)} is its place.")


def _sent(connector: str) -> tuple[str, int]:
    """Up to where the binlog is in Kafka: its file, and the position in the file."""
    with urlopen(f"{connector}/offsets") as answer:
        offsets = json.load(answer)["offsets"]
    offset = offsets[0]["offset"] if offsets else {"file": "", "pos": 0}
    return offset["file"], offset["pos"]


def start_snapshot(database: Database, table: str) -> None:
    """Have a table read again, piece by piece among the changes; returns before that is done."""
    database.run(
        "insert into signals values (uuid(), 'execute-snapshot', "
        f"""'{{"data-collections": ["{SCHEMA}.{table}"], "type": "incremental"}}');"""
    )
