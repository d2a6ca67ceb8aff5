"""Rejected records by reason and table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from dbt_afterimage.cli.support.table_status import REJECTED, REJECTED_COLUMNS
from dbt_afterimage.cli.support.warehouse import Warehouse


@dataclass
class Rejected:
    """Records that were rejected for one reason.

    Attributes:
        reason: the reason.
        unresolved: records that are not resolved, and of which no repaired copy has come.
        tables: number of all records by table.
    """

    reason: str
    unresolved: int = 0
    tables: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """All of them."""
        return self.tables.total()

    @property
    def resolved(self) -> int:
        """Those that are resolved, or of which a repaired copy has come."""
        return self.total - self.unresolved


def read_rejected(warehouse: Warehouse, schema: str, tables: Iterable[str]) -> list[Rejected]:
    """Rejected records of tables, the reason with the most unresolved records first.

    Args:
        tables: names of tables, without `_changes`.
    """
    relations = warehouse.relations(schema)
    found: dict[str, Rejected] = {}
    for table in tables:
        name = table + REJECTED
        if name not in relations:
            continue
        rows = warehouse.arrow(schema, name, columns=REJECTED_COLUMNS)
        is_open = rows["resolved_at"].is_null().to_pylist()
        for each, is_unresolved in zip(rows["reject_reason"].to_pylist(), is_open, strict=True):
            reason = str(each)
            rejected = found.setdefault(reason, Rejected(reason))
            rejected.tables[table] += 1
            rejected.unresolved += is_unresolved
    return sorted(found.values(), key=lambda each: (-each.unresolved, -each.resolved, each.reason))
