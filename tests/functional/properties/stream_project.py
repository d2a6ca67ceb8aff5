"""A dbt project over the change logs of streams: history, current and field changes of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.functional.properties.stream_tables import Shape

ROOT = Path(__file__).parents[3]


def write_stream_project(
    folder: Path, shapes: Sequence[Shape], macros: Path = ROOT / "macros"
) -> None:
    """Write the project's files; its change logs are the tables of the schema `streams_logs`."""
    (folder / "models").mkdir()
    project = yaml.safe_load((ROOT / "dbt_project.yml").read_text(encoding="utf-8"))
    _write_yaml(
        folder / "dbt_project.yml",
        {
            "name": "streams",
            "profile": "afterimage",
            "macro-paths": [str(macros)],
            "vars": project["vars"],
            "on-run-start": project["on-run-start"],
            "flags": {"send_anonymous_usage_stats": False},
        },
    )
    tables = [_source_table(shape) for shape in shapes]
    sources = {"name": "logs", "schema": "streams_logs", "tables": tables}
    _write_yaml(folder / "models" / "sources.yml", {"version": 2, "sources": [sources]})
    for shape in shapes:
        for kind, text in _models(shape).items():
            path = folder / "models" / f"{shape.name}_{kind}.sql"
            path.write_text(text + "\n", encoding="utf-8")


def _source_table(shape: Shape) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "system": "qlik_change_table",
        "key": ["stream", "id"],
        "before_images": shape.before_images,
    }
    if shape.base:
        settings["base"] = {"kind": shape.base}
    if shape.ignores:
        settings["ignore"] = list(shape.ignores)
    return {"name": shape.name, "config": {"meta": {"afterimage": settings}}}


def _models(shape: Shape) -> dict[str, str]:
    changes = f"ref('{shape.name}_changes')"
    history = "" if shape.before_images else f", history=ref('{shape.name}_history')"
    return {
        "changes": "{{ config(materialized='view') }}"
        f"select * from {{{{ source('logs', '{shape.name}') }}}}",
        "history": f"{{{{ history({changes}) }}}}",
        "current": f"{{{{ current(ref('{shape.name}_history')) }}}}",
        "field_changes": f"{{{{ field_changes({changes}{history}) }}}}",
    }


def _write_yaml(path: Path, content: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
