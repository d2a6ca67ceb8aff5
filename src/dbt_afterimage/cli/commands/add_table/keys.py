"""Proposes a key: from what the base table declares, from deletes, else from unique values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from dbt_afterimage.cli.commands.add_table.proposal import KeyProposal
from dbt_afterimage.cli.commands.add_table.raw_schema import RawTable

# Of the deletes, how many must fill in the same columns.
_AGREEMENT = 0.9
_KEY_NAME = re.compile(r"(^|[_-])(id|key|no|num|nr|number|code|guid|uuid|pk)$", re.IGNORECASE)
_LINE_NAME = re.compile(r"(line|item|pos|position|seq|sequence)", re.IGNORECASE)
_MOST_CANDIDATES = 8


def key_candidates(table: str, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Sets of columns whose names look like a key, the likeliest first.

    Args:
        table: the table's name; `invoice_id` is likelier the key of `invoices` than `customer_id`.
        columns: its data columns, in order; a key tends to come first.
    """
    stem = re.sub(r"\W", "", table).lower().rstrip("s")

    def rank(name: str) -> tuple[bool, bool, int]:
        plain = re.sub(r"[\W_]", "", name).lower()
        is_own = plain in ("id", "key") or plain.startswith(stem.replace("_", ""))
        return (not is_own, name != columns[0], list(columns).index(name))

    named = sorted((name for name in columns if _KEY_NAME.search(name)), key=rank)
    pairs = [
        (first, second)
        for first in named
        for second in columns
        if second != first and _LINE_NAME.search(second)
    ]
    singles = [(name,) for name in named]
    if columns and (columns[0],) not in singles:
        singles.append((columns[0],))
    return [*singles[:_MOST_CANDIDATES], *pairs[:_MOST_CANDIDATES]]


def propose_key(
    table: str,
    columns: Sequence[str],
    base: RawTable | None = None,
    deletes: Iterable[Collection[str]] = (),
    unique: Collection[tuple[str, ...]] = (),
    where: str = "in the base table",
    declared_by: str = "the base table",
) -> KeyProposal:
    """The key of a table.

    Args:
        columns: its data columns, in order.
        deletes: per sampled delete, the columns that it fills in.
        unique: sets of columns that have no value twice.
        where: in which rows, for the user.
        declared_by: what `base` is, for the user.
    """
    by_name = {name.lower(): name for name in columns}
    declared = [by_name.get(name.lower()) for name in base.declared_key] if base else []
    if declared and None not in declared:
        found = tuple(name for name in declared if name is not None)
        return KeyProposal(found, f"{declared_by} declares it", is_sure=True)

    filled = _agreed(deletes, columns)
    if filled:
        return KeyProposal(filled, "deletes fill in these columns only", is_sure=True)

    candidates = [key for key in key_candidates(table, columns) if key in unique]
    if not candidates:
        return KeyProposal((), "there is no evidence for any column", is_sure=False)
    singles = [key for key in candidates if len(key) == 1]
    others = [key for key in candidates[1:] if len(key) == 1 or not singles]
    if not others:
        return KeyProposal(candidates[0], f"unique {where}", is_sure=True)
    also = ", ".join(" + ".join(key) for key in others)
    return KeyProposal(candidates[0], f"unique {where}, as is {also}", is_sure=False)


def _agreed(sets: Iterable[Collection[str]], columns: Sequence[str]) -> tuple[str, ...]:
    """The columns of the one set that nearly all have; none if that is all columns, or no column.

    A single record may be an odd one, so a set counts from two records on.
    """
    counted = Counter(frozenset(found) for found in sets)
    if not counted:
        return ()
    common, times = counted.most_common(1)[0]
    total = sum(counted.values())
    if not common or len(common) == len(columns) or times < _AGREEMENT * total or total < 2:
        return ()
    return tuple(name for name in columns if name in common)
