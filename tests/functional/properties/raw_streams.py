"""Random streams as records of Qlik change tables, with what only raw records can be.

Some records are delivered again, in the same batch or in a later one; the halves of some updates
come in two batches. LOBs, lost columns and gained columns are in the raw table as a source has
them. What must come of it is the oracle's, from the same changes.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from tests.oracle.history import LogRow
from tests.streams.shapes import Shape
from tests.streams.tables import (
    BATCHES,
    COLUMNS,
    Stream,
    StreamTable,
    without_columns,
)

NOON = datetime(2026, 3, 2, 12)
HEADERS = (
    "header__change_seq string, header__change_oper string, header__operation string, "
    "header__transaction_id string"
)
RECORD = f"{HEADERS}, " + ", ".join(f"{name} int" for name in COLUMNS)
WIDTH = 35

RAW_SHAPES = (
    Shape(
        "raw_frozen",
        base="frozen",
        events=((3, "truncate"),),
        ignores=("b",),
        good_clocks=True,
        cuts_transactions=True,
        reads_loads_late=True,
    ),
    Shape(
        "raw_plain",
        events=((3, "truncate"),),
        keep_deleted=True,
        lobs=("a",),
        gains=("c",),
        drops=("b",),
        moves=False,
        good_clocks=True,
    ),
    Shape(
        "raw_live",
        base="live",
        events=((3, "truncate"),),
        tracks=("a",),
        keep_deleted=True,
        good_clocks=True,
        reads_loads_late=True,
    ),
)
"""Without what change tables do not have: loads among the changes, and truncates with a scope."""


@dataclass(frozen=True)
class Record:
    """A raw record, and the batch in which it comes first."""

    batch: int
    values: tuple[Any, ...]


class RawStreams(StreamTable):
    """The streams of one shape, and their raw records."""

    def __init__(self, shape: Shape, count: int, seed: int) -> None:
        super().__init__(shape, count, seed)
        chooser = random.Random(seed)
        self.streams = [self._as_recorded(stream) for stream in self.streams]
        records = dict.fromkeys(self._records(chooser))
        self._delivered: list[list[Record]] = [[] for _ in range(BATCHES)]
        for record in records:
            for batch in range(record.batch, BATCHES + 1):
                copies = 1 if batch == record.batch else 0
                # a task that is started again delivers what it has delivered
                copies += chooser.random() < 0.1
                self._delivered[batch - 1] += [record] * copies

    def delivered(self, batch: int) -> list[tuple[Any, ...]]:
        """The records that a batch adds to the raw table; see RECORD."""
        return [record.values for record in self._delivered[batch - 1]]

    def raw_columns(self, batch: int) -> list[str]:
        """The data columns that the raw table has in a batch."""
        absent = self.shape.gains if batch < self.gained_with else ()
        gone = self.shape.drops if batch >= self.dropped_with else ()
        return [name for name in COLUMNS if name not in (*absent, *gone)]

    def base_rows(self) -> list[tuple[Any, ...]]:
        """The rows of the base table, as the first run reads it."""
        return [
            self._image(stream.number, row.data)
            for stream in self.streams
            for row in stream.log
            if row.change_oper == "L" and row.data is not None
        ]

    def _as_source_has(self, row: LogRow, batch: int) -> LogRow:
        """A column that came later is NULL in each record that was written before it came."""
        is_older = int(row.change_seq) < ([0, *self._cuts])[self.gained_with - 1]
        absent = self.shape.gains if batch < self.gained_with or is_older else ()
        row = without_columns(row, absent, self.shape.drops if batch >= self.dropped_with else ())
        # change tables have no image before a delete
        if row.change_oper == "D":
            row = replace(row, before=None, before_known_columns=None)
        # a list of known columns that was recorded before a column came does not have it
        recorded_without = self.shape.gains if batch < self.gained_with else ()
        return replace(
            row,
            known_columns=less(row.known_columns, recorded_without),
            before_known_columns=less(row.before_known_columns, recorded_without),
        )

    def _as_recorded(self, stream: Stream) -> Stream:
        """Positions and times as change tables have them, where no two streams share a position."""
        log = []
        for row in stream.log:
            position = int(row.change_seq)
            if row.change_oper == "L":
                log.append(replace(row, change_seq="0" * WIDTH, changed_at=None, load_id="initial"))
                continue
            moment = NOON + timedelta(seconds=position)
            own = 0 if row.change_oper == "T" else stream.number + 1
            seq = f"{moment:%Y%m%d%H%M%S}00{position * 10_000 + own:019d}"
            log.append(replace(row, change_seq=seq, changed_at=moment))
        # the database's states have other positions
        return replace(stream, log=log, states=[])

    def _records(self, chooser: random.Random) -> Iterator[Record]:
        for stream in self.streams:
            for row, batch in zip(stream.log, stream.batches, strict=True):
                if row.change_oper == "L":
                    continue
                number = None if row.change_oper == "T" else stream.number
                if row.change_oper == "U":
                    later = min(batch + (chooser.random() < 0.1), self._last_batch(batch))
                    yield Record(later, self._record(number, row, "B"))
                yield Record(batch, self._record(number, row, row.change_oper))

    def _last_batch(self, batch: int) -> int:
        """Up to which batch another half may come: a source that loses a column sends no more."""
        changes = [place for place in (self.gained_with, self.dropped_with) if place > batch]
        return min([BATCHES, *(place - 1 for place in changes)])

    def _record(self, stream: int | None, row: LogRow, oper: str) -> tuple[Any, ...]:
        image = row.before if oper == "B" else row.data
        values = self._image(stream, image)
        # what a record does not know is NULL in it
        known = tuple(None if value == -1 else value for value in values)
        operation = "TRUNCATE" if oper == "T" else ""
        return (row.change_seq, oper, operation, row.transaction_id, *known)


def less(known: AbstractSet[str] | None, names: Iterable[str]) -> AbstractSet[str] | None:
    return None if known is None else known - set(names)
