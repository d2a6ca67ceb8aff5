"""Rejected records by reason and table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from dbt_afterimage.cli.support.table_status import REJECTED, REJECTED_COLUMNS
from dbt_afterimage.cli.support.warehouse import Warehouse


@dataclass(frozen=True)
class Rejected:
    """Records that were rejected for one reason.

    Attributes:
        reason: the reason.
        unresolved: records that are not resolved, and of which no repaired copy has come.
        resolved: the others.
        tables: all records by table, the table with the most first.
    """

    reason: str
    unresolved: int
    resolved: int
    tables: dict[str, int]

    @property
    def total(self) -> int:
        """All of them."""
        return self.unresolved + self.resolved


def read_rejected(warehouse: Warehouse, schema: str, tables: Iterable[str]) -> list[Rejected]:
    """Rejected records of tables, the reason with the most unresolved records first.

    Args:
        tables: names of tables, without `_changes`.
    """
    relations = warehouse.relations(schema)
    by_table: dict[str, Counter[str]] = {}
    unresolved: Counter[str] = Counter()
    for table in tables:
        name = table + REJECTED
        if name not in relations:
            continue
        rows = warehouse.arrow(schema, name, columns=REJECTED_COLUMNS)
        reasons = [str(reason) for reason in rows["reject_reason"].to_pylist()]
        is_open = rows["resolved_at"].is_null().to_pylist()
        for reason in reasons:
            by_table.setdefault(reason, Counter())[table] += 1
        unresolved.update(reason for reason, is_ in zip(reasons, is_open, strict=True) if is_)
    found = [
        Rejected(
            reason,
            unresolved[reason],
            counts.total() - unresolved[reason],
            dict(counts.most_common()),
        )
        for reason, counts in by_table.items()
    ]
    return sorted(found, key=lambda each: (-each.unresolved, -each.resolved, each.reason))
