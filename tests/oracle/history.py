"""History of one table from its change log: sort the log, fold over it, one change at a time.

Data model
----------
`LogRow`: one change of the log (a before image is folded into its update). `data` holds every data
column, or is None for a truncate and for the marker row of a load. A column outside `known_columns`
is unknown, whatever `data` says; key columns are always known.

`TableOptions`: the key, the columns and the settings of the table.

`Version`: one row of the history: what was true of one key between two changes. Timestamps are UTC.

Inside the fold an *image* is a dict of the known columns only: an unknown column is absent from it.
So one image completes another by `{**older, **newer}`.

Rules
-----
R1  order: change_seq, then T, L, I, U, D
R2  I, L and U are upserts; the first one without an open version opens one
R3  an upsert that differs in a tracked column closes the open version and opens the next
R4  an upsert that does not differ writes its untracked columns into the open version
R5  a delete closes; on a key without an open version it shows nothing
R6  a truncate closes every open version in its scope
R7  a key change closes the old key and opens the new one, always; one transaction may permute keys
    of rows that were never named before, too, if their before images differ
R8  a load is a comparison with the open versions; frozen and live base tables are put back first
R9  an unknown column takes the value that was open before it
R10 the time of a boundary never runs back

Readings of the rules that a reader may want to know
----------------------------------------------------
- `changed_columns` is decided when a version opens, from the values as they are stored at that
  moment (unknown = NULL). Filling an unknown column in place later does not touch it.
- An interval of change_seq is never empty. An insert and an update of one key at one change_seq
  are one upsert, of the insert's operation and with the update's values; with a delete they are
  that delete. A load's row at the very change_seq of an upsert is amended by it in place. A close
  at the change_seq of an opening takes the opening back; the version before is closed by it.
- A displaced row that leaves (R7) carries its own unknown columns (R9), not those of the row that
  displaced it. Several rows displaced from one key leave in the order in which they were displaced.
- Without transaction ids, key changes with one changed_at count as one transaction, also those
  whose changed_at is NULL. A key waits for displaced rows of one transaction only: that of the
  newest arrival.
- A truncate with a scope does not reach a version whose scope column is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any, Literal, TypeAlias

Row: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[Any, ...]
Image: TypeAlias = dict[str, Any]

OPERATION_ORDER = {"T": 0, "L": 1, "I": 2, "U": 3, "D": 4}


@dataclass(frozen=True)
class LogRow:
    """One change of the log; see the top of this file.

    `known_columns` and `before_known_columns`: None = all columns are known.
    `truncate_scope`: column -> value as text; None = the whole table.
    `load_rows`: only on the marker row of a load (change_oper L, data None).
    """

    change_seq: str
    change_oper: str
    data: Row | None = None
    changed_at: datetime | None = None
    transaction_id: str | None = None
    known_columns: AbstractSet[str] | None = None
    before: Row | None = None
    before_known_columns: AbstractSet[str] | None = None
    truncate_scope: Mapping[str, str | None] | None = None
    load_id: str | None = None
    load_rows: int | None = None


@dataclass(frozen=True)
class TableOptions:
    """Settings of one table.

    `key`: key columns. `columns`: all data columns in table order, the key included.
    `tracked`: the columns whose difference opens a version.
    `before_images`: whether the source stores them; if not, old values come from history.
    `base_kind`: how the rows of a load are put back to load time (R8); None = they are as loaded.
    """

    key: Sequence[str]
    columns: Sequence[str]
    tracked: Sequence[str]
    before_images: bool = True
    base_kind: Literal["frozen", "live"] | None = None
    beginning_of_time: datetime = datetime(1900, 1, 1)


@dataclass
class Version:
    """One row of the history, without its surrogate key and without recorded_at.

    `data` holds every data column, NULL (None) where unknown. Lists are in table column order.
    """

    data: Row
    valid_from: datetime
    valid_from_seq: str
    opened_by: str
    changed_columns: list[str] | None
    unknown_columns: list[str] | None
    transaction_id: str | None
    valid_to: datetime | None = None
    valid_to_seq: str | None = None
    closed_by: str | None = None
    closed_by_transaction_id: str | None = None

    @property
    def is_current(self) -> bool:
        """True while nothing has closed the version."""
        return self.valid_to_seq is None

    def as_row(self) -> Row:
        """Return the flat table row: the data columns, then the others by their column names."""
        return {
            **self.data,
            "valid_from": self.valid_from,
            "valid_to": self.valid_to,
            "valid_from_seq": self.valid_from_seq,
            "valid_to_seq": self.valid_to_seq,
            "is_current": self.is_current,
            "opened_by": self.opened_by,
            "closed_by": self.closed_by,
            "changed_columns": self.changed_columns,
            "unknown_columns": self.unknown_columns,
            "transaction_id": self.transaction_id,
            "closed_by_transaction_id": self.closed_by_transaction_id,
        }


def build_history(log: Iterable[LogRow], options: TableOptions) -> list[Version]:
    """Return the versions of the table, sorted by key and valid_from_seq.

    The order of `log` does not matter. Raises ValueError for load rows without their marker row.
    """
    ordered = in_log_order(log, options)
    markers = {(row.change_seq, row.load_id) for row in ordered if _is_marker(row)}
    for row in ordered:
        if row.change_oper == "L" and (row.change_seq, row.load_id) not in markers:
            raise ValueError(f"load {row.load_id!r} has rows at {row.change_seq} but no marker row")

    fold = _Fold(options)
    for row in _joined(ordered, options):
        if _is_marker(row):
            position = next(place for place, other in enumerate(ordered) if other is row)
            fold.load(row, ordered, later=ordered[position + 1 :])
        elif row.change_oper != "L":
            fold.change(row)
    return sorted(
        fold.versions, key=lambda version: (key_of(version.data, options), version.valid_from_seq)
    )


def _joined(ordered: list[LogRow], options: TableOptions) -> list[LogRow]:
    """R1. One change of an insert, an update and a delete of one key at one change_seq."""
    joined: dict[object, LogRow] = {}
    for number, row in enumerate(ordered):
        is_single = row.change_oper in "TL" or previous_key_of(row, options) is not None
        place = number if is_single else (row.change_seq, _data_key(row, options))
        first = joined.pop(place, None)
        if first is None or row.change_oper == "D":
            joined[place] = row
        else:
            image = known_image(first, options) | known_image(row, options)
            joined[place] = replace(first, data=image, known_columns=frozenset(image))
    return list(joined.values())


def as_of(history: Iterable[Version], change_seq: str, options: TableOptions) -> dict[Key, Row]:
    """Return the table as it was just after `change_seq`: key -> data."""
    return {
        key_of(version.data, options): version.data
        for version in history
        if version.valid_from_seq <= change_seq
        and (version.valid_to_seq is None or change_seq < version.valid_to_seq)
    }


def in_log_order(log: Iterable[LogRow], options: TableOptions) -> list[LogRow]:
    """R1. Sort by change_seq and operation; ties by load, marker first, then by key."""
    return sorted(
        log,
        key=lambda row: (
            row.change_seq,
            OPERATION_ORDER[row.change_oper],
            row.load_id or "",
            row.data is not None,
            () if row.data is None else key_of(row.data, options),
        ),
    )


def key_of(data: Row, options: TableOptions) -> Key:
    """Return the values of the key columns."""
    return tuple(data[column] for column in options.key)


def previous_key_of(row: LogRow, options: TableOptions) -> Key | None:
    """Return the old key when `row` is a key change, else None."""
    if row.change_oper != "U" or row.before is None:
        return None
    if not _knows_all(row.before_known_columns, options.key):
        return None
    old = key_of(row.before, options)
    return None if old == _data_key(row, options) else old


def same_value(left: Any, right: Any) -> bool:
    """Compare NULL-safe; a NaN equals a NaN."""
    return bool(left == right or (left != left and right != right))


def as_text(value: Any) -> str | None:
    """Return a value as text: binary as upper-case hex, timestamps as ISO 8601 in UTC.

    A timestamp always has six digits after the second: 2024-03-01T12:00:00.000000Z.
    A naive timestamp is taken as UTC.
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex().upper()
    if isinstance(value, datetime):
        moment = value if value.tzinfo is None else value.astimezone(timezone.utc)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value)


