"""Which raw records a run reads, and which rows of the log may hold the same ones."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from dbt_afterimage.changes.positions import QlikPositions
from dbt_afterimage.changes.progress import Progress


def floor_position(context: dict[str, Any], where: QlikPositions, done: Progress) -> str | None:
    """Records up to this position were settled by earlier runs; None = read everything."""
    given = context["backfill_from"]
    if given is not None:
        given = str(given)
        if len(given) == where.width and given.isdigit():
            return str(int(given) - 1).zfill(where.width)
        return where.of_time(datetime.fromisoformat(given))
    if done.change_seq is None or context["rebuild_changes"]:
        return None
    return where.before_look_back(done.change_seq) or None


def is_new_or_malformed(floor: str, where: QlikPositions) -> Column:
    """True for records behind ``floor``, and for those that a comparison would hide."""
    # A NULL position, or a malformed one that happens to sort low.
    seq = F.col("change_seq")
    return (seq > floor) | seq.isNull() | ~seq.rlike(f"^[0-9]{{{where.width}}}$") | (seq < "1")
