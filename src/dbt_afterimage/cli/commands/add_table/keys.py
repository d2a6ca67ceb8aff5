"""Proposes a key: from what the base table declares, from deletes, else from unique values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbt_afterimage.cli.commands.add_table.proposal import KeyProposal
from dbt_afterimage.cli.support.raw_schema.read_schema import relation_of, unique_keys
from dbt_afterimage.cli.support.raw_schema.schema import RawSchema, RawTable
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.spark.literals import text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLED_RECORDS = 500
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


@dataclass(frozen=True)
class Sample:
    """A sample of a table's data.

    Attributes:
        operations: those of updates, as far as the table has them.
        deletes: the columns that each sampled delete fills in; some sources fill in the key only.
        unique: sets of columns that have no value twice in a full load or in the inserts.
    """

    operations: Collection[str | int] = frozenset()
    deletes: Sequence[Collection[str]] = ()
    unique: Collection[tuple[str, ...]] = ()


def propose_key(
    table: str,
    columns: Sequence[str],
    base: RawTable | None,
    sample: Sample,
    where: str = "the base table",
) -> KeyProposal:
    """The key of a table.

    Args:
        columns: its data columns, in order.
        where: what declares the key, or in which rows columns are unique, for the user.
    """
    by_name = {name.lower(): name for name in columns}
    declared = [name.lower() for name in base.declared_key] if base else []
    if declared and by_name.keys() >= set(declared):
        found = tuple(by_name[name] for name in declared)
        return KeyProposal(found, f"{where} declares it", is_sure=True)
    if filled := agreed(sample.deletes, columns):
        return KeyProposal(filled, "deletes fill in these columns only", is_sure=True)
    candidates = [key for key in key_candidates(table, columns) if key in sample.unique]
    if not candidates:
        return KeyProposal((), "there is no evidence for any column", is_sure=False)
    singles = [key for key in candidates if len(key) == 1]
    others = [key for key in candidates[1:] if len(key) == 1 or not singles]
    if not others:
        return KeyProposal(candidates[0], f"unique in {where}", is_sure=True)
    also = ", ".join(" + ".join(key) for key in others)
    return KeyProposal(candidates[0], f"unique in {where}, as is {also}", is_sure=False)


def agreed(sets: Iterable[Collection[str]], columns: Sequence[str]) -> tuple[str, ...]:
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


def sampled_deletes(
    session: SparkSession, relation: str, is_delete: str, columns: Sequence[str]
) -> tuple[frozenset[str], ...]:
    """The columns that each of some deletes fills in.

    Args:
        is_delete: condition on it, as SQL.
    """
    filled = ", ".join(f"if({quoted(name)} is null, null, {text(name)})" for name in columns)
    rows = session.sql(
        f"select array_compact(array({filled})) as filled from {relation} "
        f"where {is_delete} limit {SAMPLED_RECORDS}"
    ).collect()
    return tuple(frozenset(row["filled"]) for row in rows)


def unique_in_load(
    session: SparkSession,
    schema: RawSchema,
    base: RawTable | None,
    table: str,
    columns: Sequence[str],
) -> Sequence[tuple[str, ...]]:
    """Candidates for the key that are unique in a full load; none if it declares its key.

    Args:
        table: the source table's name in model names.
        columns: its data columns, in order.
    """
    if base is None or base.declared_key:
        return ()
    has = base.types().keys()
    candidates = [
        key for key in key_candidates(table, columns) if has >= {name.lower() for name in key}
    ]
    return unique_keys(session, relation_of(schema.name, base.name), candidates)
