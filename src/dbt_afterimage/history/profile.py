"""What changes hold, found in one look at them; plans and transforms go by it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt_afterimage.history.names import LOADS
from dbt_afterimage.history.sql import columns, is_incomplete, is_key_change
from dbt_afterimage.history.table import HistoryError, HistoryTable

PROFILE = "profile"


@dataclass(frozen=True)
class BatchProfile:
    """What some changes of a log hold.

    Attributes:
        changes: how many there are.
        recorded_at: their newest batch.
        first_seq: the least change_seq.
        change_seq: the greatest one; a load's marker counts, its rows do not.
        first_changed_at: the least changed_at, the beginning of time where one is unknown (R10).
        changed_at: the greatest one, of the same rows as `change_seq`.
        truncates: how many truncates.
        loads: how many full loads.
        load_seq: change_seq of the first full load.
        key_changes: how many updates with another key in the before image.
        incomplete_key_changes: how many of those lack a column in both images.
        scopes: columns that some truncate names in its scope.
        known: the distinct lists of known columns, of both images.
    """

    changes: int
    recorded_at: str | None = None
    first_seq: str | None = None
    change_seq: str | None = None
    first_changed_at: str | None = None
    changed_at: str | None = None
    truncates: int = 0
    loads: int = 0
    load_seq: str | None = None
    key_changes: int = 0
    incomplete_key_changes: int = 0
    scopes: tuple[str, ...] = ()
    known: tuple[tuple[str, ...], ...] = ()

    @property
    def has_boundary_events(self) -> bool:
        """Whether truncates, or loads after other changes, are among them."""
        if self.truncates or self.loads > 1:
            return True
        return bool(self.loads) and str(self.first_seq) < str(self.load_seq)

    def content(self, table: HistoryTable, unknown: Iterable[str] = ()) -> ChangeContent:
        """What the transforms go by.

        Args:
            table: the table.
            unknown: columns that some version does not know which the changes continue.
        """
        unknown_columns = set(unknown)
        for known in self.known:
            unknown_columns.update(set(table.columns).difference(known))
        return ChangeContent(
            forward_filled=tuple(name for name in table.values if name in unknown_columns),
            has_boundary_events=self.has_boundary_events,
            truncate_scopes=self.scopes,
            has_loads=self.loads > 0,
            has_key_changes=self.key_changes > 0,
            has_incomplete_key_changes=self.incomplete_key_changes > 0,
        )


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


def profiled(changes: DataFrame, table: HistoryTable) -> DataFrame:
    """One row with the column PROFILE: the fields of `BatchProfile` as JSON."""
    # a load may precede the changes that have landed; its own time bounds those of its rows
    counts = "change_oper <> 'L' or load_rows is not null"
    moved = is_key_change(table.key)
    fields = {
        "changes": "count(*)",
        "recorded_at": "cast(max(recorded_at) as string)",
        "first_seq": "min(change_seq)",
        "change_seq": f"max(if({counts}, change_seq, null))",
        "first_changed_at": "cast(min(if(change_oper <> 'L',"
        f" coalesce(changed_at, {table.beginning}), null)) as string)",
        "changed_at": f"cast(max(if({counts}, changed_at, null)) as string)",
        "truncates": "count_if(change_oper = 'T')",
        "loads": "count_if(load_rows is not null)",
        "load_seq": "min(if(load_rows is not null, change_seq, null))",
        "key_changes": f"count_if({moved})",
        "incomplete_key_changes": f"count_if({moved} and {is_incomplete(table.columns)})",
        "scopes": "array_distinct(flatten(collect_set(map_keys(truncate_scope))))",
        "known": "array_union(collect_set(known_columns), collect_set(before_known_columns))",
    }
    row = ", ".join(f"{expression} as {name}" for name, expression in fields.items())
    return changes.selectExpr(f"to_json(struct({row})) as {PROFILE}")


def read_profile(found: str, table: HistoryTable) -> BatchProfile:
    """The profile from its JSON.

    Raises:
        HistoryError: a truncate has a column in its scope that the table lacks.
    """
    fields = json.loads(found)
    known = tuple(tuple(names) for names in fields.pop("known", []))
    scopes = tuple(sorted(fields.pop("scopes", [])))
    for name in scopes:
        if name not in table.columns:
            raise HistoryError(
                f"{table.name}: a truncate in its change log has a `truncate_scope` with the "
                f"column `{name}`, which the table lacks, so which rows it ended cannot be told. "
                f"Allowed: {', '.join(table.columns)}. Fix: correct `truncate_scope` in the "
                "staging model."
            )
    return BatchProfile(**fields, known=known, scopes=scopes)


def profile_of(changes: DataFrame, table: HistoryTable) -> BatchProfile:
    """The profile of changes, in one job."""
    return read_profile(str(profiled(changes, table).collect()[0][PROFILE]), table)


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
