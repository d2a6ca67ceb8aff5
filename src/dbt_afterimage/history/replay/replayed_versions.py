"""Versions that are built again from the log, and how they differ from the stored ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt_afterimage.history.affected_keys import FEW_KEYS, keys_of
from dbt_afterimage.history.differences import differing_versions
from dbt_afterimage.history.names import REPLAY_FROM
from dbt_afterimage.history.plan import VersionsPlan
from dbt_afterimage.history.profile import ChangeContent, content_of, content_of_log, profile_of
from dbt_afterimage.history.replay.contradicted_loads import last_load
from dbt_afterimage.history.replay.replayed_keys import (
    ANCHOR_SEQ,
    UNKNOWN_COLUMNS,
    replayed_keys,
    without_filled_anchors,
)
from dbt_afterimage.history.sql import equal, is_open_since, was_open_at
from dbt_afterimage.history.table import HistoryTable
from dbt_afterimage.history.versions import versions
from dbt_afterimage.log_rows.profile import BatchProfile
from dbt_afterimage.spark.literals import text
from dbt_afterimage.storage.checkpoint import checkpoint


def differences_to_log(
    changes: DataFrame,
    history: DataFrame,
    table: HistoryTable,
    content: ChangeContent,
    keys: DataFrame | None,
    *,
    checkpoints: list[DataFrame],
) -> DataFrame:
    """The differences between stored versions and those of the whole log."""
    made = versions(changes, table, content, checkpoints=checkpoints, affected_keys=keys)
    stored = history
    if keys is not None:
        same = equal(table.key, "stored", "keys", "=")
        stored = history.alias("stored").join(keys.alias("keys"), F.expr(same), "left_semi")
    return differing_versions(made, stored, table.version_id)


@dataclass(frozen=True)
class Replayed:
    """The result of a replay or a rebuild.

    Attributes:
        differences: rows to insert, update and delete.
        plan: the path taken, and why.
        from_seq: no version that had ended before is affected; None = the whole history is.
    """

    differences: DataFrame
    plan: VersionsPlan
    from_seq: str | None = None


@dataclass(frozen=True)
class Replay:
    """A batch that cannot be added to the open versions.

    Attributes:
        changes: the log.
        history: the stored versions.
        table: the table.
        profile: the profile of the batch.
        is_new: condition that selects the batch.
        checkpoints: rows to free once the differences are written.
    """

    changes: DataFrame
    history: DataFrame
    table: HistoryTable
    profile: BatchProfile
    is_new: str
    checkpoints: list[DataFrame] = field(default_factory=list)

    def replayed(self, plan: VersionsPlan, *, force_full_replay: bool) -> Replayed:
        """The differences to the stored history."""
        if plan.path == "rebuild":
            return self._rebuilt(plan)
        later = None
        if not force_full_replay:
            later = profile_of(self._since(str(self.profile.first_seq)), self.table)
        if later is None or later.loads:
            return self._from_beginning(plan.because("; from the beginning of the log"))
        return self._from_first_changes(plan, later)

    def _from_first_changes(self, plan: VersionsPlan, later: BatchProfile) -> Replayed:
        """Each key from its first change in the batch on, if its anchor version suffices."""
        table, from_seq = self.table, None
        newest_load = last_load(self.changes) if table.base else None
        keys = self._checkpoint(
            replayed_keys(
                self.changes, self.history, table, self.profile, later, self.is_new, newest_load
            )
        )
        whole, count, anchor_seq, lacking = keys.selectExpr(
            f"count_if({REPLAY_FROM} is null)",
            "count(*)",
            f"min(case when {REPLAY_FROM} is not null then {ANCHOR_SEQ} end)",
            f"array_distinct(flatten(collect_set({UNKNOWN_COLUMNS})))",
        ).collect()[0]
        has_few_keys = count <= FEW_KEYS
        if anchor_seq:
            keys = self._checkpoint(
                without_filled_anchors(
                    keys, self._since(anchor_seq), table, has_few_keys=has_few_keys
                )
            )
            whole = keys.where(f"{REPLAY_FROM} is null").count()
        if whole:
            plan = plan.because(f"; {whole} of {count} keys from the beginning of the log")
            changes, content = self.changes, self._content_of_log(lacking)
        else:
            from_seq = str(self.profile.first_seq)
            plan = plan.because(f"; read from change_seq {from_seq} on")
            changes, content = self._since(from_seq), content_of(later, table, lacking)
        if content.fills_along_key_changes:
            return self._rebuilt_along_key_changes(plan)
        # read once, with all columns: the anchor versions are among what may change
        stored = self._checkpoint(self._replaced_versions(keys, from_seq, has_few_keys))
        made = versions(
            changes,
            table,
            content,
            checkpoints=self.checkpoints,
            affected_keys=keys,
            prior=stored.alias("stored").where(was_open_at(f"stored.{REPLAY_FROM}", "stored")),
            replays=True,
            has_few_keys=has_few_keys,
        )
        return Replayed(differing_versions(made, stored, table.version_id), plan, from_seq)

    def _from_beginning(self, plan: VersionsPlan) -> Replayed:
        """The batch's keys from the whole log."""
        table = self.table
        content = self._content_of_log()
        if content.fills_along_key_changes:
            return self._rebuilt_along_key_changes(plan)
        keys = keys_of(
            self.changes.where(self.is_new), table, has_key_changes=self.profile.key_changes > 0
        )
        return Replayed(self._differences(content, keys), plan)

    def _rebuilt_along_key_changes(self, plan: VersionsPlan) -> Replayed:
        because = plan.because(", and key changes carry values from key to key")
        return self._rebuilt(replace(because, path="rebuild"))

    def _rebuilt(self, plan: VersionsPlan) -> Replayed:
        return Replayed(self._differences(self._content_of_log()), plan)

    def _differences(self, content: ChangeContent, keys: DataFrame | None = None) -> DataFrame:
        return differences_to_log(
            self.changes, self.history, self.table, content, keys, checkpoints=self.checkpoints
        )

    def _replaced_versions(
        self, keys: DataFrame, from_seq: str | None, has_few_keys: bool
    ) -> DataFrame:
        """The stored versions of the keys as far as they may change, with REPLAY_FROM."""
        affected = keys.hint("broadcast") if has_few_keys else keys
        same = equal(self.table.key, "stored", "keys", "=")
        may_change = (
            f"(keys.{REPLAY_FROM} is null or {is_open_since(f'keys.{REPLAY_FROM}', 'stored')})"
        )
        if from_seq:
            may_change += f" and {is_open_since(text(from_seq), 'stored')}"
        return (
            self.history.alias("stored")
            .join(affected.alias("keys"), F.expr(f"{same} and {may_change}"))
            .selectExpr("stored.*", f"keys.{REPLAY_FROM}")
        )

    def _content_of_log(self, unknown: Iterable[str] = ()) -> ChangeContent:
        profile = profile_of(self.changes, self.table)
        return content_of_log(self.changes, profile, self.table, unknown)

    def _since(self, change_seq: str) -> DataFrame:
        return self.changes.where(f"change_seq >= {text(change_seq)}")

    def _checkpoint(self, rows: DataFrame) -> DataFrame:
        kept = checkpoint(rows)
        self.checkpoints.append(kept)
        return kept
