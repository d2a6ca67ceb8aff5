"""The batch of a change log, decided but not written yet."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from dbt_afterimage.change_log.deciding.quarantine import Rejects

_MISSING_IMAGE_SHARE = 0.1
"""Of the updates, the share of before images below which the source seems to store none."""


@dataclass(frozen=True)
class BatchCounts:
    """Records of a batch by what became of them.

    Attributes:
        accepted: changes for the log.
        rejected: records that no run before has rejected.
        duplicates: copies.
        pending: updates and before images that wait for each other.
        updates: those of the accepted changes that are updates.
        without_before_image: those of the updates that should have a before image and have none.
    """

    accepted: int = 0
    rejected: int = 0
    duplicates: int = 0
    pending: int = 0
    updates: int = 0
    without_before_image: int = 0

    @property
    def lacks_before_images(self) -> bool:
        """Nearly all updates lack their before image: the source seems to store none."""
        return self.without_before_image > self.updates * (1 - _MISSING_IMAGE_SHARE)

    def __str__(self) -> str:
        parts = [f"{self.accepted:,} changes recorded"]
        for count, what in (
            (self.rejected, "rejected"),
            (self.pending, "pending"),
            (self.duplicates, "duplicates"),
            (self.without_before_image, "updates accepted without their before image"),
        ):
            if count:
                parts.append(f"{count:,} {what}")
        return ", ".join(parts)


@dataclass(frozen=True)
class ChangeBatch:
    """One append to a change log.

    Attributes:
        accepted: rows for the log (all its columns), or None when there are none.
        rejected: new ones for `<table>_changes_rejected`, or None when there are none.
        repaired: `record_hash` of older rejects whose repaired record is accepted, or None.
        empty_log: a DataFrame without rows that has the log's columns, to create it from.
        empty_rejected: the same for the rejected table.
        change_seq: up to which position the log has read after this batch; None when it has
            neither changes nor loads.
        changed_at: greatest commit time in the log after this batch, ISO text in UTC.
        arrival: greatest mark of arrival that was read, None where staging yields none.
        recorded_at: the batch's identity, ISO text in UTC.
        recorded_after: the identity of the log's last batch when this one was decided, or None.
        base_version: the log's version then, None where it is not known.
        is_rebuild: the rows replace the log instead of being appended.
        is_progress_behind: there is progress to record besides the batch: newer marks of arrival,
            a version of the raw tables, or a batch that a killed run did not record.
        raw_version: what the raw tables held when they were read, as JSON.
        days: from its first change to its last one.
        counts: what became of the records.
        profile: what the accepted changes hold, as `log_rows.profile` says; None where that is
            not known.
        kept: what to unpersist once the batch is written.
    """

    accepted: DataFrame | None
    rejected: Rejects | None
    repaired: DataFrame | None
    empty_log: DataFrame
    empty_rejected: DataFrame
    change_seq: str | None
    changed_at: str | None
    arrival: str | None
    recorded_at: str
    recorded_after: str | None
    base_version: str | None
    is_rebuild: bool
    is_progress_behind: bool
    raw_version: str
    days: int
    counts: BatchCounts
    profile: str | None
    kept: DataFrame
