"""A warehouse of which each relation is read once, however many figures are made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dbt_afterimage.cli.support.warehouse import TableVersion, Warehouse

if TYPE_CHECKING:
    import pyarrow as pa


class ReadOnce:
    """The relations of another warehouse; what was read of one is kept in memory."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._rows: dict[tuple[str, str, str | None, tuple[str, ...] | None], pa.Table] = {}
        self._relations: dict[str, dict[str, str]] = {}
        self._versions: dict[tuple[str, str], list[TableVersion]] = {}

    def schemas(self) -> list[str]:
        """Names of all schemas."""
        return self._warehouse.schemas()

    def relations(self, schema: str) -> dict[str, str]:
        """`TABLE` or `VIEW` by name; empty if there is no such schema."""
        if schema not in self._relations:
            self._relations[schema] = self._warehouse.relations(schema)
        return self._relations[schema]

    def arrow(
        self,
        schema: str,
        name: str,
        where: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Rows of a relation that exists, all or those of a condition; times are UTC."""
        key = (schema, name, where, tuple(columns) if columns else None)
        if key not in self._rows:
            self._rows[key] = self._warehouse.arrow(schema, name, where, columns)
        return self._rows[key]

    def files(self, schema: str, name: str) -> tuple[int, int]:
        """Number and bytes of the files of a table, from its metadata."""
        return self._warehouse.files(schema, name)

    def versions(self, schema: str, name: str) -> list[TableVersion]:
        """Commits that a table's metadata still has, the oldest first; empty where it has none."""
        key = (schema, name)
        if key not in self._versions:
            self._versions[key] = self._warehouse.versions(schema, name)
        return self._versions[key]
