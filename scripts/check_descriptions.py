"""Checks that everything in the project has a description, because dbt docs show every gap.

Usage: check_descriptions.py target/manifest.json (written by `dbt parse`).

Covers the project's own models, seeds, sources and source tables with their columns, snapshots,
exposures, macros with their arguments, and the vars of dbt_project.yml. Private macros (name starts
with `_`) and overrides of dbt's own macros are exempt: a comment at the top of their file describes
them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# A model that lists no columns at all has undescribed columns too.
NEEDS_COLUMNS = ("model", "seed")
# These tables may have no column besides those that the plugin describes, which `dbt parse` writes
# too late for the manifest (src/dbt_afterimage/dbt_spark/documentation.py).
DESCRIBE_THEMSELVES = ("staging_view", "staging_log", "change_activity", "cuts")
# dbt generates a macro from each materialization, which takes no arguments.
GENERATED_PREFIX = "materialization_"


def undescribed(manifest: dict[str, Any], project_file: str) -> Iterator[str]:
    """Yields one line per missing description.

    Args:
        manifest: dbt's manifest, parsed from JSON.
        project_file: the text of dbt_project.yml, whose comments describe the vars.

    Yields:
        Findings such as `macro decode (<file>): no description`, in no particular order.
    """
    project = manifest["metadata"]["project_name"]
    yield from _nodes(manifest, project)
    yield from _sources(manifest, project)
    yield from _macros(manifest, project)
    yield from _vars(project_file)


def _nodes(manifest: dict[str, Any], project: str) -> Iterator[str]:
    own = [*manifest["nodes"].values(), *manifest.get("exposures", {}).values()]
    for node in own:
        kind = node["resource_type"]
        if node["package_name"] != project or kind not in (*NEEDS_COLUMNS, "snapshot", "exposure"):
            continue
        name = f"{kind} {node['name']}"
        if not node["description"].strip():
            yield f"{name} ({node['original_file_path']}): no description"
        materialized = node.get("config", {}).get("materialized")
        described = materialized in DESCRIBE_THEMSELVES
        if kind in NEEDS_COLUMNS and not node["columns"] and not described:
            yield f"{name} ({node['original_file_path']}): lists no columns"
        yield from _columns(name, node)


def _sources(manifest: dict[str, Any], project: str) -> Iterator[str]:
    seen = set()
    for table in manifest["sources"].values():
        if table["package_name"] != project:
            continue
        source = table["source_name"]
        if source not in seen and not table["source_description"].strip():
            yield f"source {source} ({table['original_file_path']}): no description"
        seen.add(source)
        name = f"source table {source}.{table['name']}"
        if not table["description"].strip():
            yield f"{name} ({table['original_file_path']}): no description"
        yield from _columns(name, table)


def _columns(owner: str, node: dict[str, Any]) -> Iterator[str]:
    # an exposure has no columns
    for column in node.get("columns", {}).values():
        if not column["description"].strip():
            yield f"{owner}: column {column['name']} has no description"


def _macros(manifest: dict[str, Any], project: str) -> Iterator[str]:
    for macro in manifest["macros"].values():
        name = macro["name"]
        if macro["package_name"] != project or name.startswith(("_", GENERATED_PREFIX)):
            continue
        if "__" in name:
            # `spark__x` is the implementation of x for one adapter.
            continue
        if not macro["description"].strip():
            yield f"macro {name} ({macro['original_file_path']}): no description"
        for argument in macro["arguments"]:
            if not (argument["description"] or "").strip():
                yield f"macro {name}: argument {argument['name']} has no description"


def _vars(project_file: str) -> Iterator[str]:
    """The comment above a var or at the end of its line describes the var."""
    lines = project_file.splitlines()
    inside = False
    for number, line in enumerate(lines):
        if re.match(r"\S", line) and not line.startswith("#"):
            inside = line.startswith("vars:")
            continue
        var = re.match(r"  ([a-z_]+):(.*)", line)
        if inside and var and "#" not in var[2] and "#" not in lines[number - 1]:
            yield f"var {var[1]} (dbt_project.yml): no comment above it"


def main(arguments: list[str]) -> int:
    """Prints the findings; returns the exit code: 1 if there are any, else 0."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    manifest = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    project_file = Path(__file__).parents[1] / "dbt_project.yml"
    missing = sorted(undescribed(manifest, project_file.read_text(encoding="utf-8")))
    for line in missing:
        print(line)
    print(f"descriptions: {len(missing) or 'none'} missing")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
