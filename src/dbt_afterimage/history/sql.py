"""Fragments of Spark SQL that the transforms share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dbt_afterimage.history.names import ANCHOR_VERSION, BISECTION_STEPS, KIND, RANK
from dbt_afterimage.spark.identifiers import quoted

RANK_OF_KIND = f"case {KIND} when 'L' then 1 when 'I' then 2 when 'D' then 4 else 3 end"
"""Order of the key events of a key at one change_seq (R1)."""
UPSERTS = f"('{ANCHOR_VERSION}', 'L', 'I', 'U', 'K')"
"""Kinds of key events that leave a version open."""


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


def by_key_backwards(key: Sequence[str], *more: str) -> str:
    """The same from the last event on.

    To look ahead of an event: Spark would read a frame that begins with it again for each event.
    """
    partition = ", ".join([*columns(key), *more])
    return f"partition by {partition} order by change_seq desc, {RANK} desc"


def is_upsert(kind: str = KIND) -> str:
    """True for a key event that leaves a version open."""
    return f"{kind} in {UPSERTS}"


def was_open_at(change_seq: str, versions: str) -> str:
    """True for the version that holds what its key was just before a change."""
    return (
        f"{change_seq} > {versions}.valid_from_seq and"
        f" ({versions}.valid_to_seq is null or {change_seq} <= {versions}.valid_to_seq)"
    )


def is_open_since(change_seq: str, versions: str) -> str:
    """True for versions that were open at a change_seq, or ended there or later."""
    return f"({versions}.valid_to_seq is null or {versions}.valid_to_seq >= {change_seq})"


def bisection_steps(array: str) -> str:
    """BISECTION_STEPS for an array and for shorter ones."""
    bits = f"length(bin(size({array})))"
    return f"reverse(transform(sequence(0, {bits} - 1), bit -> shiftleft(1, bit)))"


def leading(array: str, holds: Callable[[str], str]) -> str:
    """How many of the first elements of an array fulfil a condition, by bisection.

    Args:
        holds: the condition on an element, as SQL; it holds for none after one that it fails for.
    """
    element = f"get({array}, found + step - 1)"
    return (
        f"aggregate({BISECTION_STEPS}, 0,"
        f" (found, step) -> if({holds(element)}, found + step, found))"
    )
