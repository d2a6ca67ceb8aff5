"""A name for rows, for statements that take nothing but names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from pyspark.sql import DataFrame


@contextmanager
def temporary_view(rows: DataFrame) -> Iterator[str]:
    """While this lasts, a view of rows; its name is no other model's, for all share the session."""
    name = f"afterimage_{uuid4().hex}"
    rows.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        rows.sparkSession.catalog.dropTempView(name)
