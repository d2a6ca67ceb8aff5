"""Random transactions, from a seed, so that a failure can be repeated.

Inserts, updates, deletes, key changes (single, chains and permutations), truncates and loads, with
clocks that stop or run back, with or without transaction ids.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from tests.oracle.database import Database, State
from tests.oracle.history import Key, LogRow, Row, TableOptions, key_of, previous_key_of

OPTIONS = TableOptions(key=["id"], columns=["id", "a", "b", "c"], tracked=["id", "a", "b", "c"])
KEY_CHANGES = ["move", "permute"]
OPERATIONS = ["insert", "update", "delete", *KEY_CHANGES]
START = datetime(2024, 3, 1)


class Writer:
    """Writes random transactions into a database.

    Args:
        chooser: makes the choices; a seed, or hypothesis' own, which makes failing streams small.
        with_transaction_ids: whether changes name their transaction.
        with_good_clocks: whether every change has a time, and none an earlier one than before.
    """

    def __init__(
        self,
        chooser: int | random.Random,
        with_transaction_ids: bool = True,
        with_good_clocks: bool = False,
    ) -> None:
        self.random = random.Random(chooser) if isinstance(chooser, int) else chooser
        self.database = Database(OPTIONS.key, OPTIONS.columns)
        self.with_transaction_ids = with_transaction_ids
        self.with_good_clocks = with_good_clocks
        self.transactions = 0

    def transaction(self, *operations: str) -> None:
        """Write one transaction of one to six random operations out of `operations`."""
        self.transactions += 1
        moment = START + timedelta(seconds=self.random.choice([0, self.transactions, 5]))
        name = f"t{self.transactions}" if self.with_transaction_ids else None
        stated = self.random.choice([moment, moment, None])
        if self.with_good_clocks:
            stated = START + timedelta(seconds=self.transactions)
        self.database.begin(name, stated)
        for _ in range(self.random.randint(1, 6)):
            getattr(self, self.random.choice(operations))()
        self.database.commit()

    def insert(self) -> None:
        free = self._free()
        if free:
            self.database.insert({"id": self.random.choice(free), **self._values()})

    def update(self) -> None:
        if self.database.rows:
            self.database.update(self._some_key(), self._values())

    def delete(self) -> None:
        if self.database.rows:
            self.database.delete(self._some_key())

    def move(self) -> None:
        """One key change onto a free key."""
        free = self._free()
        if free and self.database.rows:
            self.database.change_keys({self._some_key(): (self.random.choice(free),)})

    def permute(self) -> None:
        """One statement over some keys: a permutation, or a shift where a free key takes part."""
        keys = list(self.database.rows)
        old = self.random.sample(keys, self.random.randint(0, len(keys)))
        new = [*old, *((free,) for free in self._free()[:1])]
        self.random.shuffle(new)
        moves = {left: right for left, right in zip(old, new, strict=False) if left != right}
        self.database.change_keys(moves)

    def truncate(self) -> None:
        if self.random.random() < 0.2:
            self.database.truncate()

    def _free(self) -> list[int]:
        return [key for key in range(8) if (key,) not in self.database.rows]

    def _some_key(self) -> Key:
        return self.random.choice(list(self.database.rows))

    def _values(self) -> Row:
        return {column: self.random.choice([None, 1, 2]) for column in ("a", "b", "c")}


def hide_unchanged_columns(log: list[LogRow], chooser: int | random.Random) -> list[LogRow]:
    """Make unchanged columns of some updates unknown, in both images, and the values wrong.

    Most updates that move their row stay as they are. Some of the others lose their before image
    altogether; deletes keep their key only.
    """
    chooser = random.Random(chooser) if isinstance(chooser, int) else chooser
    return [_with_less_known(row, chooser) for row in log]


def leave_lobs_out(
    log: list[LogRow], lobs: Sequence[str], but_of_key_changes: bool
) -> list[LogRow]:
    """Make LOB columns unknown where a source does not send them, and the values wrong.

    An update has a LOB only when it sets it to a value; a before image never has one.
    """
    return [
        row
        if but_of_key_changes and previous_key_of(row, OPTIONS) is not None
        else _without_lobs(row, lobs)
        for row in log
    ]


def _without_lobs(row: LogRow, lobs: Sequence[str]) -> LogRow:
    if not lobs or row.data is None or row.before is None:
        return row
    columns = set(OPTIONS.columns)
    data, known = row.data, row.known_columns
    if row.change_oper == "U":
        kept = {lob for lob in lobs if data[lob] is None or data[lob] == row.before[lob]}
        data = {**data, **dict.fromkeys(kept, "unknown")}
        known = columns.difference(kept).intersection(known or columns)
    return replace(
        row,
        data=data,
        known_columns=known,
        before={**row.before, **dict.fromkeys(lobs, "unknown")},
        before_known_columns=columns.difference(lobs).intersection(
            row.before_known_columns or columns
        ),
    )


def share_positions(log: list[LogRow], states: list[State], chooser: random.Random) -> list[LogRow]:
    """Give some changes the position of the change before, of the same key and transaction.

    So `states`, the ends of transactions, stay true. At one position operations differ, and their
    order is that of R1.
    """
    ends = {state.change_seq for state in states}
    changed = log[:1]
    for before, row in pairwise(log):
        shared = (
            before.change_seq not in ends
            and (changed[-1].change_oper, row.change_oper) in (("I", "U"), ("I", "D"), ("U", "D"))
            and _key(changed[-1]) == _key(row)
            and previous_key_of(row, OPTIONS) is None
            and chooser.random() < 0.5
        )
        changed.append(replace(row, change_seq=changed[-1].change_seq) if shared else row)
    return changed


def _key(row: LogRow) -> Key | None:
    return None if row.data is None else key_of(row.data, OPTIONS)


def _with_less_known(row: LogRow, chooser: random.Random) -> LogRow:
    if row.data is None:
        return row
    if row.change_oper == "D":
        return replace(row, data={"id": row.data["id"]}, known_columns={"id"}, before=None)
    if row.change_oper != "U" or row.before is None:
        return row
    if previous_key_of(row, OPTIONS) is not None and chooser.random() < 0.6:
        return row
    hidden = {
        column
        for column in ("a", "b", "c")
        if row.data[column] == row.before[column] and chooser.random() < 0.5
    }
    known = set(OPTIONS.columns) - hidden
    wrong = dict.fromkeys(hidden, "unknown")
    partial = replace(row, data={**row.data, **wrong}, known_columns=known)
    if previous_key_of(row, OPTIONS) is None and chooser.random() < 0.3:
        return replace(partial, before=None)
    return replace(partial, before={**row.before, **wrong}, before_known_columns=known)
