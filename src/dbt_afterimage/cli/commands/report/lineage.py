"""The raw tables of each change log, from the manifest that dbt wrote with its last command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from dbt_afterimage.cli.commands.doctor.raw_tables import ONE_RAW_TABLE_FOR_ALL
from dbt_afterimage.cli.support.runs import change_log_nodes, progress_name, read_manifest
from dbt_afterimage.cli.support.table_status import CHANGES
from dbt_afterimage.cli.support.warehouse import Warehouse
from dbt_afterimage.settings import SettingsError, parse_settings


@dataclass(frozen=True)
class RawTable:
    """A source table that a change log is built from.

    Attributes:
        name: schema and table.
        exists: whether the catalog has it.
        rows: number of its rows, from metadata; None if that lacks it.
        written_at: its last commit, UTC; None if the metadata lacks it.
    """

    name: str
    exists: bool
    rows: int | None = None
    written_at: datetime | None = None


def raw_tables(folder: Path, warehouse: Warehouse, schema: str) -> dict[str, list[RawTable]]:
    """The raw tables of each change log, by the log's table; empty without a manifest.

    Args:
        folder: dbt's target folder.
    """
    manifest = read_manifest(folder)
    found = {}
    for node in change_log_nodes(manifest):
        sources = (manifest["sources"][each] for each in sorted(_sources(manifest, node)))
        read = [_raw_table(warehouse, source) for source in sources]
        table = progress_name(node, schema).removesuffix(CHANGES)
        found[table] = [each for each in read if each]
    return found


def _sources(manifest: Mapping[str, Any], node: Mapping[str, Any]) -> set[str]:
    """Ids of the sources that a node is built from, directly or through other models."""
    found = set()
    to_visit, visited = list(node["depends_on"]["nodes"]), set()
    while to_visit:
        name = to_visit.pop()
        if name in manifest["sources"]:
            found.add(name)
        elif name in manifest["nodes"] and name not in visited:
            visited.add(name)
            to_visit.extend(manifest["nodes"][name]["depends_on"].get("nodes", []))
    return found


def _raw_table(warehouse: Warehouse, source: Mapping[str, Any]) -> RawTable | None:
    schema, name = str(source["schema"]), str(source["identifier"])
    shown = f"{schema}.{name}"
    by_lower_case = {each.lower(): each for each in warehouse.relations(schema)}
    actual = by_lower_case.get(name.lower())
    if actual is None:
        # a name within messages or a log, not a table
        return None if _is_in_messages(source) else RawTable(shown, exists=False)
    versions = warehouse.versions(schema, actual)
    if not versions:
        return RawTable(shown, exists=True)
    return RawTable(shown, True, versions[-1].rows, versions[-1].committed_at)


def _is_in_messages(source: Mapping[str, Any]) -> bool:
    try:
        return parse_settings(dict(source))["system"] in ONE_RAW_TABLE_FOR_ALL
    except SettingsError:
        return False
