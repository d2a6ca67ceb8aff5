"""Generates the demo: `generate()` is the only function that other code needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import pyarrow as pa

from afterimage_demo.arrow import to_arrow
from afterimage_demo.database import Event
from afterimage_demo.delivery import (
    deliver_again,
    hold_back_an_update,
    repeat_some,
    reverse_one_pair,
    split_first_pair,
)
from afterimage_demo.malformed import MALFORMED, Malformed
from afterimage_demo.qlik import RawRow, base_row, change_records
from afterimage_demo.scenarios import SCENARIOS
from afterimage_demo.tables import CUSTOMERS, ORDERS, TABLES, Key, Row, Table
from afterimage_demo.traffic import BATCH_LASTS, Shop, batch_start


class ExpectedReject(NamedTuple):
    """A malformed record: its table (without `__ct`), its change_seq as it arrives, and why.

    batch: the delivery that brings it.
    """

    table: str
    change_seq: str | None
    reason: str
    batch: int


@dataclass(frozen=True)
class DemoBatch:
    """One delivery.

    tables: raw table name to the rows that arrive.
    replaced: the raw tables whose content the rows replace; to the others they are added.
    """

    number: int
    tables: Mapping[str, pa.Table]
    replaced: frozenset[str]


@dataclass(frozen=True)
class DemoData:
    """The demo's deliveries, and what is true of them.

    truth: per table, what the database holds after the load (index 0) and after each batch.
    events: every change, in order; malformed records and repetitions are not among them.
    expected_rejects: every malformed record, once each.
    contested: (table, change_seq) of records that came with two contents, of which either may
    be the one that is kept; the truth at the end of each batch does not depend on it.
    """

    batches: tuple[DemoBatch, ...]
    truth: Mapping[str, tuple[Mapping[Key, Row], ...]]
    events: tuple[Event, ...]
    expected_rejects: tuple[ExpectedReject, ...]
    contested: frozenset[tuple[str, str]]


def generate(scale: int = 1, seed: int = 7, batches: int = 2) -> DemoData:
    """Generate the demo's data; the same arguments give the same data, whatever the clock says.

    scale: multiplies all sizes; 1 gives 300 customers, 200 products, 1,500 orders, 4,000 order
    items, 400 shipments and about 1,250 change records a batch.
    batches: how many deliveries, a day each; the planned scenarios are in the first two.
    """
    if scale < 1 or batches < 1:
        raise ValueError(f"`scale` and `batches` must be 1 or more, got {scale} and {batches}")
    shop = Shop(Random(seed), scale)
    shop.load()
    truth = {name: [dict(rows)] for name, rows in shop.database.rows.items()}
    malformed: list[Malformed] = []
    for number in range(1, batches + 1):
        malformed += _run_batch(shop, number)
        for name, rows in shop.database.rows.items():
            truth[name].append(dict(rows))

    events = shop.database.events
    deliveries: list[dict[str, pa.Table]] = [{} for _ in range(batches)]
    for table in TABLES.values():
        changes = _change_table(table, batches, events, malformed)
        base = _base_table(table, truth[table.name], events)
        for delivery, new_records, new_rows in zip(deliveries, changes, base, strict=True):
            delivery[table.change_table] = to_arrow(table.raw_types(with_headers=True), new_records)
            delivery[table.name] = to_arrow(table.raw_types(with_headers=False), new_rows)

    live = frozenset(table.name for table in TABLES.values() if table.base == "live")
    return DemoData(
        batches=tuple(
            DemoBatch(number, tables, live) for number, tables in enumerate(deliveries, 1)
        ),
        truth={name: tuple(states) for name, states in truth.items()},
        events=tuple(events),
        expected_rejects=tuple(
            ExpectedReject(spoilt.event.table, spoilt.change_seq, spoilt.reason, spoilt.batch)
            for spoilt in malformed
        ),
        contested=frozenset(
            (spoilt.event.table, spoilt.event.change_seq)
            for spoilt in malformed
            if spoilt.is_contested
        ),
    )


def _run_batch(shop: Shop, number: int) -> list[Malformed]:
    """Run a batch's transactions; return the malformed records that they are mixed with."""
    shop.open_batch(number)
    plan: list[tuple[float, Callable[[Shop], Malformed | None]]] = [
        *SCENARIOS.get(number, ()),
        *MALFORMED.get(number, ()),
    ]
    plan.sort(key=lambda planned: planned[0], reverse=True)
    malformed = []
    while plan or shop.progress < 1:
        if plan and plan[-1][0] <= shop.progress:
            _, step = plan.pop()
            spoilt = step(shop)
            if spoilt is not None:
                malformed.append(spoilt)
        else:
            shop.trade()
    return malformed


def _change_table(
    table: Table, batches: int, events: Iterable[Event], malformed: Sequence[Malformed]
) -> list[list[RawRow]]:
    """Return the records that each batch brings to the change table."""
    positioned: list[list[tuple[int, list[RawRow]]]] = [[] for _ in range(batches)]
    for event in events:
        if event.table == table.name:
            records = change_records(table, event, _partition(event.batch))
            positioned[event.batch - 1].append((event.counter, records))
    for spoilt in malformed:
        if spoilt.event.table == table.name:
            records = change_records(table, spoilt.event, _partition(spoilt.batch))
            spoilt_records = [record | dict(spoilt.overrides) for record in records]
            positioned[spoilt.batch - 1].append((spoilt.event.counter, spoilt_records))

    delivered = []
    for batch in positioned:
        batch.sort(key=lambda item: item[0])
        delivered.append([record for _, records in batch for record in records])
    if table is ORDERS:
        reverse_one_pair(delivered[0])
        if batches > 1:
            positions = {each.change_seq for each in malformed}
            hold_back_an_update(table, delivered[0], delivered[1], positions)
    arrived = [repeat_some(records) for records in delivered]
    if table is CUSTOMERS and batches > 1:
        split_first_pair(arrived[0], arrived[1])
    for earlier, later in zip(delivered, arrived[1:], strict=False):
        deliver_again(table, earlier, later)
    return arrived


def _base_table(
    table: Table, states: list[dict[Key, Row]], events: Iterable[Event]
) -> list[list[RawRow]]:
    """Return the rows that each batch brings to the base table.

    A live table arrives whole. A frozen one arrives as it was when it was loaded; later inserts
    are added to it, updates and deletes are not applied, and a key that it holds stays as it is.
    """
    if table.base == "live":
        return [[base_row(table, row) for row in state.values()] for state in states[1:]]
    arriving = [[base_row(table, row) for row in states[0].values()]]
    arriving += [[] for _ in states[2:]]
    known = set(states[0])
    for event in events:
        if event.table == table.name and event.oper == "I" and event.after is not None:
            key = table.key_of(event.after)
            if key not in known:
                known.add(key)
                arriving[event.batch - 1].append(base_row(table, event.after))
    return arriving


def _partition(batch: int) -> str:
    start = batch_start(batch)
    return f"{start:%Y%m%dT%H%M%S}_{start + BATCH_LASTS:%Y%m%dT%H%M%S}"
