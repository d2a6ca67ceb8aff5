"""Many random streams in one table: its change log, in batches, and what must come of it.

A stream is a little database of its own (tests/oracle/streams.py); in the table its number is the
first key column. Truncates and loads concern the whole table, so all streams of a table share
their positions: the stream's counter is set forward to them.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from tests.oracle.field_changes import build_field_changes
from tests.oracle.history import LogRow, Row, TableOptions, Version, build_history
from tests.oracle.streams import (
    KEY_CHANGES,
    OPERATIONS,
    OPTIONS,
    START,
    Writer,
    hide_unchanged_columns,
    share_positions,
)

BATCHES = 4
"""The first builds, the second and fourth bring newer changes only, the third late ones as well."""

EPOCHS = 5
EPOCH_LASTS = 10_000
FIRST_LOAD = 10
FIRST_BATCH_AT = datetime(2024, 4, 1)

KEY = ["stream", "id"]
COLUMNS = ["stream", "id", "a", "b", "c"]
IMAGE = "stream int, id int, a int, b int, c int"
LOG_SCHEMA = (
    f"{IMAGE}, change_seq string, change_oper string, changed_at timestamp, recorded_at timestamp, "
    "transaction_id string, known_columns array<string>, before_known_columns array<string>, "
    f"truncate_scope map<string,string>, load_id string, load_rows bigint, before struct<"
    + ", ".join(f"{column.replace(' ', ': ')}" for column in IMAGE.split(", "))
    + ">"
)


@dataclass(frozen=True)
class Shape:
    """What the streams of a table have in common.

    events: what happens to the whole table after an epoch: epoch -> "truncate", "truncate some"
        (the rows whose `a` is 1) or "load".
    has_late: whether some changes of the first two batches come with the third.
    hides: whether updates leave columns out that they do not change, or their before image.
    ignores: columns that make no version.
    loses: whether some changes are missing from the log, as after a purge.
    moves: whether rows change their keys.
    good_clocks: whether times never run back: only then newer changes take the narrow path, and
        late ones are read without what came before them.
    cuts_transactions: whether a transaction may be in two batches.
    """

    name: str
    base: Literal["frozen", "live"] | None = None
    events: tuple[tuple[int, str], ...] = ()
    has_late: bool = True
    hides: bool = False
    with_transaction_ids: bool = True
    before_images: bool = True
    ignores: tuple[str, ...] = ()
    loses: bool = False
    moves: bool = True
    good_clocks: bool = False
    cuts_transactions: bool = False

    @property
    def options(self) -> TableOptions:
        """The settings as the oracle takes them."""
        tracked = [column for column in OPTIONS.tracked if column not in self.ignores]
        return replace(
            OPTIONS, tracked=tracked, before_images=self.before_images, base_kind=self.base
        )


SHAPES = (
    Shape("in_order", has_late=False),
    Shape("on_time", has_late=False, good_clocks=True, cuts_transactions=True),
    Shape("late", cuts_transactions=True),
    Shape("late_and_plain", events=((0, "truncate"),), moves=False, good_clocks=True),
    Shape("truncates", events=((1, "truncate"), (3, "truncate"))),
    Shape(
        "truncates_in_order",
        events=((0, "truncate"), (2, "truncate")),
        has_late=False,
        good_clocks=True,
    ),
    Shape("frozen", base="frozen", events=((2, "truncate"),), has_late=False, good_clocks=True),
    Shape("frozen_late", base="frozen", with_transaction_ids=False),
    Shape("live", base="live", has_late=False, good_clocks=True),
    Shape("live_late", base="live", events=((3, "truncate"),), cuts_transactions=True),
    Shape("live_late_clocks", base="live", events=((3, "truncate"),), good_clocks=True),
    Shape("reloads", events=((1, "load"), (3, "load")), with_transaction_ids=False),
    Shape("live_reloads", base="live", events=((2, "load"),), has_late=False),
    Shape("unknown", events=((2, "truncate"),), hides=True),
    Shape("unknown_in_order", has_late=False, hides=True, good_clocks=True),
    Shape("unknown_ignored", events=((1, "truncate"), (3, "load")), hides=True, ignores=("b", "c")),
    Shape("ignored", events=((1, "truncate"),), ignores=("c",)),
    Shape("lossy", events=((3, "load"),), loses=True, hides=True),
    Shape("scoped", events=((0, "truncate some"), (2, "truncate some"))),
    Shape(
        "scoped_ignored",
        events=((0, "truncate some"), (2, "truncate some")),
        ignores=("a",),
        good_clocks=True,
    ),
    Shape("no_before_images", events=((2, "truncate"),), before_images=False),
    Shape("no_before_images_in_order", has_late=False, before_images=False, good_clocks=True),
)


@dataclass(frozen=True)
class Stream:
    """A stream's log, and for each of its rows the batch (from 1) in which it arrives."""

    number: int
    log: list[LogRow]
    batches: list[int]


