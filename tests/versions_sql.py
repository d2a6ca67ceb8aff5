"""The statement that makes versions of changes, rendered without dbt."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from tests.macro_renderer import MACROS, MacroRenderer


def versions_sql(
    changes: str, columns: list[str], key: list[str], macros: Path = MACROS, **others: Any
) -> str:
    """`with ... versions as (...)`, of a whole log and with as few steps as there can be.

    Args:
        changes: relation of change log rows.
        columns: names of the data columns.
        key: names of the key columns; all others are tracked.
        macros: the folder of the macros.
        others: arguments of the macro `_versions` that are to differ.
    """
    given = {
        "changes": f"{changes} as changes",
        "where": None,
        "affected_keys": None,
        "seeds": None,
        "columns": columns,
        "key": key,
        "tracked": [name for name in columns if name not in key],
        "carried": [],
        "base": None,
        "has_ends": False,
        "scopes": [],
        "has_moves": False,
        "has_incomplete_key_changes": False,
        "has_few_keys": False,
        "metadata": [],
        "replays": False,
        **others,
    }
    return str(_renderer(macros)("_versions", given))


@cache
def _renderer(macros: Path) -> MacroRenderer:
    return MacroRenderer(macros)
