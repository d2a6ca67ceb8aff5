"""Many random streams in one table: its change log, in batches, and what must come of it.

A stream is a little database of its own (tests/oracle/streams.py); in the table its number is the
first key column. Truncates and loads concern the whole table, so all streams of a table share
their positions: the stream's counter is set forward to them.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from tests.oracle.base_tables import has_one_reading, read_late
from tests.oracle.current import build_current, build_current_with_deleted
from tests.oracle.database import State
from tests.oracle.field_changes import build_field_changes
from tests.oracle.history import (
    LogRow,
    Row,
    Version,
    as_of,
    build_history,
    key_of,
    previous_key_of,
)
from tests.oracle.streams import (
    KEY_CHANGES,
    OPERATIONS,
    OPTIONS,
    START,
    Writer,
    hide_unchanged_columns,
    leave_lobs_out,
    share_positions,
)
from tests.streams.shapes import Shape

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
class Stream:
    """A stream's log, and for each of its rows the batch (from 1) in which it arrives.

    `states`: what the simulated database held, where the log has all of it; else none.
    """

    number: int
    log: list[LogRow]
    batches: list[int]
    states: list[State]


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


def without_columns(row: LogRow, absent: Iterable[str], unknown: Iterable[str]) -> LogRow:
    """A row in which some columns are NULL, for its table does not have them, and some unknown."""
    known = set(OPTIONS.columns).difference(unknown)
    values = dict.fromkeys(absent) | dict.fromkeys(unknown, "unknown")
    if row.data is not None and values:
        row = replace(row, data={**row.data, **values})
        if unknown and row.change_oper in "IUL":
            row = replace(row, known_columns=known.intersection(row.known_columns or known))
    if row.before is not None and values:
        row = replace(row, before={**row.before, **values})
        if unknown:
            before_known = known.intersection(row.before_known_columns or known)
            row = replace(row, before_known_columns=before_known)
    return row


def _with_one_less(row: LogRow, chooser: random.Random) -> LogRow:
    """Half of the inserts and updates lack a column; not those that change a key."""
    is_kept = row.change_oper not in "IU" or previous_key_of(row, OPTIONS) is not None
    if is_kept or chooser.random() < 0.5:
        return row
    return without_columns(row, (), (chooser.choice(("a", "b", "c")),))


class StreamTable:
    """The streams of one shape."""

    def __init__(self, shape: Shape, count: int, seed: int) -> None:
        self.shape = shape
        chooser = random.Random(seed)
        quarters = sorted(chooser.sample(range(1, EPOCHS * 4), BATCHES - 1))
        # transactions begin with the quarters of an epoch; a load comes whole
        inside = FIRST_LOAD + 1 + chooser.randint(1, 3) if shape.cuts_transactions else 0
        self._cuts = [quarter * EPOCH_LASTS // 4 + inside for quarter in quarters]
        # the batches with which columns come and go
        self.gained_with = chooser.choice([2, 3]) if shape.gains else 1
        self.dropped_with = chooser.choice([2, 3]) if shape.drops else BATCHES + 1
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
        if self.shape.begins_midway:
            for key in chooser.sample(range(8), chooser.randint(2, 6)):
                # a value of its own: an equal row that leaves cannot be told from the one that came
                database.insert({"id": key, "a": 10 + key, "b": 1, "c": None})
            database.log.clear()
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
                    rows: list[Row] | None = [] if self.shape.reads_loads_late else None
                    database.load(f"load {epoch}", rows)
        log = share_positions(database.log, database.states, chooser)
        hides = self.shape.hides or self.shape.hides_at_first
        is_told = not (self.shape.loses or hides or not self.shape.before_images)
        if self.shape.gains and self.shape.cuts_transactions:
            is_told = False  # no source gains a column inside a transaction
        if self.shape.loses:
            log = [row for row in log if row.change_oper in "TL" or chooser.random() < 0.85]
        if self.shape.base and self.shape.reads_loads_late:
            loads, are_told = read_late(self.shape.base, log, database.states, chooser)
            is_told = is_told and are_told
            log += loads
        elif self.shape.base == "live":
            state = chooser.choice(database.states)
            log += [replace(log[0], data=row, load_rows=None) for row in state.rows.values()]
        elif self.shape.base == "frozen":
            for row in database.log:
                if row.change_oper == "I" and row.data is not None:
                    loaded.setdefault((row.data["id"],), row.data)
            log += [replace(log[0], data=row, load_rows=None) for row in loaded.values()]
        if self.shape.base and not self.shape.reads_loads_late:
            # read at the end: after a truncate the base no longer has what was loaded
            is_told = is_told and not self.shape.events
            is_told = is_told and (self.shape.base == "live" or has_one_reading(log))
        if self.shape.hides:
            log = hide_unchanged_columns(log, seed)
        log = leave_lobs_out(log, self.shape.lobs, self.shape.sends_lobs_of_moves)
        if not self.shape.before_images:
            log = [replace(row, before=None) for row in log]
        batches = [self._batch(row, chooser) for row in log]
        if number == 0 and self.shape.has_late and not self.shape.hides_at_first:
            for row, batch in taken_back():
                log.append(row if self.shape.before_images else replace(row, before=None))
                batches.append(batch)
        log = [self._as_source_has(row, batch) for row, batch in zip(log, batches, strict=True)]
        if self.shape.hides_at_first:
            log = [
                _with_one_less(row, chooser) if batch == 1 else row
                for row, batch in zip(log, batches, strict=True)
            ]
        return Stream(number, log, batches, database.states if is_told else [])

    def _as_source_has(self, row: LogRow, batch: int) -> LogRow:
        """The row as it is read with a batch: without a column that came later, or is gone."""
        absent = self.shape.gains if batch < self.gained_with else ()
        # what comes late was written by a source that did not have the column
        is_older = int(row.change_seq) < ([0, *self._cuts])[self.gained_with - 1]
        unknown = self.shape.gains if not absent and is_older else ()
        unknown += self.shape.drops if batch >= self.dropped_with else ()
        return without_columns(row, absent, unknown)

    def _batch(self, row: LogRow, chooser: random.Random) -> int:
        batch = 1 + sum(int(row.change_seq) >= cut for cut in self._cuts)
        is_change = row.change_oper not in ("L", "T")
        if self.shape.has_late_events and not is_change:
            return min(batch + 1, BATCHES)
        # changes that lack columns are older than all late ones
        first = 2 if self.shape.hides_at_first else 1
        if self.shape.has_late and is_change and first <= batch < 3 and chooser.random() < 0.2:
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
        # an unknown value is a wrong one, so that a test fails if it is read
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

    def differing_state(self, stream: Stream, history: list[Version]) -> str:
        """Where history differs from what the simulated database held; empty if nowhere."""
        for state in stream.states:
            found = as_of(history, state.change_seq, OPTIONS)
            rows = state.rows
            if self.shape.begins_midway:
                named = self._named(stream, state.change_seq)
                rows = {key: row for key, row in rows.items() if key in named}
            if self._told(found) != self._told(rows):
                return f"stream {stream.number} at {state.change_seq}: {found}, not {rows}"
        return ""

    @staticmethod
    def _named(stream: Stream, change_seq: str) -> set[Any]:
        """Keys that changes up to a position name."""
        rows = [row for row in stream.log if row.data and row.change_seq <= change_seq]
        keys = {key_of(row.data, OPTIONS) for row in rows if row.data}
        return keys | {previous_key_of(row, OPTIONS) for row in rows}

    def _told(self, rows: dict[Any, Row]) -> dict[Any, Row]:
        """The columns whose values history has at any time."""
        names = [
            name
            for name in OPTIONS.columns
            if name in (*OPTIONS.key, *self.shape.options.tracked)
            and name not in self.shape.partly_known
        ]
        return {key: {name: row[name] for name in names} for key, row in rows.items()}

    def expected_current(self, stream: Stream) -> list[dict[str, Any]]:
        """What a stream's rows in the current table must be, without recorded_at."""
        history = self.history_of(stream)
        if self.shape.keep_deleted:
            rows = build_current_with_deleted(history, OPTIONS.key)
        else:
            rows = build_current(history)
        return [{"stream": stream.number, **row} for row in rows]

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
