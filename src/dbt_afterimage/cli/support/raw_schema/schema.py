"""A raw schema as far as it matters to a command; nothing here knows Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

_FULL_LOADS = ("base", "at_start", "full_load")


@dataclass(frozen=True)
class Column:
    """A column of a raw table: its name, its Spark type and its comment, empty for none."""

    name: str
    data_type: str
    comment: str = ""


@dataclass(frozen=True)
class RawTable:
    """A raw table.

    Attributes:
        name: without its schema.
        columns: in the table's order.
        declared_key: columns of a primary key constraint, of Iceberg's identifier fields or of a
            property such as `primary-key`; empty when none is declared.
        comment: the table's comment, empty for none.
    """

    name: str
    columns: tuple[Column, ...]
    declared_key: tuple[str, ...] = ()
    comment: str = ""

    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]

    def types(self) -> dict[str, str]:
        """Column in lower case -> Spark type."""
        return {column.name.lower(): column.data_type for column in self.columns}


@dataclass(frozen=True)
class RawSchema:
    """The tables of a raw schema, by name in lower case."""

    name: str
    tables: Mapping[str, RawTable]

    @classmethod
    def of(cls, name: str, tables: Iterable[RawTable]) -> RawSchema:
        """The schema with these tables."""
        return cls(name, {table.name.lower(): table for table in tables})

    def find(self, name: str) -> RawTable | None:
        """The table of this name, in any case."""
        return self.tables.get(name.lower())

    def full_load(
        self,
        stem: str,
        columns: Iterable[str],
        has_changes: Callable[[RawTable], object] = lambda _: False,
    ) -> RawTable | None:
        """A landed table of this name in model names that has more than half of the columns.

        Args:
            has_changes: true for a table that holds changes, not a load.
        """
        names = {name.lower() for name in columns}
        full_names = (stem, *(f"{stem}_{suffix}" for suffix in _FULL_LOADS))
        return next(
            (
                table
                for table in self.tables.values()
                if model_name(table.name) in full_names
                and not has_changes(table)
                and len(names & table.types().keys()) * 2 > len(names)
            ),
            None,
        )


def model_name(raw: str) -> str:
    """A raw table's name as a part of model names: `CDC_Work-Order` -> `cdc_work_order`."""
    return re.sub(r"\W+", "_", raw).strip("_").lower()
