"""Profiles of the changes of a log, found in one scan of them.

The profile of a batch is recorded with its progress, and history plans from it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from dbt_afterimage.log_rows.conditions import is_incomplete, is_key_change

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PROFILE = "profile"
_COUNTS = ("changes", "inserts", "truncates", "loads", "key_changes", "incomplete_key_changes")


@dataclass(frozen=True)
class BatchProfile:
    """The profile of some changes of a log; times are text, as Spark casts them.

    Attributes:
        changes: how many there are.
        recorded_at: their newest batch.
        first_seq: the least change_seq.
        change_seq: the greatest one; a load's marker counts, its rows do not.
        first_changed_at: the least changed_at, the beginning of time where one is unknown (R10).
        first_loaded_at: the same of full loads and their rows.
        changed_at: the greatest one, of the same rows as `change_seq`; of a load without a time,
            the beginning of time.
        inserts: how many inserts.
        truncates: how many truncates.
        loads: how many full loads.
        load_seq: change_seq of the first full load.
        key_changes: how many updates with another key in the before image.
        incomplete_key_changes: how many of those lack a column in both images.
        scopes: columns that some truncate names in its scope.
        known: columns that all images know; None where each knows all.
        columns: how many data columns the log had.
    """

    changes: int
    recorded_at: str | None = None
    first_seq: str | None = None
    change_seq: str | None = None
    first_changed_at: str | None = None
    first_loaded_at: str | None = None
    changed_at: str | None = None
    inserts: int = 0
    truncates: int = 0
    loads: int = 0
    load_seq: str | None = None
    key_changes: int = 0
    incomplete_key_changes: int = 0
    scopes: tuple[str, ...] = ()
    known: tuple[str, ...] | None = None
    columns: int | None = None

    @classmethod
    def from_json(cls, found: str) -> BatchProfile | None:
        """From the column PROFILE of `profiled`; None for one of another version's form."""
        given: dict[str, Any] = json.loads(found)
        if not {*_COUNTS} <= {*given} <= {field.name for field in fields(cls)}:
            return None
        for name in ("scopes", "known"):
            if given.get(name) is not None:
                given[name] = tuple(sorted(given[name]))
        return cls(**given)

    @property
    def has_boundary_events(self) -> bool:
        """Whether truncates, or loads after other changes, are among them."""
        if self.truncates or self.loads > 1:
            return True
        return bool(self.loads) and str(self.first_seq) < str(self.load_seq)


def profiled(
    changes: DataFrame, key: Sequence[str], columns: Sequence[str], beginning: str
) -> DataFrame:
    """One row with the column PROFILE: the fields of `BatchProfile` as JSON.

    Args:
        key: its key columns; without them no change is a key change.
        beginning: the beginning of time, as SQL.
    """
    # a load may precede the changes that have landed; its own time bounds those of its rows
    counts = "change_oper <> 'L' or load_rows is not null"
    moved = is_key_change(key) if key else "false"
    found = {
        "changes": "count(*)",
        "recorded_at": "cast(max(recorded_at) as string)",
        "first_seq": "min(change_seq)",
        "change_seq": f"max(if({counts}, change_seq, null))",
        "first_changed_at": "cast(min(if(change_oper <> 'L',"
        f" coalesce(changed_at, {beginning}), null)) as string)",
        "first_loaded_at": "cast(min(if(change_oper = 'L',"
        f" coalesce(changed_at, {beginning}), null)) as string)",
        "changed_at": f"cast(max(if({counts}, if(change_oper = 'L',"
        f" coalesce(changed_at, {beginning}), changed_at), null)) as string)",
        "inserts": "count_if(change_oper = 'I')",
        "truncates": "count_if(change_oper = 'T')",
        "loads": "count_if(load_rows is not null)",
        "load_seq": "min(if(load_rows is not null, change_seq, null))",
        "key_changes": f"count_if({moved})",
        "incomplete_key_changes": f"count_if({moved} and {is_incomplete(columns)})",
        "scopes": "array_distinct(flatten(collect_set(map_keys(truncate_scope))))",
        "lists": "array_union(collect_set(known_columns), collect_set(before_known_columns))",
        "columns": str(len(columns)),
    }
    rows = changes.selectExpr(*(f"{expression} as {name}" for name, expression in found.items()))
    known = (
        "if(size(lists) = 0, null, aggregate(lists, lists[0],"
        " (common, list) -> array_intersect(common, list))) as known"
    )
    row = ", ".join([*(name for name in found if name != "lists"), known])
    return rows.selectExpr(f"to_json(struct({row})) as {PROFILE}")


def merged(profiles: Sequence[BatchProfile]) -> BatchProfile:
    """The profile of the changes of several batches, of one at least."""

    def given(name: str) -> list[Any]:
        values = [getattr(profile, name) for profile in profiles]
        return [value for value in values if value is not None]

    values: dict[str, Any] = {}
    for name in _COUNTS:
        values[name] = sum(given(name))
    for name in ("recorded_at", "change_seq", "changed_at"):
        values[name] = max(given(name), default=None)
    for name in ("first_seq", "first_changed_at", "first_loaded_at", "load_seq", "columns"):
        values[name] = min(given(name), default=None)
    values["scopes"] = tuple(sorted({name for scopes in given("scopes") for name in scopes}))
    lists = [set(names) for names in given("known")]
    values["known"] = tuple(sorted(set.intersection(*lists))) if lists else None
    return BatchProfile(**values)
