"""Debezium's PostgreSQL connector in a worker of Kafka Connect, as a team would run it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from afterimage_demo.broker import Broker
from afterimage_demo.connect import Connector, ConnectorError, running_worker
from afterimage_demo.postgres.server import Database
from afterimage_demo.servers import is_true_within
from dbt_afterimage.dbt_spark.jars import Coordinate

TOPICS = "bank"
"""The topic of a table is `bank.public.<table>`."""
SIGNALS = "debezium_signals"
"""Debezium's signaling table: a row in it starts a snapshot."""

_SECONDS = 180

_CONNECTOR = """\
connector.class=io.debezium.connector.postgresql.PostgresConnector
database.hostname={host}
database.port={port}
database.user={user}
database.dbname={database}
plugin.name=pgoutput
slot.name={topics}
signal.data.collection=public.{signals}
table.exclude.list=public.{signals}
"""


@contextmanager
def running_connector(
    folder: Path,
    database: Database,
    broker: Broker,
    topics: str = TOPICS,
    properties: str = "",
    jars: Sequence[Coordinate] = (),
) -> Iterator[Connector]:
    """Start the connector; it is killed in the end.

    Args:
        folder: where it has its files; must exist.
        database: has the table of signals.
        broker: where its messages go.
        topics: the first part of their names, and the name of the connector's slot.
        properties: of the connector, besides those of the demo.
        jars: those that these properties need.

    Raises:
        ConnectorError: it does not start.
        JarsError: its jars cannot be fetched.
    """
    at = urlsplit(database.url)
    properties += _CONNECTOR.format(
        host=at.hostname,
        port=at.port,
        user=at.username,
        database=at.path[1:],
        topics=topics,
        signals=SIGNALS,
    )

    def wait_until_reading() -> None:
        _wait(
            database, f"select active from pg_replication_slots where slot_name = '{topics}'", "t"
        )
        wait_until_captured(database)

    with running_worker(
        folder, broker, "postgres", topics, properties, wait_until_reading, jars
    ) as connector:
        yield connector


def wait_until_captured(database: Database) -> None:
    """Wait until Kafka has all that PostgreSQL has committed: Debezium confirms what it has sent.

    Raises:
        ConnectorError: three minutes have passed.
    """
    (place,) = database.query("select pg_current_wal_insert_lsn()")
    # Debezium confirms the place of a transaction that it sends, and this one it always does
    database.query("select pg_logical_emit_message(true, 'demo', 'all of it')")
    _wait(
        database,
        f"select bool_and(confirmed_flush_lsn >= '{place}') from pg_replication_slots",
        "t",
    )


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
    if is_true_within(_SECONDS, lambda: database.query(question) == [answer]):
        return
    raise ConnectorError(f"Debezium has not done its work: `{question}` is not {answer}.")
