"""The content of some changes, which decides the transforms that apply to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt_afterimage.history.names import LOADS
from dbt_afterimage.history.sql import columns
from dbt_afterimage.history.table import HistoryError, HistoryTable
from dbt_afterimage.log_rows.profile import PROFILE, BatchProfile, profiled


@dataclass(frozen=True)
class ChangeContent:
    """What changes and the versions before them hold; transforms for what they lack are left out.

    Attributes:
        forward_filled: columns that some change or prior version does not know (R9), never the key.
        has_boundary_events: whether truncates, or loads after other changes, are among them.
        truncate_scopes: columns that some truncate names in its scope.
        has_loads: whether full loads are among them.
        has_key_changes: whether some update has another key in its before image.
        has_incomplete_key_changes: whether some of those lack a column in both images.
    """

    forward_filled: tuple[str, ...] = ()
    has_boundary_events: bool = False
    truncate_scopes: tuple[str, ...] = ()
    has_loads: bool = False
    has_key_changes: bool = False
    has_incomplete_key_changes: bool = False

    @property
    def fills_along_key_changes(self) -> bool:
        """Whether a row's values have to be forward-filled from its old key to its new one."""
        return (
            bool(self.forward_filled) and self.has_key_changes and self.has_incomplete_key_changes
        )


def content_of(
    profile: BatchProfile,
    table: HistoryTable,
    unknown: Iterable[str] = (),
    *,
    follows_versions: bool = False,
) -> ChangeContent:
    """The content that decides the transforms.

    Args:
        profile: what the changes hold.
        table: the table.
        unknown: columns that some version does not know which the changes continue.
        follows_versions: whether there are versions before the changes. A load ends those that it
            lacks, also without a change before it.

    Raises:
        HistoryError: a truncate has a column in its scope that the table lacks.
    """
    _check_scopes(profile, table)
    unknown_columns = set(unknown)
    if profile.known is not None:
        unknown_columns.update(set(table.columns).difference(profile.known))
    return ChangeContent(
        forward_filled=tuple(name for name in table.values if name in unknown_columns),
        has_boundary_events=profile.has_boundary_events or (follows_versions and profile.loads > 0),
        truncate_scopes=profile.scopes,
        has_loads=profile.loads > 0,
        has_key_changes=profile.key_changes > 0,
        has_incomplete_key_changes=profile.incomplete_key_changes > 0,
    )


def content_of_log(
    changes: DataFrame, profile: BatchProfile, table: HistoryTable, unknown: Iterable[str] = ()
) -> ChangeContent:
    """The content of a whole log; see `content_of`."""
    if has_update_without_image_after_a_load(changes, table):
        unknown = table.columns
    return content_of(profile, table, unknown)


def profile_of(changes: DataFrame, table: HistoryTable) -> BatchProfile:
    """The profile of changes, in one job.

    Raises:
        HistoryError: a truncate has a column in its scope that the table lacks.
    """
    rows = profiled(changes, table.key, table.columns, table.beginning)
    profile = BatchProfile.from_json(str(rows.collect()[0][PROFILE]))
    assert profile is not None
    _check_scopes(profile, table)
    return profile


def _check_scopes(profile: BatchProfile, table: HistoryTable) -> None:
    for name in profile.scopes:
        if name not in table.columns:
            raise HistoryError(
                f"{table.name}: a truncate in its change log has a `truncate_scope` with the "
                f"column `{name}`, which the table lacks, so the rows it ended are unknown. "
                f"Allowed: {', '.join(table.columns)}. Nothing was written. Fix: correct "
                "`truncate_scope` in the staging model, then rebuild the change log from the raw "
                "table: dbt run --vars '{rebuild_changes: true}' --select <log>+."
            )


def has_update_without_image_after_a_load(changes: DataFrame, table: HistoryTable) -> bool:
    """Whether some key's first change after a load is an update without a before image.

    Nothing of such a key's row at the load is known with a live base (R8).
    """
    if table.base != "live":
        return False
    loads = changes.where("load_rows is not null").selectExpr(
        f"collect_list(change_seq) as {LOADS}"
    )
    first = (
        changes.where("change_oper not in ('L', 'T')")
        .crossJoin(loads)
        .groupBy(
            *columns(table.key),
            F.expr(f"size(filter({LOADS}, load_seq -> load_seq <= change_seq))"),
        )
        .agg(
            F.expr("min_by(change_oper = 'U' and before is null, change_seq)").alias("has_no_image")
        )
    )
    return not first.where("has_no_image").isEmpty()
