"""The demo's PostgreSQL, as Debezium captures it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from afterimage_demo.broker import Broker
from afterimage_demo.captured import Capture
from afterimage_demo.postgres.debezium import TOPICS, running_connector, wait_until_captured
from afterimage_demo.postgres.server import Database, running_server
from afterimage_demo.postgres.tables import TABLES
from afterimage_demo.postgres.workload import prepare, work


@contextmanager
def _running(folder: Path, broker: Broker, scale: int) -> Iterator[dict[str, str]]:
    with running_server(folder) as database:
        prepare(database, scale)
        with running_connector(folder, database, broker):
            yield {"database": database.url}


def _work(url: str, _: str | None, number: int, scale: int, seed: int) -> None:
    database = Database(url)
    work(database, number, scale, seed)
    wait_until_captured(database)


def _save(url: str, table: str, path: Path) -> None:
    database = Database(url)
    present = database.query(
        f"select column_name from information_schema.columns where table_name = '{table}'"
    )
    database.save(TABLES[table].rows_as_json(table, present), path)


POSTGRES = Capture(
    system="postgres",
    topics=rf"{TOPICS}\.(public\..*|transaction)",
    tables={name: table.columns for name, table in TABLES.items()},
    running=_running,
    work=_work,
    save=_save,
)