class _Fold:
    """The state after the changes seen so far: per key its open version and its clock."""

    def __init__(self, options: TableOptions) -> None:
        self.options = options
        self.versions: list[Version] = []
        self.open: dict[Key, Version] = {}
        # R10: time of the latest opening or closing of each key
        self.clock: dict[Key, datetime] = {}
        # What the opening of the open version found there: the version that it closed, and the
        # clock. Needed to take an opening back at its own change_seq.
        self.found: dict[Key, tuple[Version | None, datetime | None]] = {}
        # R7: key -> transaction of the newest arrival, rows it displaced that have not left yet
        self.displaced: dict[Key, tuple[object, list[Image]]] = {}
        # R7: key that was empty -> transaction of the arrival, what the newest change says of it
        self.on_empty: dict[Key, tuple[object, Image]] = {}

    # One change -----------------------------------------------------------------------------

    def change(self, row: LogRow) -> None:
        """Apply one change that is not part of a load."""
        if row.change_oper == "T":
            self._truncate(row)
            return
        key = _data_key(row, self.options)
        old = previous_key_of(row, self.options)
        if old is not None:
            self._move(old, key, row)
            return
        if row.change_oper == "D":
            self._close(key, "D", row)
        else:
            self._upsert(key, known_image(row, self.options), row)

    def _truncate(self, row: LogRow) -> None:
        """R6."""
        for key, version in list(self.open.items()):
            if _reaches(row, known_values(version)):
                self._close(key, "T", row)

    def _move(self, old: Key, key: Key, row: LogRow) -> None:
        """R7. The row of `old` leaves for `key`."""
        transaction = transaction_of(row)
        arrived_with, waiting = self.displaced.get(old, (None, []))
        if waiting and arrived_with == transaction:
            # the displaced row leaves: what is open on `old` now is another row
            carried = waiting.pop(0)
        elif self._was_never_named(old, row):
            # that is another row than the one that came: nothing is known of it, nothing closes
            carried = {}
            del self.on_empty[old]
        else:
            carried = known_values(self.open[old]) if old in self.open else {}
            self._close(old, "K", row)

        # R9: own value, else the before image's, else the old key's version at that point
        image = {**carried, **known_before(row), **known_image(row, self.options)}
        arrived_with, waiting = self.displaced.get(key, (None, []))
        if arrived_with != transaction:
            waiting = []
        if key in self.open:
            waiting.append(known_values(self.open[key]))
        self.displaced[key] = (transaction, waiting)
        was_empty = key not in self.open
        previous = self._close(key, "K", row)
        self._open(key, image, "K", row, previous)
        if was_empty:
            self.on_empty[key] = (transaction, known_image(row, self.options))

    def _was_never_named(self, key: Key, row: LogRow) -> bool:
        """R7. Whether the row that leaves `key` differs from the one that came there."""
        transaction, image = self.on_empty.get(key, (None, {}))
        if key not in self.on_empty or transaction != transaction_of(row):
            return False
        before = known_before(row)
        return any(
            column in before and column in image and not same_value(before[column], image[column])
            for column in self.options.tracked
        )

    def _upsert(self, key: Key, image: Image, row: LogRow) -> None:
        """R2, R3, R4, R9."""
        version = self.open.get(key)
        if key in self.on_empty:
            self.on_empty[key] = (self.on_empty[key][0], known_image(row, self.options))
        if version is None:
            self._open(key, image, row.change_oper, row, previous=None)
        elif version.valid_from_seq == row.change_seq:
            self._amend(key, version, {**known_values(version), **image})
        elif self._differs(version, image):
            image = {**known_values(version), **image}
            previous = self._close(key, "U", row)
            self._open(key, image, row.change_oper, row, previous)
        else:
            self._set_values(version, {**known_values(version), **image})

    # Versions -------------------------------------------------------------------------------

    def _open(
        self, key: Key, image: Image, opened_by: str, row: LogRow, previous: Version | None
    ) -> None:
        """Open a version; `previous` is the one that was open just before on this key."""
        if previous is None:
            self.found[key] = (None, self.clock.get(key))
        version = Version(
            data={},
            valid_from=self._boundary(key, row.changed_at),
            valid_from_seq=row.change_seq,
            opened_by=opened_by,
            changed_columns=None,
            unknown_columns=None,
            transaction_id=row.transaction_id,
        )
        self._set_values(version, image)
        version.changed_columns = self._changed_columns(previous, version)
        self.versions.append(version)
        self.open[key] = version

    def _close(self, key: Key, closed_by: str, row: LogRow) -> Version | None:
        """Close the version open on `key`; return the one closed, None where there was none."""
        if closed_by != "U":
            self.on_empty.pop(key, None)
        version = self.open.get(key)
        if version is not None and version.valid_from_seq == row.change_seq:
            version = self._take_back(key, version)
        if version is None:
            return None
        self.found[key] = (version, self.clock.get(key))
        version.valid_to = self._boundary(key, row.changed_at)
        version.valid_to_seq = row.change_seq
        version.closed_by = closed_by
        version.closed_by_transaction_id = row.transaction_id
        del self.open[key]
        return version

    def _amend(self, key: Key, version: Version, image: Image) -> None:
        """Correct the version that was opened at the change_seq of this change."""
        previous, _ = self.found[key]
        if version.opened_by != "K" and previous is not None and not self._differs(previous, image):
            self._take_back(key, version)
            self._set_values(previous, {**known_values(previous), **image})
        else:
            self._set_values(version, image)
            version.changed_columns = self._changed_columns(previous, version)

    def _take_back(self, key: Key, version: Version) -> Version | None:
        """Undo the opening of `version`; return the version that is open again, if any."""
        self.versions = [other for other in self.versions if other is not version]
        del self.open[key]
        previous, clock = self.found.pop(key)
        if clock is None:
            self.clock.pop(key, None)
        else:
            self.clock[key] = clock
        if previous is not None:
            previous.valid_to = previous.valid_to_seq = None
            previous.closed_by = previous.closed_by_transaction_id = None
            self.open[key] = previous
        return previous

    def _boundary(self, key: Key, changed_at: datetime | None) -> datetime:
        """R10. Advance the clock of `key` and return it."""
        clock = self.clock.get(key)
        if changed_at is None:
            boundary = clock or self.options.beginning_of_time
        else:
            boundary = changed_at if clock is None else max(clock, changed_at)
        self.clock[key] = boundary
        return boundary

    def _set_values(self, version: Version, image: Image) -> None:
        columns = self.options.columns
        version.data = {column: image.get(column) for column in columns}
        version.unknown_columns = [column for column in columns if column not in image] or None

    def _differs(self, version: Version, image: Image) -> bool:
        """R3. Does a tracked column differ that both sides know?"""
        known = known_values(version)
        return any(
            column in known and column in image and not same_value(known[column], image[column])
            for column in self.options.tracked
        )

    def _changed_columns(self, previous: Version | None, version: Version) -> list[str] | None:
        """Return the tracked columns whose stored values differ, an unknown one being NULL."""
        if previous is None:
            return None
        return [
            column
            for column in self.options.columns
            if column in self.options.tracked
            and not same_value(previous.data[column], version.data[column])
        ]

    # Loads ----------------------------------------------------------------------------------

    def load(self, marker: LogRow, log: Sequence[LogRow], later: Sequence[LogRow]) -> None:
        """R8. Compare the state at load time with the open versions.

        `later`: what follows the marker in log order; its changes put base tables back in time.
        """
        loaded = {
            _data_key(row, self.options): known_image(row, self.options)
            for row in log
            if row.change_oper == "L"
            and row.data is not None
            and (row.change_seq, row.load_id) == (marker.change_seq, marker.load_id)
        }
        state = state_at_load(loaded, later, self.options)
        for key in list(self.open):
            if key not in state:
                self._close(key, "R", marker)
        for key, image in state.items():
            self._upsert(key, image, marker)


