"""The demo's MariaDB, as Debezium captures it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from afterimage_demo.broker import Broker
from afterimage_demo.captured import Capture
from afterimage_demo.mariadb.debezium import TOPICS, running_connector, wait_until_captured
from afterimage_demo.mariadb.server import SCHEMA, Database, running_server
from afterimage_demo.mariadb.tables import TABLES, rows_as_json
from afterimage_demo.mariadb.workload import prepare, work


@contextmanager
def _running(folder: Path, broker: Broker, _: int) -> Iterator[dict[str, str]]:
    with running_server(folder) as database:
        prepare(database)
        with running_connector(folder, database, broker) as connector:
            yield {"database": database.url, "connector": connector.address}


def _work(url: str, connector: str | None, number: int, scale: int, seed: int) -> None:
    database = Database(url)
    work(database, number, scale, seed)
    if connector is not None:
        wait_until_captured(database, connector)


def _save(url: str, table: str, path: Path) -> None:
    rows = Database(url).run(rows_as_json(table))
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


MARIADB = Capture(
    system="mariadb",
    topics=rf"{TOPICS}\.{SCHEMA}\..*",
    tables={
        name: {column: kind for column, (_, kind, _) in columns.items()}
        for name, columns in TABLES.items()
    },
    running=_running,
    work=_work,
    save=_save,
)
