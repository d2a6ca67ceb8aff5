"""The keys to erase, with the types of the change log, and those that key changes connect to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.erased.erasures import killed_with
from dbt_afterimage.erased.key_hash import key_hash_sql, text_sql, value_sql
from dbt_afterimage.erasure.request import ErasureError, ErasureRequest, parse_key
from dbt_afterimage.erasure.tables import ErasableTables
from dbt_afterimage.log_rows.conditions import is_key_change
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.storage.local_relation import local_rows
from dbt_afterimage.storage.schema_evolution import column_types

Texts = tuple[str, ...]
"""The values of a key as text, in the order of the key columns."""


@dataclass(frozen=True)
class Keys:
    """The keys to erase.

    Attributes:
        rows: the key columns, one row per key.
        texts: the same as text.
        hashes: the hash of each, as `afterimage_erasures` has it.
        followed: those of `texts` that only key changes lead to.
    """

    rows: DataFrame
    texts: list[Texts]
    hashes: list[str]
    followed: list[Texts]


@dataclass(frozen=True)
class Scope:
    """The keys to erase, from which tables.

    Attributes:
        columns: columns to set to NULL, as the log spells them; None = whole records.
    """

    tables: ErasableTables
    keys: Keys
    columns: tuple[str, ...] | None

    def rows_of_keys(self, rows: DataFrame) -> DataFrame:
        """Those of some rows that have one of the keys."""
        return rows.join(F.broadcast(self.keys.rows), self.tables.key, "left_semi")


def find_keys(session: SparkSession, tables: ErasableTables, request: ErasureRequest) -> Keys:
    """The keys that a request names and, where it says so, those that key changes lead to.

    Raises:
        ErasureError: a key has no value of the column's type, or key changes lead to others and
            the request does not follow them.
    """
    log = session.table(tables.log)
    types = {name: kind for name, kind in column_types(log.schema).items() if name in tables.key}
    given = [parse_key(text, tables.key, tables.source_table) for text in request.keys]
    requested = _as_stored(session, tables, types, given)
    followed = _connected(session, log, tables, types, requested)
    # the log no longer shows the key changes that a killed call has followed
    followed += _left_by_killed_calls(session, tables, types, [*requested, *followed])
    if followed and not request.follow_key_changes:
        raise ErasureError(
            f"`erase`: rows of {tables.source_table} had other keys, before or later: "
            f"{', '.join(shown(tables.key, texts) for texts in followed)}. Their data would stay "
            "under these. Nothing was erased. Fix: add --follow-key-changes, which erases these "
            "keys too; check first that no other row got one of them in a swap."
        )
    texts = [*requested, *followed]
    rows = _typed(session, tables.key, types, texts)
    return Keys(rows, texts, _hashes(rows, tables, types), followed)


def shown(key: list[str], texts: Texts) -> str:
    """A key as the command line takes it."""
    return ",".join(f"{name}={text}" for name, text in zip(key, texts, strict=True))


def _as_stored(
    session: SparkSession, tables: ErasableTables, types: dict[str, str], given: list[Texts]
) -> list[Texts]:
    """Each key as the text of its typed values: `013` of an integer is `13`."""
    kinds = [types[name] for name in tables.key]
    values = [
        text_sql(value_sql(quoted(name), kind), kind)
        for name, kind in zip(tables.key, kinds, strict=True)
    ]
    texts = local_rows(session, given, _ddl(tables.key)).selectExpr(*values).collect()
    for original, stored in zip(given, texts, strict=True):
        for name, kind, text, value in zip(tables.key, kinds, original, stored, strict=True):
            if value is None:
                raise ErasureError(
                    f"`erase`: --key has {text!r} for `{name}` of {tables.source_table}. Allowed: "
                    f"a value of type {kind}. Nothing was erased. Fix: correct the value."
                )
    return list(dict.fromkeys(tuple(row) for row in texts))


def _left_by_killed_calls(
    session: SparkSession, tables: ErasableTables, types: dict[str, str], texts: list[Texts]
) -> list[Texts]:
    """Other keys of a call that was killed with one of these keys, as far as marts hold them."""
    hashes = _hashes(_typed(session, tables.key, types, texts), tables, types)
    left = killed_with(session, tables.erasures_table, tables.change_log, hashes)
    if not left:
        return []
    values = [text_sql(quoted(name), types[name]) for name in tables.key]
    is_left = F.expr(key_hash_sql(tables.change_log, tables.key, types)).isin(*left)
    found: dict[Texts, None] = {}
    for name in (tables.log, *(mart.table for mart in tables.marts)):
        if session.catalog.tableExists(name):
            rows = session.table(name).where(is_left).selectExpr(*values).distinct().collect()
            found |= dict.fromkeys(tuple(row) for row in rows)
    return list(found)


def _hashes(rows: DataFrame, tables: ErasableTables, types: dict[str, str]) -> list[str]:
    hashed = rows.selectExpr(key_hash_sql(tables.change_log, tables.key, types)).collect()
    return sorted(row[0] for row in hashed)


def _typed(
    session: SparkSession, key: list[str], types: dict[str, str], texts: Iterable[Texts]
) -> DataFrame:
    rows = local_rows(session, list(texts), _ddl(key))
    return rows.selectExpr(
        *[f"{value_sql(quoted(name), types[name])} as {quoted(name)}" for name in key]
    )


def _ddl(key: list[str]) -> str:
    return ", ".join(f"{quoted(name)} string" for name in key)


def _connected(
    session: SparkSession,
    log: DataFrame,
    tables: ErasableTables,
    types: dict[str, str],
    requested: list[Texts],
) -> list[Texts]:
    """All keys that key changes of the log connect with these, in either direction."""

    def of(prefix: str) -> str:
        texts = [text_sql(prefix + quoted(name), types[name]) for name in tables.key]
        return f"array({', '.join(texts)})"

    changes = log.where(is_key_change(tables.key))
    pairs = changes.selectExpr(f"{of('before.')} as old", f"{of('')} as new").distinct()
    found, frontier = dict.fromkeys(requested), list(requested)
    while frontier:
        near = local_rows(session, [(list(texts),) for texts in frontier], "near array<string>")
        leads = [
            pairs.join(F.broadcast(near), F.col(one) == F.col("near")).select(other)
            for one, other in (("old", "new"), ("new", "old"))
        ]
        reached = [tuple(row[0]) for row in leads[0].union(leads[1]).distinct().collect()]
        frontier = [texts for texts in reached if texts not in found]
        found |= dict.fromkeys(frontier)
    return [texts for texts in found if texts not in requested]