def state_at_load(
    loaded: Mapping[Key, Image], later: Iterable[LogRow], options: TableOptions
) -> dict[Key, Image]:
    """R8. Put the rows of a base table back to load time; return key -> image.

    `loaded`: the base table as it was read. `later`: the log after the load, in log order.
    """
    first: dict[Key, LogRow] = {}
    reached: set[Key] = set()
    until_end: list[LogRow] = []
    for row in later:
        if _is_marker(row) or (row.change_oper == "T" and not row.truncate_scope):
            break  # it concerns every key: what comes after says nothing about the load
        if row.change_oper == "T":
            reached |= {key for key in loaded if key not in first and _reaches(row, loaded[key])}
            continue
        until_end.append(row)
        for key in _keys_named_by(row, options):
            first.setdefault(key, row)

    state = dict(loaded)
    for key, row in first.items():
        is_arrival = previous_key_of(row, options) not in (None, key)
        if key in reached and (row.change_oper == "I" or is_arrival):
            continue  # the truncate has emptied the key: it is the first change
        if options.base_kind == "live" and is_arrival:
            # a key change brought a row here: the key was empty, or held what moves on next
            displaced = _displaced_row(key, row, until_end, key in loaded, options)
            state.pop(key, None)
            if displaced is not None:
                state[key] = {**loaded.get(key, {}), **displaced}
        elif options.base_kind == "frozen" and row.change_oper == "I":
            state.pop(key, None)
        elif options.base_kind == "live":
            image = _load_image(key, row, loaded.get(key), options)
            state.pop(key, None)
            if image is not None:
                state[key] = image
    return state


