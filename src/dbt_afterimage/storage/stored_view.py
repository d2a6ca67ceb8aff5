"""Views of a catalog that has none: a table keeps the statement, a temporary view is read.

The table has the columns of the view, no rows, and the statement in a property. A process that
reads the view creates a temporary view of the statement first (docs/decisions/0093).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from dbt_afterimage.storage.schema_evolution import table_properties

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STATEMENT = "afterimage.statement"
"""Property of the table: the statement of the view."""
_READS = "afterimage.reads"
"""Property of the table: JSON, names of other such views that the statement reads."""


def stored_view_properties(statement: str, reads: list[str]) -> dict[str, str]:
    """Properties of the table that keeps a view.

    Args:
        reads: names of views that it reads, each perhaps kept in the same way.
    """
    return {STATEMENT: statement, _READS: json.dumps(reads)}


def readable_name(session: SparkSession, relation: str) -> str:
    """The name under which Spark reads a relation: its own, or that of a temporary view."""
    properties = table_properties(session, relation)
    if STATEMENT not in properties:
        return relation
    for name in json.loads(properties[_READS]):
        readable_name(session, name)
    # Spark keeps the text: each reader sees the tables as they are then
    view = temporary_name(relation)
    session.sql(f"create or replace temporary view {view} as {properties[STATEMENT]}")
    return view


def temporary_name(relation: str) -> str:
    """The name of the temporary view of a stored view: the same in each process."""
    return "afterimage_view_" + re.sub(r"\W+", "__", relation.replace("`", ""))


def statement_of(session: SparkSession, view: str) -> str:
    """The text of a staging view; in the catalog's own view it follows the properties."""
    stored = table_properties(session, view).get(STATEMENT)
    if stored is not None:
        return stored
    (row,) = session.sql(f"show create table {view}").collect()
    _, _, text = row[0].partition("'afterimage.definition'")
    return re.split(r"\nAS\s", text, maxsplit=1)[-1]
