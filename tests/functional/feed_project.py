"""A dbt project over change feeds: a chain of models per feed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.functional.project_files import changes_model, history_model, write_files, write_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write_project(
    folder: Path, schema: str, tables: dict[str, tuple[dict[str, Any], list[dict[str, str]]]]
) -> None:
    """A project with a chain per feed.

    Args:
        folder: of the project.
        schema: of the raw tables.
        tables: by name, settings besides system and key, and declared columns.
    """
    write_settings(folder)
    entries = [
        {
            "name": table,
            "config": {
                "meta": {"afterimage": {"system": "change_feed", "key": ["id"], **settings}}
            },
            "columns": columns,
        }
        for table, (settings, columns) in tables.items()
    ]
    raw = {"name": "raw", "schema": schema, "tables": entries}
    models = {}
    for table in tables:
        models[f"staging/stg_{table}.sql"] = f"{{{{ stage_change_feed('raw', '{table}') }}}}\n"
        models |= changes_model(table, f"stg_{table}") | history_model(table)
    write_files(folder, {f"models/{path}": content for path, content in models.items()})
    write_files(folder, {"models/sources.yml": {"version": 2, "sources": [raw]}})


def reasons(spark: SparkSession, schema: str, table: str) -> list[tuple[int, str]]:
    """Rejected records: the id in the raw record, and the reason."""
    found = spark.sql(
        "select cast(get_json_object(raw_record, '$.id') as int), reject_reason "
        f"from {schema}.{table}_changes_rejected"
    )
    return sorted(map(tuple, found.collect()))
