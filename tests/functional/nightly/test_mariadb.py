"""MariaDB, captured by Debezium, landed and built, while the landing and dbt are killed.

Debezium is not: its MySQL connector loses a change of MariaDB at each restart
(docs/feeds/debezium.md).
dbt's tests compare all rows with MariaDB's, and each wallet's changes with its payments.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

from afterimage_demo.broker import running_broker
from afterimage_demo.mariadb.debezium import running_connector, wait_until_captured
from afterimage_demo.mariadb.server import BINLOGS, Database, running_server
from afterimage_demo.mariadb.workload import pay, prepare, work
from tests.functional.runs import Runs

KILLS = 2
"""Of the landing and of dbt, in each round."""


def test_kills_lose_and_double_nothing(runs: Runs) -> None:
    chooser = random.Random(11)
    with (
        TemporaryDirectory(prefix="afterimage_mariadb_") as name,
        running_broker(Path(name)) as broker,
        running_server(Path(name)) as database,
    ):
        prepare(database)
        with running_connector(Path(name), database, broker) as connector:
            for number in (1, 2):
                work(database, number, scale=1, seed=number)
                with payments(database, seed=number):
                    runs.of_capture_with_kills("mariadb", broker.address, KILLS, chooser)
                wait_until_captured(database, connector.address)
                runs.of_capture("land", "mariadb", broker.address)
                runs.of_capture("build", "mariadb")
                runs.of_capture("check", "mariadb", database.url)
        files = [row.split("\t")[0] for row in database.run("show binary logs")]
    assert len(files) > 3 and all(file.startswith(BINLOGS) for file in files)


@contextmanager
def payments(database: Database, seed: int) -> Iterator[None]:
    """Fifty payments a second, until the block ends."""
    done = Event()

    def keep_paying() -> None:
        part = 0
        while not done.wait(1):
            part += 1
            pay(database, 50, 1000 * seed + part)

    with ThreadPoolExecutor(1) as beside:
        paid = beside.submit(keep_paying)
        try:
            yield
        finally:
            done.set()
        paid.result()