def _reaches(truncate: LogRow, image: Image) -> bool:
    """R6. Whether a truncate ends a row; its scope, if any, names values that the row must have."""
    return all(
        column in image and as_text(image[column]) == value
        for column, value in (truncate.truncate_scope or {}).items()
    )


def _displaced_row(
    key: Key, arrival: LogRow, log: Sequence[LogRow], is_loaded: bool, options: TableOptions
) -> Image | None:
    """R7, R8. Return the row that `arrival` displaced, known by the transaction moving it away.

    What leaves the key may be a row that the transaction has brought. It is another one when it
    differs from all of those, or when the key was not empty before.
    """
    touches = [row for row in log if key in _keys_named_by(row, options)]
    of_transaction = _of_transaction(touches, arrival)
    left = [row for row in of_transaction if previous_key_of(row, options) == key]
    other = _other_row(key, of_transaction, options)
    if other is None and left and _held_a_row(key, of_transaction, touches, is_loaded, options):
        other = left[0]
    if other is None:
        return None
    return {**known_before(other), **dict(zip(options.key, key, strict=True))}


def _other_row(key: Key, of_transaction: Iterable[LogRow], options: TableOptions) -> LogRow | None:
    """Return the first departure of a row that differs from all that the transaction brought."""
    brought: list[Image] = []
    for row in of_transaction:
        if previous_key_of(row, options) == key:
            image = {**known_before(row), **dict(zip(options.key, key, strict=True))}
            if not any(_agree(image, one) for one in brought):
                return row
        elif row.change_oper != "D":
            brought.append(known_image(row, options))
    return None


