"""The folder of an embedded warehouse, as the settings of a target name it.

Its catalog stores absolute paths, so a relative folder would depend on where a process was started.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from dbt_afterimage.errors import AfterimageError

_SQLITE = re.compile(r"jdbc:sqlite:([^?:]+)")
_DERBY = re.compile(r"jdbc:derby:;databaseName=([^;:]+)")
_ADDRESS = re.compile(r"^\w+:")


class MovedWarehouseError(AfterimageError):
    """The warehouse was moved after its tables were written."""


def resolve(parameters: dict[str, Any], project: Path) -> None:
    """Make the relative paths of a target absolute, in the folder of its project.

    Args:
        parameters: the profile's `server_side_parameters`; changed in place.
    """
    home = project.resolve()
    for name, value in parameters.items():
        if not isinstance(value, str):
            continue
        found = _SQLITE.match(value) or _DERBY.match(value)
        if found:
            start, end = found.span(1)
            parameters[name] = f"{value[:start]}{home / found[1]}{value[end:]}"
        elif _is_folder(name, parameters) and not _ADDRESS.match(value):
            parameters[name] = str(home / value)


def create(parameters: Mapping[str, Any]) -> None:
    """Create the folder of the catalog, where SQLite and Derby create their files only."""
    for value in parameters.values():
        found = _SQLITE.match(str(value)) or _DERBY.match(str(value))
        if found:
            Path(found[1]).parent.mkdir(parents=True, exist_ok=True)


def check_not_moved(parameters: Mapping[str, Any]) -> None:
    """Check that the tables of a catalog in an SQLite file are where it says.

    Raises:
        MovedWarehouseError: they are not.
    """
    for value in parameters.values():
        found = _SQLITE.match(str(value))
        if found and Path(found[1]).exists():
            check_file(Path(found[1]))


def check_file(catalog: Path) -> None:
    """The same for the SQLite file.

    Raises:
        MovedWarehouseError: the tables are elsewhere.
    """
    statement = "select metadata_location from iceberg_tables where metadata_location is not null"
    with closing(sqlite3.connect(f"file:{catalog}?mode=ro", uri=True)) as connection:
        try:
            row = connection.execute(f"{statement} limit 1").fetchone()
        except sqlite3.Error:  # a catalog without tables, or no catalog
            return
    location = re.sub(r"^file:/*(?=/)", "", row[0]) if row else ""
    if not row or _ADDRESS.match(location) or Path(location).exists():
        return
    # <warehouse>/<schema>/<table>/metadata/<file>
    origin = Path(location).parents[3]
    where = str(origin) if origin.is_absolute() else f"a working folder, as {origin}"
    raise MovedWarehouseError(
        f"The warehouse {catalog.parent} was created in {where}, and its tables point there: "
        f"{location} does not exist. Fix: move the folder back, or put a link there: ln -s "
        f"{catalog.parent} {origin}. A warehouse that can be built again: remove {catalog.parent}, "
        "land the raw tables and run `dbt build`."
    )


def _is_folder(name: str, parameters: Mapping[str, Any]) -> bool:
    if name == "spark.sql.warehouse.dir":
        return True
    catalog = name.removesuffix(".warehouse")
    # a REST catalog's `warehouse` is a name
    return catalog != name and parameters.get(f"{catalog}.type") in ("jdbc", "hadoop")
