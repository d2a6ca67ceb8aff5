"""The dbt project that is measured: one change table and its chain, and a snapshot as a rival."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
SCHEMA = "bench"
RAW_SCHEMA = "bench_raw"
CHAIN = ("stg_items", "items_changes", "items_history", "items_current", "items_field_changes")

MODELS = {
    "staging/stg_items.sql": "{{ stage_qlik_change_table('raw', 'items__ct', base='items') }}\n",
    "items_changes.py": (
        "from dbt_afterimage.changes import build_changes\n\n\n"
        "def model(dbt, session):\n"
        "    dbt.config(materialized='change_log')\n"
        "    return build_changes(dbt, session, dbt.ref('stg_items'))\n"
    ),
    "items_history.sql": "{{ history(ref('items_changes')) }}\n",
    "items_current.sql": "{{ current(ref('items_history')) }}\n",
    "items_field_changes.sql": "{{ field_changes(ref('items_changes')) }}\n",
}
# What a team without a change log would do: keep the state of the source at each run.
SNAPSHOT = """\
{% snapshot items_snapshot %}
{{ config(
    target_schema=target.schema, unique_key='id', strategy='timestamp', updated_at='updated_at',
    file_format=target.name, invalidate_hard_deletes=true
) }}
select * from {{ source('state', 'items_state') }}
{% endsnapshot %}
"""


def write_project(folder: Path, name: str = "bench") -> None:
    """Write the project's files into a new folder."""
    given = yaml.safe_load((ROOT / "dbt_project.yml").read_text(encoding="utf-8"))
    project = {key: given[key] for key in ("profile", "flags", "vars", "on-run-start")}
    project |= {
        "name": name,
        "macro-paths": [str(ROOT / "macros")],
        "models": {name: {"staging": {"+materialized": "staging_view"}}},
    }
    settings = {"system": "qlik_change_table", "key": ["id"], "base": {"kind": "frozen"}}
    sources = [
        _source("raw", RAW_SCHEMA, {"items__ct": {"afterimage": settings}, "items": {}}),
        _source("state", SCHEMA, {"items_state": {}}),
    ]
    shutil.rmtree(folder, ignore_errors=True)
    write_yaml(folder / "dbt_project.yml", project)
    write_yaml(folder / "models" / "sources.yml", {"version": 2, "sources": sources})
    for path, text in {**MODELS, "../snapshots/items_snapshot.sql": SNAPSHOT}.items():
        target = folder / "models" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def write_profiles(folder: Path, threads: int = 2, cores: int = 2) -> None:
    """Write the example's profile with the benchmark's schema; one thread keeps steps apart."""
    profile = yaml.safe_load((ROOT / "profiles.yml.example").read_text(encoding="utf-8"))
    for output in profile["afterimage"]["outputs"].values():
        output["schema"] = SCHEMA
        output["threads"] = threads
        output["server_side_parameters"]["spark.master"] = f"local[{cores}]"
    write_yaml(folder / "profiles.yml", profile)


def write_yaml(path: Path, content: Any) -> None:
    """Write a YAML file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content), encoding="utf-8")


def _source(name: str, schema: str, tables: dict[str, dict[str, Any]]) -> dict[str, Any]:
    listed = [{"name": table, "config": {"meta": meta}} for table, meta in tables.items()]
    return {"name": name, "schema": schema, "tables": listed}
