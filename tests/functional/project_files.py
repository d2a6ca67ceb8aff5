"""The files of small dbt projects that tests write: settings of this project, models, sources."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]

_CHANGES = """\
from dbt_afterimage.changes import build_changes


def model(dbt, session):
    dbt.config(materialized="change_log")
    return build_changes(dbt, session, dbt.ref("{staging}"))
"""


def write_settings(folder: Path, macros: Path = ROOT / "macros") -> None:
    """Write `dbt_project.yml`: this project's macros, vars and hooks, and its way of staging.

    The project has the package's name, by which macros call each other.
    """
    given = yaml.safe_load((ROOT / "dbt_project.yml").read_text(encoding="utf-8"))
    project = {
        key: given[key] for key in ("profile", "flags", "vars", "on-run-start", "on-run-end")
    }
    project |= {
        "name": "afterimage",
        "macro-paths": [str(macros)],
        "models": {
            "+persist_docs": {"relation": True, "columns": True},
            "afterimage": {"staging": {"+materialized": "staging_view"}},
        },
    }
    write_files(folder, {"dbt_project.yml": project})


def add_variables(folder: Path, variables: Mapping[str, Any]) -> None:
    """Add vars to `dbt_project.yml`, for commands of afterimage, which take none."""
    file = folder / "dbt_project.yml"
    settings = yaml.safe_load(file.read_text(encoding="utf-8"))
    settings["vars"] |= variables
    write_files(folder, {"dbt_project.yml": settings})


def write_files(folder: Path, files: Mapping[str, Any]) -> None:
    """Write files, by their path in the folder: texts as they are, anything else as YAML."""
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else yaml.safe_dump(content)
        file.write_text(text, encoding="utf-8")


def changes_model(table: str, staging: str) -> dict[str, Any]:
    """The change log of a table, and the test that it has every record."""
    conserved = {"conserved": {"arguments": {"staging": f"ref('{staging}')"}}}
    tested = {"name": f"{table}_changes", "data_tests": [conserved]}
    return {
        f"{table}_changes.py": _CHANGES.format(staging=staging),
        f"{table}_changes.yml": {"version": 2, "models": [tested]},
    }


def history_model(table: str) -> dict[str, Any]:
    """The history of a table."""
    return {f"{table}_history.sql": f"{{{{ history(ref('{table}_changes')) }}}}\n"}


def other_marts(table: str) -> dict[str, Any]:
    """Its current state and its field changes."""
    return {
        f"{table}_current.sql": f"{{{{ current(ref('{table}_history')) }}}}\n",
        f"{table}_field_changes.sql": f"{{{{ field_changes(ref('{table}_changes')) }}}}\n",
    }
