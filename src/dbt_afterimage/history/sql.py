"""Fragments of Spark SQL that the transforms share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dbt_afterimage.history.names import KIND, RANK
from dbt_afterimage.spark.identifiers import quoted

UPSERTS = "('S', 'L', 'I', 'U', 'K')"
"""Kinds of key events that leave a version open."""


def text(value: str) -> str:
    """A text as an SQL literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def texts(values: Iterable[str]) -> str:
    """An array of texts, typed also when it is empty."""
    listed = ", ".join(map(text, values))
    return f"array({listed})" if listed else "cast(array() as array<string>)"


def columns(names: Iterable[str], prefix: str = "") -> list[str]:
    """Column names as SQL, each with a prefix such as `before.`."""
    return [prefix + quoted(name) for name in names]


def equal(names: Iterable[str], left: str, right: str, operator: str = "<=>") -> str:
    """Equality of columns of two sides, NULL-safe by default."""
    return " and ".join(
        f"{left}.{quoted(name)} {operator} {right}.{quoted(name)}" for name in names
    )


def by_key(key: Sequence[str], *more: str) -> str:
    """Window specification: the events of a key in their order (R1)."""
    partition = ", ".join([*columns(key), *more])
    return f"partition by {partition} order by change_seq, {RANK}"


def is_upsert(kind: str = KIND) -> str:
    """True for a key event that leaves a version open."""
    return f"{kind} in {UPSERTS}"


def knows(known_columns: str, name: str) -> str:
    """True where a list of known columns, NULL for all, holds a column."""
    return f"({known_columns} is null or array_contains({known_columns}, {text(name)}))"


def is_key_change(key: Sequence[str]) -> str:
    """True for a change whose before image has another key; without the key it proves nothing."""
    same = " and ".join(f"before.{quoted(name)} <=> {quoted(name)}" for name in key)
    known = " and ".join(f"array_contains(before_known_columns, {text(name)})" for name in key)
    return f"(before is not null and not ({same}) and (before_known_columns is null or ({known})))"


def is_incomplete(names: Iterable[str]) -> str:
    """True where neither image of an update knows all of some columns."""
    every = texts(names)
    return (
        f"size(array_except({every}, array_union(coalesce(known_columns, {every}),"
        f" coalesce(before_known_columns, if(before is null, array(), {every}))))) > 0"
    )


def was_open_at(change_seq: str, versions: str) -> str:
    """True for the version that holds what its key was just before a change."""
    return (
        f"{change_seq} > {versions}.valid_from_seq and"
        f" ({versions}.valid_to_seq is null or {change_seq} <= {versions}.valid_to_seq)"
    )


def is_open_since(change_seq: str, versions: str) -> str:
    """True for versions that were open at a change_seq, or ended there or later."""
    return f"({versions}.valid_to_seq is null or {versions}.valid_to_seq >= {change_seq})"


def timestamp(moment: str | None) -> str:
    """A timestamp, given as text, as SQL."""
    return f"timestamp {text(moment)}" if moment else "cast(null as timestamp)"
