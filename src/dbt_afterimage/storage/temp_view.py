"""A name for rows, for statements that take nothing but names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def named_view(rows: DataFrame) -> str:
    """Create a view of rows under a unique name; the caller drops it."""
    name = f"afterimage_{uuid4().hex}"
    rows.createOrReplaceTempView(name)
    return name


@contextmanager
def temporary_view(rows: DataFrame) -> Iterator[str]:
    """While this lasts, a view of rows; no other model has its name, for all share the session."""
    name = named_view(rows)
    try:
        yield name
    finally:
        rows.sparkSession.catalog.dropTempView(name)
