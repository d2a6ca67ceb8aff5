"""What dbt docs and the warehouse say of a project's tables, without a line of the project's YAML.

Only what the project leaves open is filled in: descriptions of the columns that this product adds,
comments in the warehouse, and a colour per layer. Private macros are hidden.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbt_afterimage.settings import OPTIONAL_COLUMNS

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest

PACKAGE = "afterimage"

# Layer -> colour of its nodes in the lineage.
COLOURS = {
    "staging": "#8d99ae",
    "changes": "#3d5a80",
    "history": "#c8553d",
    "current": "#e09f3e",
    "field_changes": "#7b6d8d",
    "change_activity": "#588157",
}
# Columns that not every table of the layer has: they are described where a project lists them.
_NOT_IN_ALL = {
    "changes": frozenset(OPTIONAL_COLUMNS),
    "current": frozenset({"is_deleted", "deleted_at"}),
}

_LAYERS = {
    "staging_view": "staging",
    "staging_log": "staging",
    "change_log": "changes",
    "scd2_history": "history",
    "current_state": "current",
    "field_changes": "field_changes",
    "change_activity": "change_activity",
}
"""Materialization -> layer."""


def uses_the_package(manifest: Manifest) -> bool:
    """Whether the project of a manifest uses the dbt package."""
    return f"macro.{PACKAGE}.history" in manifest.macros


def document(manifest: Manifest) -> None:
    """Complete the documentation of a manifest in place, if its project uses the dbt package."""
    if not uses_the_package(manifest):
        return
    for macro in manifest.macros.values():
        if macro.package_name == PACKAGE and macro.name.startswith("_"):
            macro.docs.show = False
    for node in manifest.nodes.values():
        layer = _layer(node)
        if layer is not None:
            _document_model(node, layer, _described_columns(manifest, node, layer))


def is_of_package(node: Any) -> bool:
    """Whether a node is a model that one of our materializations builds."""
    return _layer(node) is not None


def _layer(node: Any) -> str | None:
    """The layer of a model that one of our materializations builds; None for all other nodes."""
    if node.resource_type != "model":
        return None
    return _LAYERS.get(node.config.materialized)


def _described_columns(manifest: Manifest, node: Any, layer: str) -> dict[str, str]:
    """Column -> description of the columns that every table of a layer has."""
    start = f"doc.{PACKAGE}.{layer}__"
    columns = {
        name.removeprefix(start): block.block_contents.strip()
        for name, block in manifest.docs.items()
        if name.startswith(start)
    }
    surrogate_key = columns.pop("id", None)
    if surrogate_key is not None:
        columns = {f"{node.alias}_id": surrogate_key, **columns}
    return {name: text for name, text in columns.items() if name not in _NOT_IN_ALL.get(layer, ())}


def _document_model(node: Any, layer: str, described: dict[str, str]) -> None:
    from dbt.artifacts.resources.v1.components import ColumnInfo

    if node.docs.node_color is None:
        node.docs.node_color = COLOURS[layer]
    if layer != "staging" and not node.config.persist_docs:
        node.config.persist_docs = {"relation": True, "columns": True}
    for name, description in described.items():
        column = node.columns.get(name)
        if column is not None:
            column.description = column.description or description
        # a contract says that the listed columns are all there are, with their types
        elif not node.config.contract.enforced:
            node.columns[name] = ColumnInfo(name=name, description=description)
