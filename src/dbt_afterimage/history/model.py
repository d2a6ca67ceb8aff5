"""What the history step knows of its table, whatever the batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class HistoryTable:
    """The columns and settings of one table.

    Attributes:
        columns: the data columns, key included.
        key: the key columns.
        tracked: columns whose change opens a version (R3).
        metadata: columns of the log, besides transaction_id, that a version takes from the change
            that opened it.
        base: the kind of base table that full loads are read from (R8), None without one.
        beginning_of_time: valid_from of a load without a time, a timestamp as text, in UTC.
    """

    columns: tuple[str, ...]
    key: tuple[str, ...]
    tracked: tuple[str, ...]
    metadata: tuple[str, ...] = ()
    base: Literal["frozen", "live"] | None = None
    beginning_of_time: str = "1900-01-01 00:00:00"

    @property
    def values(self) -> tuple[str, ...]:
        """The data columns except the key."""
        return tuple(name for name in self.columns if name not in self.key)

    @property
    def beginning(self) -> str:
        """The beginning of time, as SQL."""
        return f"timestamp '{self.beginning_of_time}'"
