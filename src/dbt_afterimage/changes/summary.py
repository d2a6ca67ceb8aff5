"""What a decided batch holds, found in one pass over it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from dbt_afterimage.changes.batch import BatchCounts
from dbt_afterimage.changes.pairing import (
    ACCEPTED,
    DUPLICATE,
    REJECTED,
    WAITING,
    is_waiting_too_long,
)
from dbt_afterimage.changes.progress import ISO_TIMESTAMP, greatest
from dbt_afterimage.changes.reading import is_position
from dbt_afterimage.positions import Positions


@dataclass(frozen=True)
class Summary:
    """What is known of a batch as a whole; positions and times are those of changes, not of loads.

    Attributes:
        groups: per outcome, and apart for rows of loads, the number of `records`, `first_seq`,
            `first_at`, the greatest `change_seq`, `changed_at` and `arrival`; times are ISO text
            in UTC.
    """

    groups: tuple[Row, ...]

    @property
    def first_seq(self) -> str | None:
        """Least position that there is."""
        firsts = [group["first_seq"] for group in self.groups if group["first_seq"] is not None]
        return min(firsts, default=None)

    @property
    def arrival(self) -> str | None:
        """Greatest mark of arrival."""
        return greatest(*[group["arrival"] for group in self.groups])

    @property
    def seen_seq(self) -> str | None:
        """Greatest position that no rejected record has."""
        return greatest(*[g["change_seq"] for g in self._changes(ACCEPTED, WAITING, DUPLICATE)])

    @property
    def accepted_seq(self) -> str | None:
        """Greatest position that was accepted."""
        return greatest(*[group["change_seq"] for group in self._changes(ACCEPTED)])

    @property
    def accepted_at(self) -> str | None:
        """Greatest time that was accepted."""
        return greatest(*[group["changed_at"] for group in self._changes(ACCEPTED)])

    @property
    def days(self) -> int:
        """Days from the first time to the last one."""
        times = [
            datetime.fromisoformat(group[name])
            for group in self.groups
            for name in ("first_at", "changed_at")
            if group[name] is not None
        ]
        return (max(times) - min(times)).days if times else 0

    def counts(self, decided: DataFrame, horizon: str) -> BatchCounts:
        """How many records became what.

        Args:
            decided: the batch.
            horizon: up to here nothing waits any more.
        """
        late: dict[str, int] = {}
        if self._count(WAITING):
            rows = decided.filter(is_waiting_too_long(horizon)).groupBy("change_oper").count()
            late = {row["change_oper"]: row["count"] for row in rows.collect()}
        alone, orphans = late.get("U", 0), late.get("B", 0)
        return BatchCounts(
            accepted=self._count(ACCEPTED) + alone,
            rejected=self._count(REJECTED) + orphans,
            duplicates=self._count(DUPLICATE),
            pending=self._count(WAITING) - alone - orphans,
            without_before_image=alone,
        )

    def _count(self, outcome: str) -> int:
        return sum(group["records"] for group in self.groups if group["outcome"] == outcome)

    def _changes(self, *outcomes: str) -> Iterable[Row]:
        return [
            group for group in self.groups if group["outcome"] in outcomes and group["is_change"]
        ]


def summarize(decided: DataFrame, where: Positions) -> Summary:
    """Look at a batch once.

    Args:
        decided: records with their `outcome`.
        where: the positions of their system.
    """
    is_change = F.col("change_oper") != "L"
    place = F.when(is_position(where) & is_change, F.col("change_seq"))
    groups = (
        decided.groupBy("outcome", is_change.alias("is_change"))
        .agg(
            F.count(F.lit(1)).alias("records"),
            F.min(place).alias("first_seq"),
            F.max("change_seq").alias("change_seq"),
            F.date_format(F.min("changed_at"), ISO_TIMESTAMP).alias("first_at"),
            F.date_format(F.max("changed_at"), ISO_TIMESTAMP).alias("changed_at"),
            F.max("arrival").alias("arrival"),
        )
        .collect()
    )
    return Summary(tuple(groups))
