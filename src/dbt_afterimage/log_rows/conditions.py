"""Conditions on rows of a change log, as SQL."""

from __future__ import annotations

from collections.abc import Sequence

from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.spark.literals import text, texts


def knows(known_columns: str, name: str) -> str:
    """True where a list of known columns, NULL for all, holds a column."""
    return f"({known_columns} is null or array_contains({known_columns}, {text(name)}))"


def is_key_change(key: Sequence[str]) -> str:
    """True for a change whose before image has another key; without the key it proves nothing."""
    same = " and ".join(f"before.{quoted(name)} <=> {quoted(name)}" for name in key)
    known = " and ".join(f"array_contains(before_known_columns, {text(name)})" for name in key)
    return f"(before is not null and not ({same}) and (before_known_columns is null or ({known})))"


def is_incomplete(names: Sequence[str], given: Sequence[str] | None = None) -> str:
    """True where neither image of an update knows all of some columns.

    Args:
        given: what an image knows that lists no columns; None for all of them.
    """
    every = texts(names if given is None else given)
    return (
        f"size(array_except({texts(names)}, array_union(coalesce(known_columns, {every}),"
        f" coalesce(before_known_columns, if(before is null, array(), {every}))))) > 0"
    )
