"""How a batch is applied to an existing history: incremental, replay or rebuild."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pyspark.sql import DataFrame

from dbt_afterimage.history.affected_keys import (
    keys_contradicting_their_load,
    keys_within_a_transaction,
)
from dbt_afterimage.history.profile import BatchProfile
from dbt_afterimage.history.table import HistoryTable


@dataclass(frozen=True)
class Applied:
    """What the history has applied of its log.

    Attributes:
        recorded_at: the newest batch; None when there was none.
        change_seq: the greatest change_seq.
        changed_at: the greatest changed_at.
        is_known: whether this is all; False after a run that was killed before it noted more.
    """

    recorded_at: str | None
    change_seq: str | None
    changed_at: str | None
    is_known: bool = True


@dataclass(frozen=True)
class VersionsPlan:
    """Which versions a run makes.

    Attributes:
        path: incremental: every change is newer than all before it, so the open versions of the
            batch's keys suffice. replay: the batch's keys are built again, from their first change
            in the batch on where that suffices. rebuild: every key is.
        why: the reason, for the log.
    """

    path: Literal["incremental", "replay", "rebuild"]
    why: str

    def because(self, more: str) -> VersionsPlan:
        """The plan with more of its reason."""
        return replace(self, why=self.why + more)


def plan_versions(
    batch: DataFrame,
    profile: BatchProfile,
    opened: DataFrame,
    table: HistoryTable,
    applied: Applied,
    *,
    force_full_replay: bool,
) -> VersionsPlan:
    """The cheapest path that gives the history of the whole log (R11, R12).

    Args:
        batch: the changes to apply. Asked only where there is a base, or key changes.
        profile: what they hold.
        opened: the open versions.
        table: the table.
        applied: what was applied before.
        force_full_replay: the run's var.
    """
    if profile.loads:
        return VersionsPlan("rebuild", "the batch has a full load")
    if not applied.is_known:
        return VersionsPlan("rebuild", "what was applied before is not known, a run was cut off")
    if applied.change_seq is None:
        return VersionsPlan("rebuild", "no change was applied before")
    reasons = _reasons_to_replay(
        batch, profile, opened, table, applied, force_full_replay=force_full_replay
    )
    if not reasons:
        return VersionsPlan("incremental", "all changes are newer than what was applied")
    if profile.truncates:
        return VersionsPlan("rebuild", f"{reasons[0]}, and a truncate, which concerns every key")
    return VersionsPlan("replay", reasons[0])


def _reasons_to_replay(
    batch: DataFrame,
    profile: BatchProfile,
    opened: DataFrame,
    table: HistoryTable,
    applied: Applied,
    *,
    force_full_replay: bool,
) -> Sequence[str]:
    if str(profile.first_seq) <= str(applied.change_seq):
        return ["the batch has late changes"]
    if (
        applied.changed_at
        and profile.first_changed_at
        and profile.first_changed_at < applied.changed_at
    ):
        return ["clocks ran back"]
    if force_full_replay:
        return ["force_full_replay is set"]
    if table.base:
        contradicting = keys_contradicting_their_load(
            batch, opened, table, has_truncates=profile.truncates > 0
        )
        if not contradicting.isEmpty():
            return ["a change shows that the base table was ahead of the load"]
    if profile.key_changes and not keys_within_a_transaction(batch, opened, table).isEmpty():
        return ["a transaction that moves rows between keys began in an earlier batch"]
    return []
