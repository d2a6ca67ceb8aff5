"""`ref` of a staging model whose catalog has no views."""

from __future__ import annotations

from typing import Any

from dbt_afterimage.dbt_spark.macro_api.registry import dbt_errors
from dbt_afterimage.spark.session import current


def readable_relation(adapter: Any, relation: Any) -> Any:
    """The relation that reads a staging model: another one if a table keeps its statement."""
    found = adapter.get_relation(relation.database, relation.schema, relation.identifier)
    if found is None or found.is_view:
        return relation
    from dbt_afterimage.storage.stored_view import readable_name

    with dbt_errors():
        name = readable_name(current(), str(relation))
    if name == str(relation):
        return relation
    return relation.incorporate(path={"database": None, "schema": None, "identifier": name})
