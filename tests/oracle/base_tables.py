"""Rows that base tables show when they are read some time after their load."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from tests.oracle.database import State
from tests.oracle.history import Key, LogRow, Row, key_of, previous_key_of, transaction_of
from tests.oracle.streams import OPTIONS


def read_late(
    kind: Literal["frozen", "live"],
    log: list[LogRow],
    states: list[State],
    chooser: random.Random,
) -> tuple[list[LogRow], bool]:
    """The load rows of each load in a log, and whether log and rows determine the states at loads.

    The base is read at the end of any transaction from its load on. A live one then shows the
    table as it is, a frozen one its load and what was inserted up to then.
    """
    rows: list[LogRow] = []
    is_told = True
    for marker in log:
        if marker.change_oper != "L" or marker.data is not None:
            continue
        since = [state for state in states if state.change_seq >= marker.change_seq]
        telling = [state for state in since if _tells_its_load(kind, log, marker, state)]
        read = chooser.choice(telling if chooser.random() < 0.8 else since)
        is_told = is_told and read in telling
        if kind == "live":
            later = (row for row in log if row.change_seq > marker.change_seq)
            is_told = is_told and tells_moved_rows(later)
        shown = read.rows.values() if kind == "live" else _with_inserts(since[0], log, read)
        rows += [replace(marker, data=row, load_rows=None) for row in shown]
    return rows, is_told


def _tells_its_load(kind: str, log: list[LogRow], marker: LogRow, read: State) -> bool:
    """Whether the state at a load follows from the log and from the base as it is then.

    After a truncate or another load, a live base may have lost rows that no change names, and rows
    inserted into a frozen one seem to have been there. Nor does a frozen base show when a row was
    inserted whose key was named first as the target of a key change.
    """
    between = [row for row in log if marker.change_seq < row.change_seq <= read.change_seq]
    if any(row.change_oper in "TL" for row in between):
        return False
    return kind == "live" or has_one_reading(between)


def has_one_reading(changes: Iterable[LogRow]) -> bool:
    """Whether no key is named first as the target of a key change and then inserted."""
    first: dict[Key, str] = {}
    for row in changes:
        if row.data is None or row.change_oper == "L":
            continue
        old = previous_key_of(row, OPTIONS)
        if old is not None:
            first.setdefault(old, "leaves")
        how = row.change_oper if old is None else "arrives"
        named_first = first.setdefault(key_of(row.data, OPTIONS), how)
        if named_first == "arrives" and how == "I":
            return False
    return True


def tells_moved_rows(changes: Iterable[LogRow]) -> bool:
    """Whether a live base and the changes show if a row leaves a key to which another one moved.

    A row moves to a key that no earlier change names, and an equal row leaves it in the same
    transaction: that is two rows, or one that moves twice. The next change of the key decides, or
    the base if there is none, but not once a truncate with a scope may have ended the row.
    """
    arrived: dict[Key, LogRow] = {}
    untold: dict[Key, LogRow] = {}
    named: set[Key] = set()
    for row in sorted(changes, key=lambda row: row.change_seq):
        if row.change_oper == "T" and row.truncate_scope and untold:
            return False
        if row.data is None or row.change_oper == "L":
            continue
        key, old = key_of(row.data, OPTIONS), previous_key_of(row, OPTIONS)
        if old is None:
            untold.pop(key, None)
        else:
            came = arrived.pop(old, None)
            if came and transaction_of(came) == transaction_of(row) and came.data == row.before:
                untold[old] = row
            elif old in untold and transaction_of(untold[old]) != transaction_of(row):
                del untold[old]
            if key not in named:
                arrived[key] = row
        named |= {key} if old is None else {key, old}
    return True


def _with_inserts(loaded: State, log: Iterable[LogRow], read: State) -> list[Row]:
    shown = dict(loaded.rows)
    for row in log:
        is_later = loaded.change_seq < row.change_seq <= read.change_seq
        if row.change_oper == "I" and row.data is not None and is_later:
            shown.setdefault(key_of(row.data, OPTIONS), row.data)
    return list(shown.values())