def _held_a_row(
    key: Key,
    of_transaction: Sequence[LogRow],
    touches: Sequence[LogRow],
    is_loaded: bool,
    options: TableOptions,
) -> bool:
    """R7, R8. Whether `key` held a row before a transaction that brings one and takes one away.

    If as many left as came, it did if it held one afterwards: the first conclusive later
    transaction shows that. If none is conclusive, the base table still has the row, or never had
    one.
    """
    shown = _shown_by(key, of_transaction, options)
    for row in touches[touches.index(of_transaction[-1]) + 1 :]:
        later = _of_transaction(touches, row)
        if shown is None and later[0] is row:
            shown = _shown_by(key, later, options)
    return is_loaded if shown is None else shown


def _shown_by(key: Key, of_transaction: Sequence[LogRow], options: TableOptions) -> bool | None:
    """Return whether a transaction shows that `key` held a row before it; None if it may have."""
    first = of_transaction[0]
    if first.change_oper == "I":
        return False
    if previous_key_of(first, options) in (None, key):
        return True  # an update, a delete or a departure
    if _other_row(key, of_transaction, options) is not None:
        return True
    came = left = 0
    for row in of_transaction:
        leaves = previous_key_of(row, options) == key
        arrives = not leaves and previous_key_of(row, options) is not None
        left += leaves or row.change_oper == "D"
        came += arrives or row.change_oper == "I"
    return None if came == left else left > came


