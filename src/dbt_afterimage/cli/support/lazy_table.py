"""A relation of the warehouse as DuckDB reads it: the columns that a query needs, in batches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import dataset

if TYPE_CHECKING:
    from dbt_afterimage.cli.support.warehouse import QueryableWarehouse


class LazyTable(dataset.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """A dataset that is read each time DuckDB scans it.

    DuckDB knows Arrow datasets by their class, and calls `schema` and `scanner` of them:
    https://duckdb.org/docs/stable/guides/python/sql_on_arrow

    Args:
        place: its schema.
    """

    def __init__(self, warehouse: QueryableWarehouse, place: str, name: str) -> None:
        self._warehouse, self._place, self._name = warehouse, place, name
        self._schema = warehouse.arrow_schema(place, name)

    @property
    def schema(self) -> pa.Schema:
        """All columns of the relation."""
        return self._schema

    def scanner(
        self, columns: Sequence[str] | None = None, filter: Any = None, **options: Any
    ) -> dataset.Scanner:
        """The rows that fit a filter, with some columns.

        Args:
            filter: an Arrow expression; None = all rows.
            options: DuckDB gives none.
        """
        wanted = list(self._schema.names if columns is None else columns)
        rows = self._warehouse.batches(
            self._place, self._name, [*wanted, *self._named_in(filter, wanted)]
        )
        return dataset.Scanner.from_batches(rows, columns=wanted, filter=filter, **options)

    def _named_in(self, condition: Any, wanted: Sequence[str]) -> list[str]:
        """Further columns of a filter, found in its text; one too many does no harm."""
        words = set(re.findall(r"\w+", "" if condition is None else str(condition)))
        return [
            name
            for name in self._schema.names
            if name not in wanted and words.issuperset(re.findall(r"\w+", name))
        ]
