"""The source systems that have a demo: its tables, and what lands in each delivery.

python -m afterimage_demo.systems    # a value of AFTERIMAGE_DEMOS that enables all of them
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from afterimage_demo import openedge
from afterimage_demo.generate import DemoBatch, generate
from afterimage_demo.kafka.generate import generate_shop
from afterimage_demo.kafka.messages import Message
from afterimage_demo.kafka.tables import TABLES as SHOP_TABLES
from afterimage_demo.kafka.transport import THROUGH_KAFKA
from afterimage_demo.mariadb.transport import MARIADB
from afterimage_demo.postgres.transport import POSTGRES
from afterimage_demo.soliddb.generate import generate_bank
from afterimage_demo.soliddb.tables import TABLES as BANK_TABLES
from afterimage_demo.stories import (
    BESIDE_MARIADB,
    BESIDE_POSTGRES,
    KEY_SWAP,
    LATE_CHANGE,
    MOVED_DOCUMENT,
    SWAPPED_PARCELS,
    Story,
)
from afterimage_demo.tables import TABLES
from afterimage_demo.transport import AS_TABLES, Transport


@dataclass(frozen=True)
class DemoSystem:
    """The demo of one source system; AFTERIMAGE_DEMOS names it to enable its dbt models.

    Attributes:
        tables: names of the tables with a history: its marts are `<table>_history` and so on.
        deliveries: (scale, seed, number of deliveries) -> what each delivery brings.
        query: a query on its marts that is worth a look.
        transport: how a delivery comes into raw tables.
        stories: what the summary shows of some rows; Spark SQL.
    """

    tables: Sequence[str]
    deliveries: Callable[[int, int, int], Sequence[Any]]
    query: str
    transport: Transport = AS_TABLES
    stories: Sequence[Story] = ()


def _qlik(scale: int, seed: int, batches: int) -> Sequence[DemoBatch]:
    return generate(scale=scale, seed=seed, batches=batches).batches


def _soliddb(scale: int, seed: int, batches: int) -> Sequence[DemoBatch]:
    return generate_bank(scale=scale, seed=seed, batches=batches).batches


def _kafka(scale: int, seed: int, batches: int) -> Sequence[tuple[int, Sequence[Message]]]:
    shop = generate_shop(scale=scale, seed=seed, batches=batches)
    return list(enumerate(shop.deliveries, 1))


def _captured(scale: int, seed: int, batches: int) -> Sequence[tuple[int, int, int]]:
    return [(number, scale, seed) for number in range(1, batches + 1)]


SYSTEMS: dict[str, DemoSystem] = {
    "qlik": DemoSystem(
        tables=tuple(TABLES),
        deliveries=_qlik,
        query="select customer_id, city, valid_from, valid_to, opened_by, closed_by "
        "from customers_history where closed_by = 'K'",
        stories=(KEY_SWAP, LATE_CHANGE),
    ),
    "openedge": DemoSystem(
        tables=tuple(name for name, table in openedge.TABLES.items() if table.level > 1),
        deliveries=openedge.deliveries,
        query="select delivery_id, partition_id, status, valid_from, valid_to "
        "from deliveries_history where closed_by = 'T' limit 5",
    ),
    "soliddb": DemoSystem(
        tables=tuple(name.lower() for name in BANK_TABLES),
        deliveries=_soliddb,
        query="select account_number, balance, valid_from, valid_to, opened_by, closed_by "
        "from accounts_history where closed_by = 'D'",
    ),
    "kafka": DemoSystem(
        tables=tuple(SHOP_TABLES),
        deliveries=_kafka,
        query="select article_id, unit_price, valid_from, valid_to, opened_by, closed_by "
        "from articles_history where opened_by = 'L' and valid_from > '2026-03-03' limit 5",
        transport=THROUGH_KAFKA,
    ),
    "postgres": DemoSystem(
        tables=tuple(POSTGRES.tables),
        deliveries=_captured,
        query="select tid, tbalance, valid_from, valid_to, opened_by from pgbench_tellers_history "
        "where tid = 1 order by valid_from_seq desc limit 5",
        transport=POSTGRES.transport(),
        stories=(BESIDE_POSTGRES, MOVED_DOCUMENT),
    ),
    "mariadb": DemoSystem(
        tables=tuple(MARIADB.tables),
        deliveries=_captured,
        query="select id, balance, valid_from, valid_to, opened_by from wallets_history "
        "where id = 1 order by valid_from_seq desc limit 5",
        transport=MARIADB.transport(),
        stories=(BESIDE_MARIADB, SWAPPED_PARCELS),
    ),
}


def demo_system(name: str) -> DemoSystem:
    """The demo of a system.

    Raises:
        ValueError: it has none; the text is meant for the user.
    """
    if name not in SYSTEMS:
        raise ValueError(f"There is no demo of system {name!r}; allowed: {', '.join(SYSTEMS)}.")
    return SYSTEMS[name]


if __name__ == "__main__":
    print(",".join(SYSTEMS))
