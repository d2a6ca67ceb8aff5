"""The settings of a source table: declared once, in the `meta` of its YAML entry, and checked here.

dbt does not check `meta`, so a misspelt key would be silence. Every error names the table, the
setting, what it got, what is allowed, and the cure. docs/settings.md lists the settings.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

DURATION_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


class SettingsError(ValueError):
    """A source table's settings cannot be used; the text is meant for the user."""


class Base(BaseModel):
    """The full load that a table of its own holds."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["frozen", "live"]
    load_id: str = "initial"
    position: str | None = None
    loaded_at: str | None = None

    @field_validator("load_id", "position", "loaded_at", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        # YAML reads 2026-03-01 as a date and 35 digits as a number
        return value if value is None else str(value)


class QlikChangeTableSettings(BaseModel):
    """Settings of a Qlik change table `<table>__ct`."""

    model_config = ConfigDict(extra="forbid")

    system: Literal["qlik_change_table"]
    key: list[str] = Field(default_factory=list)
    before_images: bool = True
    track: list[str] = Field(default_factory=list)
    ignore: list[str] = Field(default_factory=list)
    base: Base | None = None
    look_back: str = "15 minutes"
    arrival_look_back: int = Field(default=1, ge=0)
    on_reject: Literal["quarantine", "fail"] = "quarantine"
    lob_columns: list[str] = Field(default_factory=list)
    header_prefix: str = "header__"
    mask_byte_order: Literal["auto", "msb_first", "lsb_first"] = "auto"
    mask_first_data_bit: Literal["auto"] | int = "auto"
    mask_columns: list[str] = Field(default_factory=list)

    @field_validator("look_back", mode="after")
    @classmethod
    def _is_duration(cls, value: str) -> str:
        duration_seconds(value)
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> QlikChangeTableSettings:
        if self.track and self.ignore:
            raise ValueError("`track` and `ignore` exclude each other; cure: keep one of the two")
        if self.base and self.base.kind == "live" and not self.before_images:
            raise ValueError(
                "`base.kind: live` needs before images to be rewound to the time of the load; "
                "cure: switch before images on at the source, or use a frozen base"
            )
        return self


SYSTEMS: dict[str, type[BaseModel]] = {"qlik_change_table": QlikChangeTableSettings}


def duration_seconds(text: str) -> int:
    """Seconds of a duration such as `15 minutes` or `1 day`.

    Raises:
        ValueError: it is not a number and a unit.
    """
    parts = text.split()
    unit = parts[1].rstrip("s") if len(parts) == 2 else ""
    if not parts or not parts[0].isdigit() or unit not in DURATION_UNITS:
        raise ValueError(
            f"`{text}` is not a duration; allowed: a number and one of "
            f"{', '.join(u + 's' for u in DURATION_UNITS)}, such as `15 minutes`"
        )
    return int(parts[0]) * DURATION_UNITS[unit]


def parse_settings(source: Mapping[str, Any]) -> dict[str, Any]:
    """Check one source table's settings and fill in the defaults.

    Args:
        source: the table's entry in dbt's graph: `source_name`, `name`, `meta`, `columns`.

    Returns:
        Setting name -> value, plus `declared_columns`: a list of {name, data_type} in YAML order.

    Raises:
        SettingsError: something is missing, misspelt or not allowed.
    """
    table = f"{source['source_name']}.{source['name']}"
    given = _given(source)
    if not given:
        raise SettingsError(
            f"Source table {table} has no `meta.afterimage`. Cure: add `config: {{meta: {{afterimage: "
            f"{{system: ..., key: [...]}}}}}}` to the table or its source; allowed systems: "
            f"{', '.join(SYSTEMS)}."
        )
    system = given.get("system")
    if not isinstance(system, str) or system not in SYSTEMS:
        raise SettingsError(
            f"Source table {table}: `system` is {system!r}; allowed: {', '.join(SYSTEMS)}. "
            "Cure: set it on the source, it holds for all its tables."
        )
    model = SYSTEMS[system]
    try:
        settings = model.model_validate(given).model_dump()
    except ValidationError as error:
        raise SettingsError(_explain(table, model, error)) from error
    columns = source.get("columns") or {}
    settings["declared_columns"] = [
        {"name": column["name"], "data_type": column.get("data_type")}
        for column in columns.values()
    ]
    _check_columns(table, settings)
    return settings


def _given(source: Mapping[str, Any]) -> dict[str, Any]:
    """The source's `afterimage` meta with the table's over it: dbt's own merge replaces it whole."""
    meta = {**(source.get("meta") or {}), **((source.get("config") or {}).get("meta") or {})}
    whole = (source.get("source_meta") or {}).get("afterimage") or {}
    own = meta.get("afterimage") or {}
    return {**whole, **own} if isinstance(own, Mapping) and isinstance(whole, Mapping) else {}


def _check_columns(table: str, settings: dict[str, Any]) -> None:
    declared = [column["name"] for column in settings["declared_columns"]]
    if not declared:
        return
    for setting in ("key", "track", "ignore", "lob_columns", "mask_columns"):
        for column in settings.get(setting, []):
            if column not in declared:
                raise SettingsError(
                    f"Source table {table}: `{setting}` names the column {column!r}, which its "
                    f"`columns` do not declare.{_did_you_mean(column, declared)} Cure: correct the "
                    "name, or declare the column with its data_type."
                )
    for column in settings["ignore"]:
        if column in settings["key"]:
            raise SettingsError(
                f"Source table {table}: `ignore` names the key column {column!r}; a key is always "
                "tracked. Cure: take it out of `ignore`."
            )


def _explain(table: str, model: type[BaseModel], error: ValidationError) -> str:
    lines = [_explain_one(table, model, dict(problem)) for problem in error.errors()]
    return "\n".join(lines)


def _explain_one(table: str, model: type[BaseModel], problem: dict[str, Any]) -> str:
    path = [str(part) for part in problem["loc"] if not str(part).startswith("literal")]
    owner: type[BaseModel] = Base if path[:1] == ["base"] and len(path) > 1 else model
    name = ".".join(path[:2] if owner is Base else path[:1])
    allowed = list(owner.model_fields)
    if problem["type"] == "extra_forbidden":
        return (
            f"Source table {table}: unknown setting `{name}`."
            f"{_did_you_mean(path[-1], allowed)} Allowed: {', '.join(allowed)}."
        )
    if problem["type"] == "missing":
        return f"Source table {table}: the setting `{name}` is missing. Cure: add it."
    if not path:
        text = str(problem["msg"]).removeprefix("Value error, ")
        return f"Source table {table}: {text}."
    field = owner.model_fields.get(path[1] if owner is Base else path[0])
    values = _allowed_values(field.annotation) if field else []
    hint = f" Allowed: {', '.join(values)}." if values else ""
    reason = str(problem["msg"]).removeprefix("Value error, ")
    return f"Source table {table}: `{name}` is {problem['input']!r}. {reason}.{hint}"


def _allowed_values(annotation: Any) -> list[str]:
    if get_origin(annotation) is Literal:
        return [str(value) for value in get_args(annotation)]
    values: list[str] = []
    for part in get_args(annotation):
        values += _allowed_values(part)
        if part is int:
            values.append("a number")
    return values


def _did_you_mean(name: str, allowed: list[str]) -> str:
    close = difflib.get_close_matches(name, allowed, n=1)
    return f" Did you mean `{close[0]}`?" if close else ""
