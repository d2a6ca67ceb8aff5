"""How a batch is applied to an existing history: incremental, replay or rebuild."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from dbt_afterimage.log_rows.profile import BatchProfile
from dbt_afterimage.storage.progress import least


@dataclass(frozen=True)
class Applied:
    """The part of its log that a history has applied.

    Attributes:
        recorded_at: the newest batch; None when there was none.
        change_seq: the greatest change_seq.
        changed_at: the greatest changed_at.
        unknown_columns: all columns that some open version does not know (R9), and maybe others;
            None where that is not known.
    """

    recorded_at: str | None
    change_seq: str | None
    changed_at: str | None
    unknown_columns: tuple[str, ...] | None = None

    @classmethod
    def of(cls, progress: Mapping[str, Any]) -> Applied:
        """From a row of the progress table, as the macro `_progress_by` yields it."""
        unknown = progress["unknown_columns"]
        return cls(
            progress["recorded_at"],
            progress["change_seq"],
            progress["changed_at"],
            None if unknown is None else tuple(unknown),
        )


@dataclass(frozen=True)
class StoredVersions:
    """Answers of the log and the stored history about a batch, besides its profile.

    Attributes:
        changes: how many changes of the batch the log has.
        is_ahead: history holds batches that its progress lacks, after a run that was killed.
        unknown_columns: columns that some open version does not know.
        contradicts_load: whether a change shows that the base table was ahead of the load (R8).
        continues_transaction: whether a transaction that moves rows between keys began in an
            earlier batch (R7).
    """

    changes: int | None = None
    is_ahead: bool = False
    unknown_columns: tuple[str, ...] = ()
    contradicts_load: bool = False
    continues_transaction: bool = False


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
    profile: BatchProfile,
    applied: Applied,
    stored: StoredVersions,
    *,
    has_base: bool,
    force_full_replay: bool,
) -> VersionsPlan:
    """The cheapest path that gives the history of the whole log (R11, R12).

    Args:
        applied: what was applied before.
        has_base: whether full loads come from a base table, which may be ahead of its load (R8).
    """
    if profile.loads and has_base:
        return VersionsPlan("rebuild", "the batch has a full load of a base table")
    if stored.is_ahead:
        return VersionsPlan("rebuild", "history is ahead of its progress, a run was cut off")
    if applied.change_seq is None:
        return VersionsPlan("rebuild", "no change was applied before")
    reason = reason_to_replay(profile, applied, force_full_replay=force_full_replay)
    if reason is None and stored.contradicts_load:
        reason = "a change shows that the base table was ahead of the load"
    if reason is None and stored.continues_transaction:
        reason = "a transaction that moves rows between keys began in an earlier batch"
    if reason is None:
        return VersionsPlan("incremental", "all changes are newer than those applied before")
    for count, what in ((profile.truncates, "a truncate"), (profile.loads, "a full load")):
        if count:
            return VersionsPlan("rebuild", f"{reason}, and {what}, which concerns every key")
    return VersionsPlan("replay", reason)


def reason_to_replay(
    profile: BatchProfile, applied: Applied, *, force_full_replay: bool
) -> str | None:
    """Why a batch cannot be added to the open versions, as far as its profile shows; else None."""
    if str(profile.first_seq) <= str(applied.change_seq):
        return "the batch has late changes"
    first = least(profile.first_changed_at, profile.first_loaded_at)
    if applied.changed_at and first and first < applied.changed_at:
        return "clocks ran back"
    return "force_full_replay is set" if force_full_replay else None
