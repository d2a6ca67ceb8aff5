"""What one run adds to the decoded log, decided but not written yet."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame


@dataclass(frozen=True)
class LogBatch:
    """One append to the decoded log.

    Attributes:
        rows: the rows, with all columns of the table; maybe none.
        is_empty: nothing was committed at the source since the last run.
        last_commit: address of the last COMMIT that is read, None before the first.
        recorded_at: the batch's identity, ISO text in UTC.
        recorded_after: the identity of the table's last batch, or None.
        is_rebuild: the rows replace the table's instead of being appended.
        is_progress_behind: a killed run did not note what it had written.
        cached: what to release once the batch is written.
    """

    rows: DataFrame
    is_empty: bool
    last_commit: str | None
    recorded_at: str
    recorded_after: str | None
    is_rebuild: bool
    is_progress_behind: bool
    cached: DataFrame
