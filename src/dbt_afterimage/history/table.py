"""Columns and settings of a history table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from dbt_afterimage.errors import AfterimageError
from dbt_afterimage.settings import SourceSettings
from dbt_afterimage.settings.renaming import way_to_rename

OWN_COLUMNS = (
    "valid_from",
    "valid_to",
    "valid_from_seq",
    "valid_to_seq",
    "is_current",
    "opened_by",
    "closed_by",
    "recorded_at",
    "transaction_id",
    "closed_by_transaction_id",
    "changed_columns",
    "unknown_columns",
)
"""Columns that history adds to the data, besides its surrogate key; in their order."""


ADDED_COLUMNS = {"closed_by_transaction_id": "string"}
"""Of those, columns that a history made by an earlier version lacks; NULL in its rows."""


class HistoryError(AfterimageError):
    """The table cannot have a history as its settings or its changes are."""


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
        name: the model's name, for messages and the name of the surrogate key.
    """

    columns: tuple[str, ...]
    key: tuple[str, ...]
    tracked: tuple[str, ...]
    metadata: tuple[str, ...] = ()
    base: Literal["frozen", "live"] | None = None
    beginning_of_time: str = "1900-01-01 00:00:00"
    name: str = "history"

    @property
    def values(self) -> tuple[str, ...]:
        """The data columns except the key."""
        return tuple(name for name in self.columns if name not in self.key)

    @property
    def beginning(self) -> str:
        """The beginning of time, as SQL."""
        return f"timestamp '{self.beginning_of_time}'"

    @property
    def version_id(self) -> str:
        """Name of the surrogate key of a version."""
        return f"{self.name}_id"

    @property
    def history_columns(self) -> tuple[str, ...]:
        """The columns of the history, in order; what every reader filters by comes first."""
        return (self.version_id, *self.key, *OWN_COLUMNS, *self.metadata, *self.values)


def missing_columns(stored: Collection[str]) -> dict[str, str]:
    """Those of ADDED_COLUMNS that a stored history lacks, with their types."""
    has = {name.lower() for name in stored}
    return {name: kind for name, kind in ADDED_COLUMNS.items() if name not in has}


def history_table(
    name: str,
    settings: SourceSettings,
    log: str,
    data_columns: Sequence[str],
    log_columns: Sequence[str],
    beginning_of_time: str,
    stored_columns: Sequence[str] = (),
) -> HistoryTable:
    """The table of a model, if it can have a history.

    Args:
        stored_columns: those of the stored history. Metadata that it once had stays in it, whatever
            `history_metadata` says now.

    Raises:
        HistoryError: there is no key, a column has a name of history's own, or `history_metadata`
            names a column that the log lacks.
    """
    key, base, source = settings["key"], settings.get("base"), settings["source_table"]
    if not key:
        raise HistoryError(
            f"`history`: source table {source} of {name} declares no `key`. History needs one; "
            "without a key a table has a change log and field changes only. Fix: add `key: [...]` "
            "to its `meta.afterimage`."
        )
    metadata = settings.get("history_metadata", [])
    for column in (*data_columns, *metadata):
        if column.lower() in (*OWN_COLUMNS, f"{name}_id"):
            raise HistoryError(
                f"`history`: source table {source} of {name} has a column `{column}`, a name that "
                f"history adds; it adds {', '.join(OWN_COLUMNS)} and {name}_id. Fix: "
                f"{way_to_rename(settings)}"
            )
    for column in metadata:
        if column not in log_columns:
            raise HistoryError(
                f"`history`: `history_metadata` of source table {source} names "
                f"`{column}`, and its change log {log} has no such column. Fix: let the staging "
                "model yield the column and run the change log first, or take the name out of "
                "`history_metadata`."
            )
    stored = [name for name in settings.get("optional_columns", {}) if name in stored_columns]
    return HistoryTable(
        columns=tuple(data_columns),
        key=tuple(key),
        tracked=tuple(
            column
            for column in data_columns
            if column not in key
            and column not in settings["ignore"]
            and (not settings["track"] or column in settings["track"])
        ),
        metadata=tuple(dict.fromkeys([*metadata, *stored])),
        base=base["kind"] if base else None,
        beginning_of_time=beginning_of_time,
        name=name,
    )
