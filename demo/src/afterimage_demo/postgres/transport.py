"""The demo's database changes, Debezium sends it to a broker, and from there it is landed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from afterimage_demo.broker import running_broker
from afterimage_demo.land import LandingError
from afterimage_demo.postgres.debezium import TOPICS, running_connector, wait_until_captured
from afterimage_demo.postgres.server import Database, running_server
from afterimage_demo.postgres.tables import TABLES
from afterimage_demo.postgres.workload import prepare, work
from afterimage_demo.transport import Destination, Operation, Transport
from dbt_afterimage.dbt_spark.jars import give_to_spark, kafka_jars
from dbt_afterimage.storage.progress import reset_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = "demo_postgres"
MESSAGES = "postgres_messages"


@contextmanager
def _running(scale: int) -> Iterator[tuple[dict[str, Any], Sequence[Operation]]]:
    with TemporaryDirectory(prefix="afterimage_postgres_") as name:
        folder = Path(name)
        with running_server(folder) as database, running_broker(folder) as broker:
            prepare(database, scale)
            with running_connector(folder, database, broker):
                # before the first operation, which starts Spark
                give_to_spark(kafka_jars())
                yield {"database": database.url}, [landing(broker.address)]


def landing(brokers: str) -> Operation:
    """What `afterimage land kafka demo_postgres --brokers ... --pattern ...` runs."""
    request = {"brokers": brokers, "pattern": rf"{TOPICS}\.public\..*"}
    return "land_kafka", {"source_name": SOURCE, "request": request}


def _deliver(session: SparkSession, delivery: Any, destination: Destination) -> None:
    number, scale, seed = delivery
    if destination.database is None:
        raise LandingError(
            "The demo of postgres changes a database, and `database` names none. Fix: run "
            "`afterimage demo --system postgres`, which starts one."
        )
    database = Database(destination.database)
    if number == 1:
        # the broker is new, and so are its offsets
        table = f"{destination.schema}.{MESSAGES}"
        session.sql(f"drop table if exists {table}")
        reset_progress(session, destination.progress, table)
    work(database, number, scale, seed)
    wait_until_captured(database)
    save_state(session, database, destination.schema, destination.table_format)


def save_state(session: SparkSession, database: Database, schema: str, table_format: str) -> None:
    """Write the rows that PostgreSQL has into `<schema>.postgres_<table>`, read by psql."""
    with TemporaryDirectory(prefix="afterimage_postgres_") as folder:
        path = Path(folder) / "rows.json"
        for name, table in TABLES.items():
            present = database.query(
                f"select column_name from information_schema.columns where table_name = '{name}'"
            )
            database.save(table.rows_as_json(name, present), path)
            kinds = ", ".join(f"{column} {kind}" for column, kind in table.columns.items())
            rows = session.read.schema(kinds).json(str(path))
            writer = rows.coalesce(1).writeTo(f"{schema}.postgres_{name}")
            writer.using(table_format).createOrReplace()


THROUGH_DEBEZIUM = Transport(_deliver, _running)
