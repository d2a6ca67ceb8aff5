"""A simulated database: it runs transactions and writes down every change that they make.

What it holds after a batch is the truth that the history tables are compared with.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from afterimage_demo.tables import TABLES, Key, Row, Table, Value

Oper = Literal["I", "U", "D", "T", "B"]
"""Insert, update, delete, truncate; `B`, a before image alone, occurs in a faulty record only."""

FIRST_COUNTER = 1_000_000
REPLICATION_DELAY = timedelta(seconds=1, milliseconds=500)


@dataclass(frozen=True)
class Event:
    """One logical change.

    before, after: the whole row; NULL where there is none (insert, delete, truncate).
    transaction_number: counts from 1; all changes of a transaction share it.
    committed_at: when the transaction was committed, in whole hundredths of a second.
    counter: position in the order of all changes of the replication task.
    batch: in which delivery the change becomes visible, from 1.
    """

    table: str
    oper: Oper
    before: Row | None
    after: Row | None
    transaction_number: int
    committed_at: datetime
    counter: int
    batch: int

    @property
    def change_seq(self) -> str:
        """35 digits: commit time to the hundredth of a second, then the 19-digit counter."""
        hundredths = self.committed_at.microsecond // 10_000
        return f"{self.committed_at:%Y%m%d%H%M%S}{hundredths:02d}{self.counter:019d}"


class Database:
    """The tables' rows, and the events that led to them.

    `pools` lists, per table, every key that was ever used: a stale one is not in `rows` any more.
    """

    def __init__(self) -> None:
        self.rows: dict[str, dict[Key, Row]] = {name: {} for name in TABLES}
        self.pools: dict[str, list[Key]] = defaultdict(list)
        self.events: list[Event] = []
        self.batch = 0
        self.records = 0
        self.transaction_number = 0
        self._counter = FIRST_COUNTER
        self._committed_at: datetime | None = None

    @property
    def committed_at(self) -> datetime:
        """The commit time of the running transaction."""
        if self._committed_at is None:
            raise RuntimeError("no transaction has begun")
        return self._committed_at

    def load(self, table: str, row: Row) -> None:
        """Add a row that was there before the first change was recorded."""
        self._put(TABLES[table], row)

    def begin(self, committed_at: datetime) -> None:
        """Begin a transaction; commit times never run backwards."""
        if self._committed_at is not None and committed_at < self._committed_at:
            raise ValueError(f"commit time {committed_at} is before {self._committed_at}")
        self._committed_at = committed_at
        self.transaction_number += 1

    def insert(self, table: str, row: Row) -> Event:
        """Insert a row; its key must be free."""
        spec = TABLES[table]
        if spec.key_of(row) in self.rows[table]:
            raise ValueError(f"{table}: key {spec.key_of(row)} exists")
        after = dict(row) | self._filled(spec)
        self._put(spec, after)
        return self._log(table, "I", None, after)

    def update(self, table: str, key: Key, **changes: Value) -> Event | None:
        """Set columns of a row, its key too; an update that changes nothing is not logged."""
        spec = TABLES[table]
        before = self.rows[table][key]
        after = dict(before) | changes | self._filled(spec)
        if after == before:
            return None
        if spec.key_of(after) != key:
            if spec.key_of(after) in self.rows[table]:
                raise ValueError(f"{table}: key {spec.key_of(after)} exists")
            del self.rows[table][key]
        self._put(spec, after)
        return self._log(table, "U", before, after)

    def swap_keys(self, table: str, first: Key, second: Key) -> None:
        """Let two rows change their keys, as a database with deferred constraints allows."""
        spec = TABLES[table]
        before = [self.rows[table].pop(first), self.rows[table].pop(second)]
        for old_row, new_key in zip(before, (second, first), strict=True):
            after = dict(old_row) | dict(zip(spec.key, new_key, strict=True)) | self._filled(spec)
            self._put(spec, after)
            self._log(table, "U", old_row, after)

    def delete(self, table: str, key: Key) -> Event:
        """Delete a row."""
        return self._log(table, "D", self.rows[table].pop(key), None)

    def truncate(self, table: str) -> Event:
        """Delete all rows in one statement, which the log holds as one record."""
        self.rows[table].clear()
        self.pools[table].clear()
        return self._log(table, "T", None, None)

    def phantom(self, table: str, oper: Oper, image: Row) -> Event:
        """Take a place in the order of changes for a record of something that never happened."""
        return self._event(
            table, oper, image if oper in "BD" else None, image if oper == "I" else None
        )

    def _put(self, table: Table, row: Row) -> None:
        key = table.key_of(row)
        if key not in self.rows[table.name]:
            self.pools[table.name].append(key)
        self.rows[table.name][key] = row

    def _filled(self, table: Table) -> dict[str, Value]:
        return dict.fromkeys(table.filled_columns, self.committed_at + REPLICATION_DELAY)

    def _log(self, table: str, oper: Oper, before: Row | None, after: Row | None) -> Event:
        event = self._event(table, oper, before, after)
        self.events.append(event)
        return event

    def _event(self, table: str, oper: Oper, before: Row | None, after: Row | None) -> Event:
        # A before image is a record of its own and counts as one, although it is stored with
        # the change number of its update.
        records = 2 if oper == "U" and TABLES[table].before_images else 1
        self._counter += records
        self.records += records
        return Event(
            table,
            oper,
            before,
            after,
            self.transaction_number,
            self.committed_at,
            self._counter,
            self.batch,
        )
