"""The content of a decided batch, found by the job that decides it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt_afterimage.change_log.batch import BatchCounts
from dbt_afterimage.change_log.deciding.pairing import (
    ACCEPTED,
    DUPLICATE,
    PENDING,
    REJECTED,
    is_pending_too_long,
)
from dbt_afterimage.log_rows.columns import column_named, is_position
from dbt_afterimage.log_rows.profile import BatchProfile
from dbt_afterimage.sequence import ChangeSequence
from dbt_afterimage.storage.progress import ISO_TIMESTAMP

_OUTCOMES = (ACCEPTED, REJECTED, DUPLICATE, PENDING)


@dataclass(frozen=True)
class Late:
    """Records that no longer wait, because the look-back has passed them.

    Attributes:
        updates: they are accepted without their before images.
        images: before images, which are rejected.
        seq: greatest position of these updates.
        changed_at: greatest time of these updates, ISO text in UTC.
    """

    updates: int = 0
    images: int = 0
    seq: str | None = None
    changed_at: str | None = None


@dataclass(frozen=True)
class Summary:
    """The summary of a batch; positions and times are those of changes, not of loads.

    Attributes:
        records: how many there are, by outcome.
        updates: how many updates are accepted.
        with_before_image: how many of these have their before image.
        first_seq: least position that there is.
        seen_seq: greatest position that no rejected record has.
        accepted_seq: greatest position that was accepted.
        accepted_at: greatest time that was accepted, ISO text in UTC.
        newest: greatest time that was accepted, of loads too, ISO text in UTC.
        arrival: greatest mark of arrival, except of records whose time lies in the future.
        open_arrival: least mark of arrival of the records that a later run may decide otherwise.
        open_unmarked: how many of these have no mark.
        open_seq: least position of pending and rejected records; other settings may accept these.
        days: from the first time to the last one, of loads too.
        profile: of the accepted changes; None if not requested.
    """

    records: Mapping[str, int]
    updates: int
    with_before_image: int
    first_seq: str | None
    seen_seq: str | None
    accepted_seq: str | None
    accepted_at: str | None
    newest: str | None
    arrival: str | None
    open_arrival: str | None
    open_unmarked: int
    open_seq: str | None
    days: int
    profile: BatchProfile | None = None

    @classmethod
    def of(cls, found: Mapping[str, Any], profile: BatchProfile | None) -> Summary:
        """From the values of `summary_aggregates`."""
        records = {name: found[name] for name in _OUTCOMES}
        others = {field.name: found[field.name] for field in fields(cls) if field.name in found}
        return cls(**{**others, "records": records, "profile": profile})

    def late(self, decided: DataFrame, horizon: str) -> Late:
        """The records of a batch that no longer wait.

        Args:
            horizon: up to here nothing waits any more.
        """
        if not self.records[PENDING]:
            return Late()
        is_update = F.col("change_oper") == "U"
        found = (
            decided.filter(is_pending_too_long(horizon))
            .agg(
                F.count_if(is_update),
                F.count_if(F.col("change_oper") == "B"),
                F.max(F.when(is_update, F.col("change_seq"))),
                F.date_format(F.max(F.when(is_update, F.col("changed_at"))), ISO_TIMESTAMP),
            )
            .collect()[0]
        )
        return Late(*found)

    def counts(self, late: Late, *, before_images: bool) -> BatchCounts:
        """How many records became what.

        Args:
            late: the records that no longer wait.
            before_images: whether the source stores them.
        """
        without = self.updates - self.with_before_image if before_images else 0
        return BatchCounts(
            accepted=self.records[ACCEPTED] + late.updates,
            rejected=self.records[REJECTED] + late.images,
            duplicates=self.records[DUPLICATE],
            pending=self.records[PENDING] - late.updates - late.images,
            updates=self.updates + late.updates,
            without_before_image=without + late.updates,
        )


def columns_in_no_record(
    decided: DataFrame, columns: Sequence[str], *, counts_nulls: bool
) -> list[str]:
    """Columns that none of the accepted images of a batch has; none without images.

    Args:
        counts_nulls: a NULL counts as a value.
    """
    is_image = (F.col("outcome") == ACCEPTED) & F.col("change_oper").isin("I", "U", "L")
    is_there = {
        name: F.coalesce(F.array_contains("known_columns", name), F.lit(True))
        & (F.lit(counts_nulls) | column_named(name).isNotNull())
        for name in columns
    }
    found = (
        decided.filter(is_image)
        .agg(*[F.bool_or(condition).alias(name) for name, condition in is_there.items()])
        .collect()[0]
    )
    return [name for name, is_in_some in zip(columns, found, strict=True) if is_in_some is False]


def summary_aggregates(sequence: ChangeSequence) -> dict[str, Column]:
    """Aggregates of decided records, for `Summary.of`."""
    # not by group: Spark sorts all rows for the greatest text of each group
    outcome, is_change = F.col("outcome"), F.col("change_oper") != "L"
    is_accepted = (outcome == ACCEPTED) & is_change
    # a copy of a rejected record is a duplicate, with the reason of the first
    is_sound = F.col("reject_reason").isNull()
    is_seen = outcome.isin(ACCEPTED, PENDING, DUPLICATE) & is_change & is_sound
    is_update = is_accepted & (F.col("change_oper") == "U")
    is_in_future = F.col("reject_reason").eqNullSafe("future_change_seq")
    is_open = (outcome == PENDING) | is_in_future
    has_place = is_position(sequence) & is_change
    is_read_again = has_place & outcome.isin(PENDING, REJECTED)
    accepted_at = F.max(F.when(is_accepted, F.col("changed_at")))
    newest = F.max(F.when(outcome == ACCEPTED, F.col("changed_at")))
    days = F.date_diff(F.max("changed_at"), F.min("changed_at"))
    return {
        **{name: F.count_if(outcome == name) for name in _OUTCOMES},
        "updates": F.count_if(is_update),
        "with_before_image": F.count_if(is_update & F.col("before_record_hash").isNotNull()),
        "first_seq": F.min(F.when(has_place, F.col("change_seq"))),
        "seen_seq": F.max(F.when(is_seen, F.col("change_seq"))),
        "accepted_seq": F.max(F.when(is_accepted, F.col("change_seq"))),
        "accepted_at": F.date_format(accepted_at, ISO_TIMESTAMP),
        "newest": F.date_format(newest, ISO_TIMESTAMP),
        # the mark may be that very time, and would hide all that lands before it
        "arrival": F.max(F.when(~is_in_future, F.col("arrival"))),
        "open_arrival": F.min(F.when(is_open, F.col("arrival"))),
        "open_unmarked": F.count_if(is_open & F.col("arrival").isNull()),
        "open_seq": F.min(F.when(is_read_again, F.col("change_seq"))),
        "days": F.coalesce(days, F.lit(0)),
    }
