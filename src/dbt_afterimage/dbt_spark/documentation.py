"""Descriptions in dbt docs and in the warehouse, without a line of the project's YAML.

Only what the project leaves open is filled in: descriptions of the columns that this product adds,
comments in the warehouse, a colour per layer, and the lineage of a model that counts all change
logs. Private macros are hidden.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from dbt_afterimage.settings import OPTIONAL_COLUMNS, SettingsError, SourceSettings, parse_settings

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest

PACKAGE = "afterimage"

# Layer -> colour of its nodes in the lineage.
COLOURS = {
    "staging": "#8d99ae",
    "changes": "#5b7fd4",
    "history": "#c8553d",
    "current": "#e09f3e",
    "field_changes": "#7b6d8d",
    "change_activity": "#588157",
    "cuts": "#588157",
}

_LAYERS = {
    "staging_view": "staging",
    "staging_log": "staging",
    "change_log": "changes",
    "scd2_history": "history",
    "current_state": "current",
    "field_changes": "field_changes",
    "change_activity": "change_activity",
    "cuts": "cuts",
}
"""Materialization -> layer."""

_VIEWS = {
    "stage_qlik_change_table": "staging",
    "stage_qlik_messages": "staging",
    "stage_openedge": "staging",
    "stage_soliddb_table": "staging",
    "stage_change_feed": "staging",
    "openedge_activity": "openedge_tracking",
    "openedge_schema_events": "openedge_tracking",
    "soliddb_ddl_events": "soliddb_ddl_events",
    "soliddb_log_activity": "soliddb_log_activity",
    "qlik_message_schemas": "qlik_message_schemas",
}
"""Macro that makes a `staging_view` -> the blocks that describe its columns."""

_DECODED_LOGS = {"qlik_messages": "qlik_messages_log", "soliddb": "soliddb_log"}
"""System of a `staging_log` -> the blocks that describe its columns."""

_JOIN = re.compile(
    r"\s*(select\s+\*\s+from\s+)?{{-?\s*(afterimage\.)?temporal_join\(", re.IGNORECASE
)
"""The start of a model whose columns are all those of a `temporal_join`."""

_JOINED_BY = re.compile(r"\bby\s*=\s*['\"](change_seq|time)\b")

_COUNTS_ALL = "counts_all_change_logs"
"""Setting of a model `change_activity` that names no tables."""

# Columns that only some tables of a layer have.
_CONDITIONAL_COLUMNS = {
    "staging": {*OPTIONAL_COLUMNS, "partner_may_follow", "ends_load"},
    "changes": {*OPTIONAL_COLUMNS},
    "history": {*OPTIONAL_COLUMNS},
    "current": {"is_deleted", "deleted_at"},
}


def uses_the_package(manifest: Manifest) -> bool:
    """Whether the project of a manifest uses the dbt package."""
    return f"macro.{PACKAGE}.history" in manifest.macros


def document(manifest: Manifest) -> None:
    """Complete documentation and lineage of a manifest, if its project uses the dbt package."""
    if not uses_the_package(manifest):
        return
    for macro in manifest.macros.values():
        if macro.package_name == PACKAGE and macro.name.startswith("_"):
            macro.docs.show = False
    columns = _Columns(manifest)
    for node in manifest.nodes.values():
        layer = _layer(node)
        if layer is not None:
            _document_model(node, layer, columns.described(node, layer))
        elif _is_join(node):
            _describe(node, columns.of_join(node))
        elif _is_current_view(node):
            _describe(node, columns.described(node, "current"))
    _run_after_all_logs(manifest)
    _run_after_histories(manifest, columns)


def _run_after_all_logs(manifest: Manifest) -> None:
    """Let models that count all change logs depend on them: dbt parses one file after another."""
    models = models_of_package(manifest)
    logs = [node.unique_id for node in models if node.config.materialized == "change_log"]
    for node in models:
        if node.config.materialized == "change_activity" and node.config.get(_COUNTS_ALL):
            # a manifest of an earlier command may have those that existed then
            node.depends_on.nodes = sorted(logs)


def _run_after_histories(manifest: Manifest, columns: _Columns) -> None:
    """Let `afterimage_cuts` depend on the histories of all tables that belong to a task."""
    models = models_of_package(manifest)
    of_kind = [node for node in models if node.config.materialized == "scd2_history"]
    others = manifest.nodes.keys() - {node.unique_id for node in of_kind}
    histories = [node.unique_id for node in of_kind if columns.task_of(node)]
    for node in models:
        if node.config.materialized == "cuts":
            # a manifest of an earlier command may have histories that existed then
            named = [
                name for name in node.depends_on.nodes if name in manifest.sources or name in others
            ]
            node.depends_on.nodes = sorted([*named, *histories])


def models_of_package(manifest: Manifest) -> list[Any]:
    """The models that our materializations build."""
    return [node for node in manifest.nodes.values() if _layer(node) is not None]


def _layer(node: Any) -> str | None:
    """The layer of a model that one of our materializations builds; None for all other nodes."""
    if node.resource_type != "model":
        return None
    return _LAYERS.get(node.config.materialized)


def _is_join(node: Any) -> bool:
    """Whether a node is a model that selects all columns of a `temporal_join` and nothing else."""
    return node.resource_type == "model" and _JOIN.match(node.raw_code) is not None


def _is_current_view(node: Any) -> bool:
    """Whether a node is a model that the macro `current` makes a view."""
    calls = node.depends_on.macros if node.resource_type == "model" else ()
    return f"macro.{PACKAGE}.current" in calls and node.config.materialized == "view"


class _Columns:
    """Columns that this product adds to the tables of a manifest."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._sources = {(one.source_name, one.name): one for one in manifest.sources.values()}
        self._settings: dict[tuple[str, str], SourceSettings] = {}

    def described(self, node: Any, layer: str) -> dict[str, str]:
        """Column -> description of the columns that a table has."""
        kind = self._kind(node, layer)
        if kind is None:
            return {}
        columns = self._blocks(kind)
        surrogate_key = columns.pop("id", None)
        if surrogate_key is not None:
            columns = {f"{node.alias}_id": surrogate_key, **columns}
        missing = _CONDITIONAL_COLUMNS.get(kind, set()).difference(
            self._conditional_columns(node, kind)
        )
        return {name: text for name, text in columns.items() if name not in missing}

    def of_join(self, node: Any) -> dict[str, str]:
        """The same of a model that is one `temporal_join`; they say what it is joined by."""
        given = _JOINED_BY.search(node.raw_code)
        nodes: Any = self._manifest.nodes
        sides = [nodes[name] for name in node.depends_on.nodes if name in nodes]
        tasks = {self._settings_of(side).get("task") for side in sides}
        is_one_task = len(tasks) == 1 and None not in tasks
        by = given[1] if given else "change_seq" if is_one_task else "time"
        return self._blocks(f"temporal_join_by_{by}")

    def task_of(self, node: Any) -> str | None:
        """The replication task of the table that a model comes from."""
        task: str | None = self._settings_of(node).get("task")
        return task

    def _blocks(self, kind: str) -> dict[str, str]:
        start = f"doc.{PACKAGE}.{kind}__"
        return {
            name.removeprefix(start): block.block_contents.strip()
            for name, block in self._manifest.docs.items()
            if name.startswith(start)
        }

    def _kind(self, node: Any, layer: str) -> str | None:
        """First part of the names of the blocks that describe a table; None if there are none."""
        if node.config.materialized == "staging_view":
            return self._kind_of_view(node)
        if node.config.materialized == "staging_log":
            return _DECODED_LOGS.get(self._settings_of(node).get("system", ""))
        return layer

    def _kind_of_view(self, node: Any) -> str | None:
        """By the first of our macros that the model calls, be it in a macro of the project."""
        names = list(node.depends_on.macros)
        for name in names:
            package, macro = name.split(".")[1:3]
            if package == PACKAGE and macro in _VIEWS:
                return _VIEWS[macro]
            if package != PACKAGE and name in self._manifest.macros:
                called = self._manifest.macros[name].depends_on.macros
                names.extend(one for one in called if one not in names)
        return None

    def _conditional_columns(self, node: Any, kind: str) -> Collection[str]:
        """Those of `_CONDITIONAL_COLUMNS` that a table has, by the settings of its source."""
        if kind not in _CONDITIONAL_COLUMNS:
            return ()
        settings = self._settings_of(node)
        if not settings:
            return ()
        if kind == "history":
            return tuple(settings["history_metadata"])
        if kind == "current":
            return _CONDITIONAL_COLUMNS[kind] if settings["keep_deleted"] else ()
        # a staging model in a project's own SQL need not yield the optional columns
        staging = node if kind == "staging" else self._parent(node)
        if staging is None or self._kind(staging, _layer(staging) or "") != "staging":
            return ()
        columns = [*settings["optional_columns"]]
        if settings["system"] == "qlik_messages":
            columns.append("partner_may_follow")
        if settings["system"] == "change_feed":
            columns += ["partner_may_follow"] if settings["pairs_before_images"] else []
            columns += ["ends_load"] if settings["load_id"] else []
        return columns

    def _parent(self, node: Any) -> Any | None:
        """The first model that a model reads."""
        nodes: Any = self._manifest.nodes
        parents = (nodes.get(name) for name in node.depends_on.nodes)
        return next((one for one in parents if one and one.resource_type == "model"), None)

    def _settings_of(self, node: Any) -> SourceSettings:
        """Settings that govern a model, as the macro `_settings_of` finds them.

        Empty if they cannot be found or read: a run says so.
        """
        seen = []
        while not node.sources:
            seen.append(node.unique_id)
            node = self._parent(node)
            # dbt has not checked for cycles yet
            if node is None or node.unique_id in seen:
                return {}
        name = tuple(node.sources[0])
        if name not in self._settings:
            self._settings[name] = _read_settings(self._sources.get(name))
        return self._settings[name]


def _read_settings(source: Any) -> SourceSettings:
    if source is None:
        return {}
    try:
        return parse_settings(source.to_dict())
    except SettingsError:
        return {}


def _document_model(node: Any, layer: str, described: Mapping[str, str]) -> None:
    if node.docs.node_color is None:
        node.docs.node_color = COLOURS[layer]
    # a staging view takes its descriptions along when it is created
    if node.config.materialized != "staging_view" and not node.config.persist_docs:
        node.config.persist_docs = {"relation": True, "columns": True}
    _describe(node, described)


def _describe(node: Any, described: Mapping[str, str]) -> None:
    """Fill in the descriptions of columns that the project leaves open."""
    from dbt.artifacts.resources.v1.components import ColumnInfo

    for name, description in described.items():
        column = node.columns.get(name)
        if column is not None:
            column.description = column.description or description
        # a contract says that the listed columns are all there are, with their types
        elif not node.config.contract.enforced:
            node.columns[name] = ColumnInfo(name=name, description=description)
