"""A project built by one dbt command for each of its nodes, in the order of the graph."""

from __future__ import annotations

import json
from graphlib import TopologicalSorter
from pathlib import Path

COMMANDS = {"seed": "seed", "model": "run", "snapshot": "snapshot", "test": "test"}


def commands_one_by_one(manifest: Path) -> list[list[str]]:
    """A command for each seed, model and test, each after those of what it reads.

    Args:
        manifest: dbt's manifest.json.
    """
    content = json.loads(manifest.read_text(encoding="utf-8"))
    nodes = content["nodes"]
    order = TopologicalSorter(content["parent_map"]).static_order()
    return [
        [COMMANDS[nodes[node]["resource_type"]], "--select", nodes[node]["name"]]
        for node in order
        if node in nodes and nodes[node]["resource_type"] in COMMANDS
    ]
