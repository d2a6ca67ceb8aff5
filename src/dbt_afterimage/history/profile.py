"""The content of some changes, which decides the transforms that apply to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt_afterimage.history.names import LOADS, own
from dbt_afterimage.history.sql import columns
from dbt_afterimage.history.table import HistoryError, HistoryTable
from dbt_afterimage.log_rows.profile import BatchProfile, profiled


@dataclass(frozen=True)
class ChangeContent:
    """Properties of the changes and prior versions; a transform that they do not need is skipped.

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
    if has_load_image_of_a_key_alone(changes, table):
        unknown = table.columns
    return content_of(profile, table, unknown)


def profile_of(changes: DataFrame, table: HistoryTable) -> BatchProfile:
    """The profile of changes, in one job.

    Raises:
        HistoryError: a truncate has a column in its scope that the table lacks.
    """
    names = table.columns
    found = changes.selectExpr(profiled(table.key, names, names, table.beginning)).collect()[0][0]
    profile = BatchProfile.of(found.asDict(), names, names)
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


def has_load_image_of_a_key_alone(changes: DataFrame, table: HistoryTable) -> bool:
    """Whether nothing but its key is known of some row at a load of a live base (R8).

    The first change after the load is an update without a before image; or a delete without one,
    and the base has lost the row.
    """
    if table.base != "live":
        return False
    epoch = own("load_epoch")
    loads = changes.where("load_rows is not null").selectExpr(
        f"collect_list(change_seq) as {LOADS}"
    )
    rows = changes.where("change_oper <> 'T' and load_rows is null").crossJoin(loads)
    rows = rows.selectExpr(
        *columns(table.key),
        "change_oper",
        "change_seq",
        "before is null as has_no_image",
        f"size(filter({LOADS}, load_seq -> load_seq <= change_seq)) as {epoch}",
    )
    key = [*columns(table.key), epoch]
    first = (
        rows.where("change_oper <> 'L'")
        .groupBy(*key)
        .agg(F.expr("min_by(if(has_no_image, change_oper, null), change_seq)").alias("change_oper"))
    )
    lost = first.where(f"change_oper = 'D' and {epoch} > 0").join(
        rows.where("change_oper = 'L'").select(*key), [*table.key, epoch], "left_anti"
    )
    return not first.where("change_oper = 'U'").unionByName(lost).isEmpty()
