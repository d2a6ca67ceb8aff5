"""pgbench, captured by Debezium, landed and built, while each of the three is killed.

dbt's tests compare all rows with PostgreSQL's, and the balances at the end of each transaction and
at each cut. Some cuts lie within what has landed, because runs land while pgbench works.
`--transactions 100000` for that many of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import TYPE_CHECKING

from afterimage_demo.broker import running_broker
from afterimage_demo.connect import Connector
from afterimage_demo.postgres.debezium import running_connector, wait_until_captured
from afterimage_demo.postgres.server import Database, running_server
from afterimage_demo.postgres.workload import CLIENTS, prepare, run_bank, work
from tests.functional.runs import Runs

if TYPE_CHECKING:
    import pytest

KILLS = 2
"""Of the landing and of dbt, in each round."""


def test_kills_lose_and_double_nothing(runs: Runs, request: pytest.FixtureRequest) -> None:
    transactions = int(request.config.getoption("--transactions")) // (2 * CLIENTS)
    chooser = random.Random(7)
    # no folder of pytest: PostgreSQL, which does not run as root, could not reach it
    with (
        TemporaryDirectory(prefix="afterimage_postgres_") as name,
        running_server(Path(name)) as database,
        running_broker(Path(name)) as broker,
    ):
        folder = Path(name)
        prepare(database, scale=1)
        with running_connector(folder, database, broker) as connector:
            for number in (1, 2):
                work(database, number, scale=1, seed=number)
                bank = Thread(target=run_bank, args=(database, transactions, number))
                bank.start()
                bank.join(timeout=2)
                connector.kill()
                bank.join()
                connector.start()
                wait_until_captured(database)
                if number == 2:
                    lose_the_slot(connector, database)
                with busy_bank(database, seed=number):
                    runs.of_capture("land", "postgres", broker.address)
                runs.of_capture("build", "postgres")
                wait_until_captured(database)
                runs.of_capture_with_kills("postgres", broker.address, KILLS, chooser)
                runs.of_capture("check", "postgres", database.url)


@contextmanager
def busy_bank(database: Database, seed: int) -> Iterator[None]:
    """Transactions one after the other, so that what a run lands ends within some of them."""
    done = Event()

    def work_on() -> None:
        for number in count(100 * seed):
            run_bank(database, 25, number)
            if done.wait(0.3):
                return

    bank = Thread(target=work_on)
    bank.start()
    try:
        yield
    finally:
        done.set()
        bank.join()


def lose_the_slot(connector: Connector, database: Database) -> None:
    """PostgreSQL drops the connector's slot and misses the next changes; a snapshot follows."""
    connector.kill()
    database.query("select pg_drop_replication_slot(slot_name) from pg_replication_slots")
    (connector.folder / "offsets").unlink()
    database.script(
        "delete from documents where id > 30; "
        "update documents set title = 'while nobody looked' where id = 20;"
    )
    run_bank(database, 25, seed=3)
    connector.start()
