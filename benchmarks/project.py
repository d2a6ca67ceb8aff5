"""The dbt project that is measured: one change table, its chain, and a dbt snapshot as baseline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.functional.project_files import (
    changes_model,
    history_model,
    other_marts,
    write_files,
    write_settings,
)

ROOT = Path(__file__).parents[1]
SCHEMA = "bench"
RAW_SCHEMA = "bench_raw"
CHAIN = ("stg_items", "items_changes", "items_history", "items_current", "items_field_changes")

# What a team without a change log would do: store the source's state at each run. On Delta the
# snapshot's table has deletion vectors, as our marts have. On Iceberg the config is `none`, because
# dbt-spark renders an empty set of properties as a clause that Spark cannot parse.
SNAPSHOT = """\
{% snapshot items_snapshot %}
{{ config(
    target_schema=target.schema, unique_key='id', strategy='timestamp', updated_at='updated_at',
    file_format=target.name, invalidate_hard_deletes=true,
    tblproperties={'delta.enableDeletionVectors': 'true'} if target.name == 'delta' else none
) }}
select * from {{ source('state', 'items_state') }}
{% endsnapshot %}
"""


def chain_models(table: str, raw: str) -> dict[str, Any]:
    """The models of one table's chain, by file name.

    Args:
        table: the table's name, part of the models' names.
        raw: the source that has the raw tables `items` and `items__ct`.
    """
    staging = f"{{{{ stage_qlik_change_table('{raw}', 'items__ct', base='items') }}}}\n"
    return {
        f"staging/stg_{table}.sql": staging,
        **changes_model(table, f"stg_{table}"),
        **history_model(table),
        **other_marts(table),
    }


def write_project(folder: Path, *, auto_compact: bool = True) -> None:
    """Write the project's files to a new folder; `auto_compact` is the setting of its table."""
    sources = [
        raw_source("raw", RAW_SCHEMA, auto_compact=auto_compact),
        _source("state", SCHEMA, {"items_state": {}}),
    ]
    write_settings(folder)
    models = chain_models("items", "raw")
    write_files(folder / "models", {**models, "sources.yml": {"version": 2, "sources": sources}})
    write_files(folder / "snapshots", {"items_snapshot.sql": SNAPSHOT})


def write_profiles(
    folder: Path, threads: int = 2, settings: Mapping[str, str] | None = None
) -> None:
    """Write `profiles.yml.example` with the benchmark's schema, threads and Spark settings."""
    profile = _example_profile()
    for output in profile["afterimage"]["outputs"].values():
        output["schema"] = SCHEMA
        output["threads"] = threads
        output["server_side_parameters"] |= settings or {}
    write_files(folder, {"profiles.yml": profile})


def spark_settings(table_format: str) -> dict[str, str]:
    """The Spark settings of `profiles.yml.example`, with the versions of the jars."""
    output = _example_profile()["afterimage"]["outputs"][table_format]
    return dict(output["server_side_parameters"])


def raw_source(name: str, schema: str, *, auto_compact: bool = True) -> dict[str, Any]:
    """A dbt source with the raw tables of one chain."""
    settings = {
        "system": "qlik_change_table",
        "key": ["id"],
        "base": {"kind": "frozen"},
        "auto_compact": auto_compact,
    }
    return _source(name, schema, {"items__ct": {"afterimage": settings}, "items": {}})


def _example_profile() -> Any:
    return yaml.safe_load((ROOT / "profiles.yml.example").read_text(encoding="utf-8"))


def _source(name: str, schema: str, tables: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A dbt source, from the `meta` of each table."""
    listed = [{"name": table, "config": {"meta": meta}} for table, meta in tables.items()]
    return {"name": name, "schema": schema, "tables": listed}
