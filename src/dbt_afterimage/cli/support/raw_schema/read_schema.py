"""Reads a raw schema and samples of its data through Spark; bounded, whatever the tables hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar

from dbt_afterimage.cli.support.raw_schema.schema import Column, RawSchema, RawTable
from dbt_afterimage.errors import AfterimageError, explained
from dbt_afterimage.internal_columns import LANDED_COLUMNS
from dbt_afterimage.spark.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Small queries of many tables: their planning on the driver is what takes time.
_THREADS = 8
_ROWS_FOR_UNIQUENESS = 1_000_000
_KEY_PROPERTY = re.compile(
    r"\b(?:identifier-fields|primary[-_.]?key)=\[?([^\],]+(?:,[^\]=,]+)*)\]?(?=[,\]])",
    re.IGNORECASE,
)
_KEY_CONSTRAINT = re.compile(r"PRIMARY KEY \(([^)]*)\)", re.IGNORECASE)


class UnreadableTableError(AfterimageError):
    """Spark cannot read a raw table."""


Item = TypeVar("Item")
Answer = TypeVar("Answer")


class MissingSchemaError(AfterimageError):
    """The raw schema does not exist, or has no table."""


def in_parallel(read: Callable[[Item], Answer], items: Iterable[Item]) -> Iterator[Answer]:
    """The results of all items, in order, read in a few threads."""
    with ThreadPoolExecutor(_THREADS) as pool:
        yield from pool.map(read, items)


def _spark_errors() -> tuple[type[Exception], ...]:
    """Iceberg's catalogs raise an error of Java's where Spark's own raises one of Spark's."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError


@contextmanager
def readable(table: str) -> Iterator[None]:
    """While this lasts, an error of Spark becomes one that names the table."""
    try:
        yield
    except _spark_errors() as error:
        said = explained(str(error)).strip().splitlines()
        # the first line of an error of Java's says where it was raised
        cause = next((line for line in said if not line.startswith("An error occurred")), "nothing")
        raise UnreadableTableError(
            f"{table}: Spark cannot read it: {cause.removeprefix(': ')} Fix: make sure that the "
            "table can be queried."
        ) from error


def is_schema(session: SparkSession, schema: str) -> bool:
    """Whether a schema of this name exists, with or without a catalog."""
    try:
        session.sql(f"describe schema {relation_of(schema)}").collect()
    except _spark_errors():
        return False
    return True


def read_schema(session: SparkSession, schema: str) -> RawSchema:
    """The tables and views of a schema with their columns and declared keys.

    Args:
        schema: its name, with or without a catalog.

    Raises:
        MissingSchemaError: it does not exist or has no table.
    """
    try:
        shown = session.sql(f"show tables in {relation_of(schema)}").collect()
    except _spark_errors() as error:
        schemas = sorted(row[0] for row in session.sql("show schemas").collect())
        raise MissingSchemaError(
            f"Schema {schema}: Spark finds no schema of this name. Schemas of the catalog: "
            f"{', '.join(schemas)}. Fix: correct the name, or land the raw tables first."
        ) from error
    names = [row["tableName"] for row in shown if not row["isTemporary"]]
    try:
        views = session.sql(f"show views in {relation_of(schema)}").collect()
    except _spark_errors():  # a catalog without views
        views = []
    names += [row["viewName"] for row in views if not row["isTemporary"]]
    names = list(dict.fromkeys(names))
    if not names:
        raise MissingSchemaError(
            f"Schema {schema} has no table. Fix: land the raw tables first, or name another schema."
        )
    return RawSchema.of(schema, in_parallel(lambda name: _described(session, schema, name), names))


def relation_of(schema: str, table: str = "") -> str:
    """SQL: a schema, whose name may have a catalog, or a table in it."""
    parts = [*schema.replace("`", "").split("."), *([table.strip("`")] if table else [])]
    return ".".join(map(quoted, parts))


def _described(session: SparkSession, schema: str, name: str) -> RawTable:
    with readable(f"{schema}.{name}"):
        rows = session.sql(f"describe table extended {relation_of(schema, name)}").collect()
    # an empty line and `# Detailed Table Information` end the columns
    listed = list(
        takewhile(lambda row: row["col_name"] and not row["col_name"].startswith("# "), rows)
    )
    columns = [
        Column(row["col_name"], row["data_type"] or "", row["comment"] or "")
        for row in listed
        if row["col_name"] not in LANDED_COLUMNS
    ]
    declared: list[str] = []
    comment = ""
    for row in rows[len(listed) :]:
        label, value = row["col_name"], row["data_type"] or ""
        key = _KEY_CONSTRAINT.search(value)
        if key is None and label == "Table Properties":
            key = _KEY_PROPERTY.search(value)
        if label == "Comment":
            comment = value
        if key is not None:
            declared = [part.strip(' `"') for part in key[1].split(",")]
    return RawTable(name, tuple(columns), tuple(declared), comment)


def unique_keys(
    session: SparkSession,
    relation: str,
    candidates: Sequence[tuple[str, ...]],
    within: Sequence[str] = (),
    least_rows: int = 2,
) -> list[tuple[str, ...]]:
    """The candidates without a value twice, and without NULL.

    Args:
        relation: SQL: a table, or a query in parentheses.
        within: SQL: the groups in each of which a value may be once.
        least_rows: of fewer rows nothing follows; of one row everything is unique.
    """
    if not candidates:
        return []
    counted = ", ".join(
        f"count(distinct {', '.join([*within, *map(quoted, key)])})" for key in candidates
    )
    row: Any = session.sql(
        f"select count(*), {counted} from (select * from {relation} limit {_ROWS_FOR_UNIQUENESS})"
    ).first()
    if row[0] < least_rows:
        return []
    return [key for key, found in zip(candidates, row[1:], strict=True) if row[0] == found]
