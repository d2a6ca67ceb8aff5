"""A simulated source table: it executes transactions, writes its change log and knows the truth.

    database = Database(key=["id"], columns=["id", "name"])
    database.begin("t1", changed_at)
    database.insert({"id": 1, "name": "Ann"})
    database.change_keys({(1,): (7,)})
    database.commit()

`log` then holds what change data capture would have read, `states` the table at the end of each
transaction. The history of the log as of each state's change_seq must equal its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.oracle.history import Key, LogRow, Row


@dataclass(frozen=True)
class State:
    """The table at the end of a transaction or load, whose last change is at `change_seq`."""

    change_seq: str
    rows: dict[Key, Row]


class Database:
    """One table of a database with change data capture switched on.

    Every change gets its own change_seq: a counter, as text of eight digits. Rows are never
    changed in place. A violated key raises ValueError.
    """

    def __init__(self, key: Sequence[str], columns: Sequence[str]) -> None:
        self.key = list(key)
        self.columns = list(columns)
        self.rows: dict[Key, Row] = {}
        self.log: list[LogRow] = []
        self.states: list[State] = []
        self._counter = -1
        self._transaction_id: str | None = None
        self._changed_at: datetime | None = None

    def skip_to(self, position: int) -> None:
        """Give the next change this position, so that several databases can share some."""
        if position <= self._counter:
            raise ValueError(f"position {position} is not after {self._counter}")
        self._counter = position - 1

    def begin(self, transaction_id: str | None, changed_at: datetime | None) -> None:
        """Set what the changes up to the next `begin` carry."""
        self._transaction_id = transaction_id
        self._changed_at = changed_at

    def commit(self) -> None:
        """Remember the state; a transaction without changes leaves none."""
        if self.log and (not self.states or self.states[-1].change_seq != self.log[-1].change_seq):
            self.states.append(State(self.log[-1].change_seq, dict(self.rows)))

    def insert(self, row: Row) -> None:
        """Insert a row."""
        self._put(row)
        self._write("I", data=row)

    def update(self, key: Key, values: Mapping[str, Any]) -> None:
        """Update columns of a row, outside its key."""
        before = self.rows.pop(key)
        row = {**before, **values}
        self._put(row)
        self._write("U", data=row, before=before)

    def delete(self, key: Key) -> None:
        """Delete a row; the log has the whole row, as data and as before."""
        row = self.rows.pop(key)
        self._write("D", data=row, before=row)

    def change_keys(self, moves: Mapping[Key, Key]) -> None:
        """Change keys, old to new, in one statement; the log has them in the order of `moves`.

        Keys need to be unique after the statement only, so a statement may permute them.
        """
        taken = {old: self.rows.pop(old) for old in moves}
        for old, new in moves.items():
            row = {**taken[old], **dict(zip(self.key, new, strict=True))}
            self._put(row)
            self._write("U", data=row, before=taken[old])

    def truncate(self, scope: Mapping[str, Any] | None = None) -> None:
        """Truncate the table, or the rows that have these values."""
        self.rows = {
            key: row
            for key, row in self.rows.items()
            if any(row[column] != value for column, value in (scope or {}).items())
        }
        texts = None if scope is None else {name: str(value) for name, value in scope.items()}
        self._write("T", truncate_scope=texts)

    def load(self, load_id: str, rows: Iterable[Row] | None = None) -> None:
        """Write a full load of the table as it is, or of `rows`, and remember the state."""
        rows = list(self.rows.values() if rows is None else rows)
        self._write("L", load_id=load_id, load_rows=len(rows))
        change_seq = self.log[-1].change_seq
        self.log.extend(
            LogRow(change_seq, "L", row, changed_at=self._changed_at, load_id=load_id)
            for row in rows
        )
        self.states.append(State(change_seq, dict(self.rows)))

    def _put(self, row: Row) -> None:
        key = tuple(row[column] for column in self.key)
        if key in self.rows:
            raise ValueError(f"key {key} exists already")
        self.rows[key] = row

    def _write(self, change_oper: str, **values: Any) -> None:
        self._counter += 1
        self.log.append(
            LogRow(
                change_seq=f"{self._counter:08d}",
                change_oper=change_oper,
                changed_at=self._changed_at,
                transaction_id=None if change_oper == "L" else self._transaction_id,
                **values,
            )
        )
