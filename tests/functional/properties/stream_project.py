"""A dbt project over the change logs of streams: history, current and field changes of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.functional.project_files import write_files, write_settings
from tests.streams.shapes import Shape

ROOT = Path(__file__).parents[3]


def write_stream_project(
    folder: Path, shapes: Sequence[Shape], macros: Path = ROOT / "macros"
) -> None:
    """Write the project's files; its change logs are the tables of the schema `streams_logs`."""
    tables = [_source_table(shape) for shape in shapes]
    sources = {"name": "logs", "schema": "streams_logs", "tables": tables}
    files: dict[str, Any] = {"sources.yml": {"version": 2, "sources": [sources]}}
    for shape in shapes:
        for kind, text in _models(shape).items():
            files[f"{shape.name}_{kind}.sql"] = text + "\n"
    write_settings(folder, macros)
    write_files(folder / "models", files)


def _source_table(shape: Shape) -> dict[str, Any]:
    return {"name": shape.name, "config": {"meta": {"afterimage": table_settings(shape)}}}


def table_settings(shape: Shape) -> dict[str, Any]:
    """What the source table of a shape says of itself."""
    settings: dict[str, Any] = {
        "system": "qlik_change_table",
        "key": ["stream", "id"],
        "before_images": shape.before_images,
    }
    if shape.base:
        settings["base"] = {"kind": shape.base}
    if shape.ignores:
        settings["ignore"] = list(shape.ignores)
    if shape.tracks:
        settings["track"] = list(shape.tracks)
    if shape.keep_deleted:
        settings["keep_deleted"] = True
    return settings


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
