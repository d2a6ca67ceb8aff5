"""A batch of a mart: rows to insert, update and delete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.storage.checkpoint import checkpoint_observed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ACTION = "_write_action"
"""Column of a batch. `insert`: a new row. `update`: replaces the row of its identity, or is new.
`delete`: the row of its identity is deleted."""


@dataclass(frozen=True)
class MartBatch:
    """A batch of a mart's table.

    Attributes:
        rows: the table's columns and `ACTION`; of `delete` only the identity counts.
        identity: columns that identify a row; never NULL.
        where: condition on `target`, the table, so that other rows are not read; "" for none.
        base_version: the table's version before `rows` were computed.
        counts: of `computed`, whose rows these are; the caller frees them. None: not computed yet.
    """

    rows: DataFrame
    identity: Sequence[str]
    where: str
    base_version: str | None
    counts: Mapping[str, int] | None = None

    def matches(self) -> str:
        """Join condition between `target`, the table, and `source`, the rows."""
        same = [f"target.{quoted(c)} = source.{quoted(c)}" for c in self.identity]
        return " and ".join([*same, self.where] if self.where else same)


def computed(rows: DataFrame) -> tuple[DataFrame, Mapping[str, int]]:
    """The rows of a batch, as a checkpoint, and how many rows it deletes and inserts."""
    from pyspark.sql import functions as F

    return checkpoint_observed(
        rows,
        {
            "deleted": F.count_if(F.col(ACTION) != "insert"),
            "inserted": F.count_if(F.col(ACTION) != "delete"),
        },
    )