def _of_transaction(touches: Iterable[LogRow], row: LogRow) -> list[LogRow]:
    return [other for other in touches if transaction_of(other) == transaction_of(row)]


def _agree(one: Image, other: Image) -> bool:
    return all(same_value(one[column], other[column]) for column in one if column in other)


def transaction_of(row: LogRow) -> object:
    """R7. The transaction id; without one, changes of one time belong together."""
    return row.transaction_id if row.transaction_id is not None else ("at", row.changed_at)


def _load_image(
    key: Key, first: LogRow, loaded: Image | None, options: TableOptions
) -> Image | None:
    """R8. Return what `key` held before the first change that names it; None = nothing."""
    if first.change_oper == "I":
        return None
    if first.change_oper == "D" and first.before is None and loaded is not None:
        return loaded  # no earlier change named the key: the row is as it was loaded
    named = dict(zip(options.key, key, strict=True))
    if first.before is None:
        return named  # nothing else is known
    # the before image; what it does not know is as it was loaded
    return {**(loaded or {}), **known_before(first), **named}


def _keys_named_by(row: LogRow, options: TableOptions) -> Iterator[Key]:
    if row.change_oper in ("I", "U", "D"):
        yield _data_key(row, options)
        old = previous_key_of(row, options)
        if old is not None:
            yield old


def _is_marker(row: LogRow) -> bool:
    return row.change_oper == "L" and row.data is None


def _data_key(row: LogRow, options: TableOptions) -> Key:
    if row.data is None:
        raise ValueError(f"a {row.change_oper} at {row.change_seq} has no data")
    return key_of(row.data, options)


def _knows_all(known: AbstractSet[str] | None, columns: Iterable[str]) -> bool:
    return known is None or all(column in known for column in columns)


def known_image(row: LogRow, options: TableOptions) -> Image:
    """Return the known columns of the row's image; the key always belongs to them."""
    return {
        column: value
        for column, value in (row.data or {}).items()
        if row.known_columns is None or column in row.known_columns or column in options.key
    }


def known_before(row: LogRow) -> Image:
    """Return the known columns of the before image; empty where there is none."""
    known = row.before_known_columns
    return {
        column: value
        for column, value in (row.before or {}).items()
        if known is None or column in known
    }


def known_values(version: Version) -> Image:
    """Return the known columns of a version."""
    unknown = version.unknown_columns or ()
    return {column: value for column, value in version.data.items() if column not in unknown}
