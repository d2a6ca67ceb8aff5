"""How a demo's deliveries come into raw tables: written there, or by way of something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from afterimage_demo.land import land

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Operation: TypeAlias = tuple[str, dict[str, Any]]
"""Name and arguments of a `dbt run-operation`."""


@dataclass(frozen=True)
class Destination:
    """Where a delivery goes.

    Attributes:
        schema: of the raw tables.
        table_format: `iceberg` or `delta`.
        progress: name of the progress table.
        brokers: Kafka's `bootstrap.servers`; None where there is no Kafka.
        database: URL of the database that a delivery changes; None where it changes none.
        connector: URL of what captures it, in Kafka Connect's REST interface.
    """

    schema: str
    table_format: str
    progress: str
    brokers: str | None = None
    database: str | None = None
    connector: str | None = None


@dataclass(frozen=True)
class Transport:
    """A way of deliveries.

    Attributes:
        deliver: brings one delivery, an element of `DemoSystem.deliveries`, to its destination.
            The first one restarts the demo.
        running: what must run meanwhile, for data of a size; gives the operations that follow each
            delivery, and what else `land_demo` must be told.
    """

    deliver: Callable[[SparkSession, Any, Destination], None]
    running: Callable[[int], AbstractContextManager[tuple[dict[str, Any], Sequence[Operation]]]]


def _write(session: SparkSession, delivery: Any, destination: Destination) -> None:
    is_delta = destination.table_format == "delta"
    land(session, delivery, destination.schema, "delta" if is_delta else "iceberg")


@contextmanager
def _nothing(scale: int) -> Iterator[tuple[dict[str, Any], Sequence[Operation]]]:
    yield {}, ()


AS_TABLES = Transport(_write, _nothing)
"""Raw tables are written as a replication tool leaves them."""
