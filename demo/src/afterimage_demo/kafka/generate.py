"""Generates the web shop's demo: `generate_shop()` is the only function that other code needs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from afterimage_demo.database import Event
from afterimage_demo.delivery import repeat_some
from afterimage_demo.generate import DemoData, generate
from afterimage_demo.kafka.malformed import Malformed, conflicting_copy, malformed
from afterimage_demo.kafka.messages import (
    Message,
    Place,
    change_message,
    metadata,
    refresh_message,
    tombstone,
)
from afterimage_demo.kafka.tables import CARTS, TABLES, ShopTable
from afterimage_demo.tables import Key, Row
from afterimage_demo.traffic import batch_start

LOADED_BEFORE = timedelta(minutes=30)
"""A full load is sent so long before the day's first changes."""

LATE_PARTITION = 1
# of the changes of a delivery: what its late partition brings with the next one; what is lost
_LATE, _LOST = 0.8, 0.8


@dataclass(frozen=True)
class ShopData:
    """The demo's deliveries, and what is true of them.

    deliveries: messages in the order in which they are sent.
    truth: per table of the shop, what it holds after the last delivery, by key.
    rejected: (table, change_seq or None, reason) -> how many messages.
    """

    deliveries: tuple[tuple[Message, ...], ...]
    truth: Mapping[str, Mapping[Key, Row]]
    rejected: Counter[tuple[str, str | None, str]]


def generate_shop(scale: int = 1, seed: int = 7, batches: int = 2) -> ShopData:
    """Generate the demo's data; the same arguments give the same data, whatever the clock says.

    scale: multiplies all sizes.
    batches: how many deliveries, a day each; what is planned is in the first two.
    """
    data = generate(scale=scale, seed=seed, batches=batches)
    places = _places(data.events)
    deliveries: list[list[Message]] = [[] for _ in range(batches)]
    for table in TABLES.values():
        for delivery, messages in zip(deliveries, _of_table(table, data, places), strict=True):
            delivery.extend(messages)
    spoilt = malformed(batch_start(1))
    deliveries[0].extend(_sent(bad, batch_start(1)) for bad in spoilt)
    if batches > 1:
        copy = conflicting_copy(CARTS, _first_insert(deliveries[0]))
        spoilt.append(copy)
        deliveries[1].append(_sent(copy, batch_start(2)))
    return ShopData(
        deliveries=tuple(map(tuple, deliveries)),
        truth={
            name: {key: table.image(row) for key, row in data.truth[table.source][-1].items()}
            for name, table in TABLES.items()
        },
        rejected=Counter((bad.table.name, bad.change_seq, bad.reason) for bad in spoilt),
    )


def _of_table(table: ShopTable, data: DemoData, places: Mapping[int, Place]) -> list[list[Message]]:
    """The messages of a table, by delivery.

    A partition that runs late brings the end of a delivery's changes with the next one. The first
    and the last changes of a delivery are sent again with the next one.
    """
    batches = len(data.batches)
    changes: list[list[Message]] = []
    for number in range(1, batches + 1):
        events = [e for e in data.events if e.table == table.source and e.batch == number]
        if table.is_reloaded and number == 1 < batches:
            del events[round(len(events) * _LOST) :]
        changes.append(_changes(table, events, places))
    delivered: list[list[Message]] = []
    late: list[Message] = []
    for number, own in enumerate(changes, 1):
        messages: list[Message] = []
        loaded_at = batch_start(number) - LOADED_BEFORE
        if number == 1:
            if table.form == "avro_envelope":
                messages.append(metadata(table, 1, loaded_at))
            messages += repeat_some(_load(table, data, 0, loaded_at))
        else:
            earlier = changes[number - 2]
            messages += [earlier[0], *earlier[-3:], *late]
        if table.is_reloaded and number == 2:
            messages += _load(table, data, 1, loaded_at)
        if table.added and number == 2:
            messages.append(metadata(table, 2, batch_start(2)))
        on_time = repeat_some(own)
        late = []
        if number < batches:
            place = round(len(on_time) * _LATE)
            late = [m for m in on_time[place:] if m.partition == LATE_PARTITION]
            on_time = on_time[:place] + [
                m for m in on_time[place:] if m.partition != LATE_PARTITION
            ]
        delivered.append(messages + on_time)
    return delivered


def _load(table: ShopTable, data: DemoData, state: int, at: datetime) -> list[Message]:
    """A full load of what the table holds after a delivery; 0 is before the first one."""
    rows = data.truth[table.source][state].values()
    return [refresh_message(table, row, at) for row in rows]


def _changes(
    table: ShopTable, events: Sequence[Event], places: Mapping[int, Place]
) -> list[Message]:
    messages = []
    for number, event in enumerate(events):
        is_new = table.added and event.batch > 1 and (event.batch > 2 or number * 2 > len(events))
        version = 2 if is_new else 1
        message = change_message(table, event, places[event.counter], version)
        messages.append(message)
        if event.oper == "D" and table.form.startswith("json"):
            messages.append(tombstone(message))
    return messages


def _places(events: Sequence[Event]) -> dict[int, Place]:
    """Each event's place in its transaction, by its counter."""
    sources = {table.source for table in TABLES.values()}
    of_transaction: dict[int, list[int]] = defaultdict(list)
    for event in events:
        if event.table in sources:
            of_transaction[event.transaction_number].append(event.counter)
    return {
        counter: Place(number, number == len(counters))
        for counters in of_transaction.values()
        for number, counter in enumerate(counters, 1)
    }


def _sent(bad: Malformed, at: datetime) -> Message:
    return Message(bad.table.topic, 0, None, bad.value, at)


def _first_insert(messages: Sequence[Message]) -> Message:
    return next(
        message
        for message in messages
        if message.topic == CARTS.topic and message.headers.get("operation") == "INSERT"
    )
