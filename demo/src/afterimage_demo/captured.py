"""The demos of Debezium: a database changes, Debezium sends that to a broker, and it is landed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from afterimage_demo.broker import Broker, running_broker
from afterimage_demo.land import LandingError
from afterimage_demo.transport import Destination, Operation, Transport
from dbt_afterimage.dbt_spark.jars import give_to_spark, kafka_jars
from dbt_afterimage.storage.progress import reset_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Capture:
    """A database that a demo starts and changes, and that Debezium captures.

    Attributes:
        system: the demo's name. Its source is `demo_<system>`, its raw table `<system>_messages`.
        topics: a pattern for the topics of its tables.
        tables: name -> column -> type in Spark.
        running: runs the server, with its tables, and Debezium, in a folder and for a scale; gives
            the fields `database` and `connector` of `Destination`, as far as the others need them.
        work: changes the database as a delivery says (its number, scale and seed); returns once
            Kafka has all changes.
        save: writes the rows of a table of the database to a file, one JSON object per row.
    """

    system: str
    topics: str
    tables: Mapping[str, Mapping[str, str]]
    running: Callable[[Path, Broker, int], AbstractContextManager[dict[str, str]]]
    work: Callable[[str, str | None, int, int, int], None]
    save: Callable[[str, str, Path], None]

    def landing(self, brokers: str) -> Operation:
        """What `afterimage land kafka demo_<system> --brokers ... --pattern ...` runs."""
        request = {"brokers": brokers, "pattern": self.topics}
        return "land_kafka", {"source_name": f"demo_{self.system}", "request": request}

    def save_state(
        self, session: SparkSession, database: str, schema: str, table_format: str
    ) -> None:
        """Write the rows that the database has into `<schema>.<system>_<table>`."""
        with TemporaryDirectory(prefix="afterimage_state_") as folder:
            path = Path(folder) / "rows.json"
            for name, columns in self.tables.items():
                self.save(database, name, path)
                kinds = ", ".join(f"{column} {kind}" for column, kind in columns.items())
                rows = session.read.schema(kinds).json(str(path))
                writer = rows.coalesce(1).writeTo(f"{schema}.{self.system}_{name}")
                writer.using(table_format).createOrReplace()

    def transport(self) -> Transport:
        """The way of the demo's deliveries."""
        return Transport(self._deliver, self._running)

    @contextmanager
    def _running(self, scale: int) -> Iterator[tuple[dict[str, Any], Sequence[Operation]]]:
        # no folder of a user's: a server that root starts runs as another user
        with TemporaryDirectory(prefix=f"afterimage_{self.system}_") as name:
            folder = Path(name)
            with running_broker(folder) as broker, self.running(folder, broker, scale) as given:
                # before the first operation, which starts Spark
                give_to_spark(kafka_jars())
                yield dict(given), [self.landing(broker.address)]

    def _deliver(self, session: SparkSession, delivery: Any, destination: Destination) -> None:
        number, scale, seed = delivery
        if destination.database is None:
            raise LandingError(
                f"The demo of {self.system} changes a database, and `database` names none. Fix: "
                f"run `afterimage demo --system {self.system}`, which starts one."
            )
        if number == 1:
            # the broker is new, and so are its offsets
            table = f"{destination.schema}.{self.system}_messages"
            session.sql(f"drop table if exists {table}")
            reset_progress(session, destination.progress, table)
        self.work(destination.database, destination.connector, number, scale, seed)
        self.save_state(session, destination.database, destination.schema, destination.table_format)
