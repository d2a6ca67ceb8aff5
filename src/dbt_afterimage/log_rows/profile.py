"""Profiles of the changes of a log, found in one scan of them.

The profile of a batch is recorded with its progress, and history plans from it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from dbt_afterimage.log_rows.conditions import is_incomplete, is_key_change

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
    def of(
        cls, found: Mapping[str, Any], columns: Sequence[str], given: Sequence[str]
    ) -> BatchProfile:
        """From the fields of `profiled`, with the same ``columns`` and ``given``."""
        lists = [set(names) for names in found["lists"]]
        if found["unlisted"] and len(given) < len(columns):
            lists.append(set(given))
        values = {field.name: found[field.name] for field in fields(cls) if field.name in found}
        return cls(
            **{**values, "scopes": tuple(sorted(found["scopes"]))},
            known=tuple(sorted(set.intersection(*lists))) if lists else None,
            columns=len(columns),
        )

    def to_json(self) -> str:
        """Its fields, without those that are None."""
        return json.dumps(
            {name: value for name, value in asdict(self).items() if value is not None}
        )

    @classmethod
    def from_json(cls, found: str) -> BatchProfile | None:
        """From `to_json`; None for one of another version's form."""
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
    key: Sequence[str],
    columns: Sequence[str],
    given: Sequence[str],
    beginning: str,
    *,
    recorded_at: str = "recorded_at",
    where: str = "true",
) -> str:
    """An aggregate of rows of a log or of decided records: a struct for `BatchProfile.of`, as SQL.

    Args:
        key: key columns; without them no change is a key change.
        columns: data columns of the log.
        given: those of them that the rows have.
        beginning: the beginning of time, as SQL.
        recorded_at: the batch of a row, as SQL.
        where: the condition on rows that count, never NULL.
    """
    # a load may precede the changes that have landed; its own time bounds those of its rows
    counts = f"{where} and (change_oper <> 'L' or load_rows is not null)"
    is_load = f"{where} and load_rows is not null"
    is_row_of_load = f"{where} and change_oper = 'L'"
    moved = f"{where} and {is_key_change(key)}" if key else "false"
    time = f"coalesce(changed_at, {beginning})"
    known, known_before = "known_columns", "before_known_columns"
    found = {
        "changes": f"count_if({where})",
        "recorded_at": f"cast(max(if({where}, {recorded_at}, null)) as string)",
        "first_seq": f"min(if({where}, change_seq, null))",
        "change_seq": f"max(if({counts}, change_seq, null))",
        "first_changed_at": "cast("
        f"min(if({where} and change_oper <> 'L', {time}, null)) as string)",
        "first_loaded_at": f"cast(min(if({is_row_of_load}, {time}, null)) as string)",
        "changed_at": "cast("
        f"max(if({counts}, if(change_oper = 'L', {time}, changed_at), null)) as string)",
        "inserts": f"count_if({where} and change_oper = 'I')",
        "truncates": f"count_if({where} and change_oper = 'T')",
        "loads": f"count_if({is_load})",
        "load_seq": f"min(if({is_load}, change_seq, null))",
        "key_changes": f"count_if({moved})",
        "incomplete_key_changes": f"count_if({moved} and {is_incomplete(columns, given)})",
        "scopes": "array_distinct(flatten("
        f"collect_set(if({where}, map_keys(truncate_scope), null))))",
        "lists": f"array_union(collect_set(if({where}, {known}, null)),"
        f" collect_set(if({where}, {known_before}, null)))",
        # images without a list, as `conformed` tells them
        "unlisted": f"count_if({where} and ((before is not null and {known_before} is null) or"
        f" ({known} is null and load_rows is null and change_oper in ('I', 'U', 'L'))))",
    }
    return f"struct({', '.join(f'{sql} as {name}' for name, sql in found.items())})"


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
