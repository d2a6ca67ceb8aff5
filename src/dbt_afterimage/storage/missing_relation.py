"""A relation that does not exist: where it was expected, and what is there."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from dbt_afterimage.settings.suggestions import similar_names
from dbt_afterimage.spark.identifiers import quoted

_NOT_FOUND = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")
_SHOWN_NAMES = 5
"""How many names a message lists."""


class MissingRelationError(LookupError):
    """A relation does not exist; the text is meant for the user."""


def is_missing(error: AnalysisException) -> bool:
    """Whether Spark says that a table, a view or its schema does not exist."""
    return error.getCondition() in _NOT_FOUND


def describe_missing(session: SparkSession, relation: str) -> str:
    """Which relation does not exist, in which catalog and schema, and similar names there.

    Args:
        relation: its name, with its schema and perhaps its catalog.
    """
    parts = relation.replace("`", "").split(".")
    # by SQL: in a thread of dbt's the catalog API does not know the session's settings
    (current,) = session.sql("select current_catalog()").collect()
    catalog = parts[0] if len(parts) > 2 else current[0]
    schema, name = ".".join(parts[-2:-1]), parts[-1]
    text = f"{'.'.join(parts)} does not exist"
    schemas = _names(session, f"show namespaces in {quoted(catalog)}", 0)
    if schema.lower() not in map(str.lower, schemas):
        return f"{text}: catalog {catalog} has no schema {schema}.{_similar(schema, schemas)}"
    at = f"{quoted(catalog)}.{quoted(schema)}"
    tables, views = (_names(session, f"show {kind} in {at}", 1) for kind in ("tables", "views"))
    return (
        f"{text}: schema {schema} of catalog {catalog} has no such table or view."
        f"{_similar(name, sorted({*tables, *views}))}"
    )


def existing_table(session: SparkSession) -> Callable[[str], DataFrame]:
    """`session.table`, with more information on a relation that does not exist.

    Raises:
        MissingRelationError: by the function: the relation, or one that a view reads, is missing.
    """

    def table(name: str) -> DataFrame:
        try:
            found = session.table(name)
            # over Connect, nothing is looked up before the columns are asked for
            _ = found.columns
        except AnalysisException as error:
            if not is_missing(error):
                raise
            missing = (error.getMessageParameters() or {}).get("relationName", name)
            raise MissingRelationError(
                f"{describe_missing(session, missing)} Fix: correct `schema` and `identifier` of "
                "the source, or wait until the table is there, and run again."
            ) from error
        return found

    return table


def _names(session: SparkSession, statement: str, place: int) -> list[str]:
    try:
        return [row[place] for row in session.sql(statement).collect()]
    except AnalysisException:  # a catalog without views, for example
        return []


def _similar(name: str, names: list[str]) -> str:
    close = similar_names(name, names, _SHOWN_NAMES)
    if close:
        return f" Similar names there: {', '.join(close)}."
    if names:
        more = ", ..." if len(names) > _SHOWN_NAMES else ""
        return f" {len(names):,} others are there: {', '.join(names[:_SHOWN_NAMES])}{more}."
    return " Nothing is there."