def taken_back() -> Iterator[tuple[LogRow, int]]:
    """Changes with their batch: two rows of which a late delete leaves no version, not even one."""
    values = {"a": 1, "b": 1, "c": 1}
    begun = LogRow("00000100", "I", {"id": 90, **values}, START)
    yield begun, 1
    yield replace(begun, change_oper="D", before=begun.data), 3
    begun = LogRow("00000110", "I", {"id": 91, **values}, START)
    yield begun, 1
    yield replace(begun, change_oper="D", before=begun.data), 3
    changed = {"id": 91, **values, "a": 2}
    updated = LogRow("00000111", "U", changed, START, before=begun.data)
    yield updated, 1
    yield replace(updated, change_oper="D", before=changed), 3


class StreamTable:
    """The streams of one shape."""

    def __init__(self, shape: Shape, count: int, seed: int) -> None:
        self.shape = shape
        chooser = random.Random(seed)
        quarters = sorted(chooser.sample(range(1, EPOCHS * 4), BATCHES - 1))
        # transactions begin with the quarters of an epoch; a load comes whole
        inside = FIRST_LOAD + 1 + chooser.randint(1, 3) if shape.cuts_transactions else 0
        self._cuts = [quarter * EPOCH_LASTS // 4 + inside for quarter in quarters]
        self.streams = [self._stream(number, seed * 100_000 + number) for number in range(count)]

    def _stream(self, number: int, seed: int) -> Stream:
        writer = Writer(seed, self.shape.with_transaction_ids, self.shape.good_clocks)
        database, chooser = writer.database, writer.random
        loaded: dict[Any, Row] = {}
        if self.shape.base:
            for _ in range(chooser.randint(0, 4)):
                writer.insert()
            database.log.clear()
            loaded = dict(database.rows)
            database.skip_to(FIRST_LOAD)
            database.load("initial", rows=[])
        operations = ["insert", *OPERATIONS]
        if not self.shape.moves:
            operations = [name for name in operations if name not in KEY_CHANGES]
        events = dict(self.shape.events)
        for epoch in range(EPOCHS):
            for quarter in range(4):
                database.skip_to(epoch * EPOCH_LASTS + quarter * EPOCH_LASTS // 4 + FIRST_LOAD + 1)
                writer.transaction(*operations)
            if epoch in events:
                database.skip_to((epoch + 1) * EPOCH_LASTS)
                moment = START + timedelta(minutes=epoch)
                if self.shape.good_clocks:
                    moment = START + timedelta(seconds=writer.transactions)
                database.begin(f"event {epoch}", moment)
                if events[epoch].startswith("truncate"):
                    database.truncate({"a": 1} if events[epoch] == "truncate some" else None)
                    database.commit()
                else:
                    database.load(f"load {epoch}")
        log = share_positions(database.log, database.states, chooser)
        if self.shape.loses:
            log = [row for row in log if row.change_oper in "TL" or chooser.random() < 0.85]
        if self.shape.base == "live":
            state = chooser.choice(database.states)
            log += [replace(log[0], data=row, load_rows=None) for row in state.rows.values()]
        elif self.shape.base == "frozen":
            for row in database.log:
                if row.change_oper == "I" and row.data is not None:
                    loaded.setdefault((row.data["id"],), row.data)
            log += [replace(log[0], data=row, load_rows=None) for row in loaded.values()]
        if self.shape.hides:
            log = hide_unchanged_columns(log, seed)
        if not self.shape.before_images:
            log = [replace(row, before=None) for row in log]
        batches = [self._batch(row, chooser) for row in log]
        if number == 0 and self.shape.has_late:
            for row, batch in taken_back():
                log.append(row if self.shape.before_images else replace(row, before=None))
                batches.append(batch)
        return Stream(number, log, batches)

    def _batch(self, row: LogRow, chooser: random.Random) -> int:
        batch = 1 + sum(int(row.change_seq) >= cut for cut in self._cuts)
        is_change = row.change_oper not in ("L", "T")
        if self.shape.has_late and is_change and batch < 3 and chooser.random() < 0.2:
            return 3
        return batch

    def rows(self, batch: int) -> Iterator[tuple[Any, ...]]:
        """The log's rows of a batch, as LOG_SCHEMA has them; what streams share is there once."""
        shared: dict[tuple[str, str], LogRow] = {}
        load_rows: dict[tuple[str, str], int] = defaultdict(int)
        for stream in self.streams:
            for row, of_batch in zip(stream.log, stream.batches, strict=True):
                place = (row.change_seq, row.change_oper)
                if row.change_oper == "L" and row.data is not None and of_batch == batch:
                    load_rows[place] += 1
                if of_batch != batch:
                    continue
                if row.data is None:
                    shared[place] = row
                else:
                    yield self._row(stream.number, row, batch)
        for place, row in shared.items():
            rows = load_rows[place] if row.change_oper == "L" else None
            yield self._row(None, replace(row, load_rows=rows), batch)

    def _row(self, stream: int | None, row: LogRow, batch: int) -> tuple[Any, ...]:
        return (
            *self._image(stream, row.data),
            row.change_seq,
            row.change_oper,
            row.changed_at,
            FIRST_BATCH_AT + timedelta(hours=batch),
            row.transaction_id,
            self._known(row.known_columns),
            self._known(row.before_known_columns),
            None if row.truncate_scope is None else dict(row.truncate_scope),
            row.load_id,
            row.load_rows,
            None if row.before is None else self._image(stream, row.before),
        )

    def _image(self, stream: int | None, data: Row | None) -> tuple[Any, ...]:
        if data is None:
            return (None,) * 5
        values = [data.get(column) for column in OPTIONS.columns]
        # an unknown value is a wrong one, so that whoever reads it is found out
        return (stream, *(-1 if isinstance(value, str) else value for value in values))

    @staticmethod
    def _known(known: Any) -> list[str] | None:
        return None if known is None else ["stream", *sorted(known)]

    def history_of(self, stream: Stream) -> list[Version]:
        """What the oracle makes of a stream."""
        return build_history(stream.log, self.shape.options)

    def rows_of(self, stream: Stream, history: list[Version]) -> list[dict[str, Any]]:
        """A stream's history as rows of the history table, without id and recorded_at."""
        return [{"stream": stream.number, **version.as_row()} for version in history]

    def expected_history(self, stream: Stream) -> list[dict[str, Any]]:
        """What a stream's rows in the history table must be, without id and recorded_at."""
        return self.rows_of(stream, self.history_of(stream))

    def expected_field_changes(self, stream: Stream) -> list[dict[str, Any]]:
        """The rows of the field-changes table, without recorded_at."""
        changes = build_field_changes(stream.log, self.history_of(stream), self.shape.options)
        rows = []
        for change in changes:
            row = change.as_row(OPTIONS.key)
            if row["previous_key"] is not None:
                row["previous_key"] = {"stream": stream.number, **row["previous_key"]}
            rows.append({"stream": stream.number, **row})
        return rows
