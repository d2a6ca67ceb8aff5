"""Reads the settings of a source table from the `meta` of its YAML entry, and checks them.

dbt does not check `meta`, so without this a misspelt key would have no effect. docs/settings.md
lists the settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError

from dbt_afterimage.settings.base import ColumnEntry, SourceSettings
from dbt_afterimage.settings.error_messages import explain
from dbt_afterimage.settings.suggestions import did_you_mean
from dbt_afterimage.settings.systems import SYSTEMS


class SettingsError(ValueError):
    """A source table's settings cannot be used; the text is meant for the user."""


def parse_settings(source: Mapping[str, Any]) -> SourceSettings:
    """Check one source table's settings and fill in the defaults.

    Args:
        source: the table's entry in dbt's graph: `source_name`, `name`, `meta`, `columns`.

    Raises:
        SettingsError: something is missing, misspelt or not allowed.
    """
    table = f"{source['source_name']}.{source['name']}"
    given = _given(table, source)
    if (source.get("config") or {}).get("afterimage"):
        raise SettingsError(
            f"Source table {table}: `afterimage` is in `config`, where dbt does not look for "
            "settings of the project's own. Fix: move it one level down: `config: {meta: "
            "{afterimage: {...}}}`."
        )
    if not given:
        raise SettingsError(
            f"Source table {table} has no `meta.afterimage`. Fix: add `config: {{meta: "
            f"{{afterimage: {{system: ..., key: [...]}}}}}}` to the table or its source; allowed "
            f"systems: {', '.join(SYSTEMS)}."
        )
    system = given.get("system")
    if not isinstance(system, str) or system not in SYSTEMS:
        raise SettingsError(
            f"Source table {table}: `system` is {system!r}; allowed: {', '.join(SYSTEMS)}."
            f"{did_you_mean(str(system), list(SYSTEMS))} Fix: set it on the source, it holds for "
            "all its tables."
        )
    model = SYSTEMS[system]
    try:
        parsed = model.model_validate(given, context={"positions": model.positions})
    except ValidationError as error:
        raise SettingsError(explain(table, model, error)) from error
    settings = cast(SourceSettings, parsed.model_dump())
    columns: list[ColumnEntry] = [
        {"name": column["name"], "data_type": column.get("data_type")}
        for column in (source.get("columns") or {}).values()
    ]
    data = [column for column in columns if not parsed.is_own_column(column["name"])]
    if data:
        names = [column["name"] for column in data]
        data += [column for column in parsed.added_columns() if column["name"] not in names]
    settings["source_table"] = table
    settings["change_seq_form"] = model.positions.form()
    settings["declared_columns"] = columns
    settings["data_columns"] = data
    settings["optional_columns"] = parsed.metadata_columns()
    settings["pairs_before_images"] = parsed.pairs_before_images()
    settings["has_halves"] = model.has_halves
    settings["without_before_images"] = parsed.without_before_images()
    if parsed.lists_all_columns([column["name"] for column in columns]):
        # a mapping that the whole source has may name columns that some of its tables lack
        shared = {name for name in given if name not in (_own(source) or {})}
        checked = [
            name
            for name in model.column_settings
            if not (name in shared and isinstance(getattr(parsed, name), dict))
        ]
        named = {name: getattr(parsed, name) for name in checked}
        _check_columns(table, columns + data, named)
    return settings


def _own(source: Mapping[str, Any]) -> Any:
    """The table's own `afterimage` meta."""
    meta = {**(source.get("meta") or {}), **((source.get("config") or {}).get("meta") or {})}
    return meta.get("afterimage")


def _given(table: str, source: Mapping[str, Any]) -> dict[str, Any]:
    """The source's `afterimage` meta, the table's over it: dbt's own merge replaces it whole."""
    whole = (source.get("source_meta") or {}).get("afterimage")
    given: dict[str, Any] = {}
    for level, settings in (("source", whole), ("table", _own(source))):
        if settings is None:
            continue
        if not isinstance(settings, Mapping):
            raise SettingsError(
                f"Source table {table}: `meta.afterimage` of the {level} is {settings!r}; allowed: "
                "a mapping of settings. Fix: write it as `afterimage: {system: ..., key: [...]}`."
            )
        given.update({str(name): value for name, value in settings.items()})
    return given


def _check_columns(table: str, columns: Sequence[ColumnEntry], settings: Mapping[str, Any]) -> None:
    declared = [column["name"] for column in columns]
    for setting, named in settings.items():
        for column in [] if isinstance(named, bool) else named:
            if column not in declared:
                raise SettingsError(
                    f"Source table {table}: `{setting}` names the column {column!r}, which its "
                    f"`columns` do not declare.{did_you_mean(column, declared)} Fix: correct the "
                    "name, or declare the column with its data_type."
                )
