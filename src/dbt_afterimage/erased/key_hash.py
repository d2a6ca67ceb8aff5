"""The hash by which an erasure knows the keys whose data it removed, without naming them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.spark.literals import text


def key_hash_sql(change_log: str, key: Sequence[str], types: Mapping[str, str]) -> str:
    """SQL: SHA-256, as hex text, of a key's values as text and of the change log's name.

    A wider type gives the same text, so a hash stays what it is when a column becomes wider. The
    name makes equal keys of two tables different hashes.
    """
    texts = [text_sql(quoted(name), types[name]) for name in key]
    return f"sha2(concat({text(change_log)}, to_json(array({', '.join(texts)}))), 256)"


def text_sql(column: str, kind: str) -> str:
    """SQL: a value as text; binary values in hex."""
    return f"hex({column})" if kind == "binary" else f"cast({column} as string)"


def value_sql(column: str, kind: str) -> str:
    """SQL: the value that `text_sql` gives a text for; NULL for a text that is none."""
    return f"unhex({column})" if kind == "binary" else f"try_cast({column} as {kind})"
