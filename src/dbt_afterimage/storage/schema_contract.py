"""The schema contract: what must hold before a run writes to a table that an earlier run created.

A table records its origin in its properties: the layout of its columns, the key, and for history
and current the settings that say which columns make a version. Before a run writes, the properties
are compared with the project's settings, and the table's columns with those to be written.
A conflict stops the run; a new column is added, and a type is widened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from dbt_afterimage.spark.identifiers import quoted

# Raised by one when tables of an older version of this package cannot be written any more.
LAYOUT = 1

LAYOUT_PROPERTY = "afterimage.layout"
KEY_PROPERTY = "afterimage.key"
TRACKED_PROPERTY = "afterimage.tracked"

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DECIMAL = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")


class SchemaContractError(RuntimeError):
    """A table is incompatible with what a run would write to it; the text is meant for the user."""


@dataclass(frozen=True)
class Origin:
    """The settings that a table was built with.

    Attributes:
        key: the key columns, in their order: history's surrogate key depends on it.
        tracking: the settings `track` and `ignore`; None for a table that does not depend on them.
    """

    key: Sequence[str]
    tracking: Mapping[str, Sequence[str]] | None = None

    def properties(self) -> dict[str, str]:
        """The table properties that record them."""
        texts = {LAYOUT_PROPERTY: str(LAYOUT), KEY_PROPERTY: _json(list(self.key))}
        if self.tracking is not None:
            given = {name: list(columns) for name, columns in self.tracking.items() if columns}
            texts[TRACKED_PROPERTY] = _json(given)
        return texts


@dataclass(frozen=True)
class TargetSchema:
    """The table that a run wants to write to.

    Attributes:
        table: its name.
        source_table: the source table whose settings govern it.
        upstream: the source of its rows, as errors call it.
        origin: the settings that it is built with.
        own: columns that every such table has.
        data: columns that it takes from upstream, with their types.
        copies: struct column -> the columns of `data` that it repeats.
        rebuild_hint: how to rebuild such a table, the end of `Fix: ..., or `.
        retype: how a column gets its old type back, the beginning of such a fix.
        untracked: columns of `data` that never make a version: metadata, and columns of our own.
    """

    table: str
    source_table: str
    upstream: str
    origin: Origin
    own: Sequence[str]
    data: Mapping[str, str]
    copies: Mapping[str, Sequence[str]]
    rebuild_hint: str
    retype: str
    untracked: Collection[str] = ()


@dataclass(frozen=True)
class Alterations:
    """Alterations that the run needs before it can write; each part is one commit, or none."""

    added: Mapping[str, str] = field(default_factory=dict)
    widened: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)


def alterations(
    wanted: TargetSchema, columns: Mapping[str, str], properties: Mapping[str, str]
) -> Alterations:
    """Compare a table with what a run would write to it.

    Args:
        columns: the columns that it has, with their types.
        properties: its table properties. One without any of ours was made before they were
            kept, and is taken over when its columns fit.

    Raises:
        SchemaContractError: the table cannot be written to. Nothing has been altered.
    """
    stored = {name.lower(): kind for name, kind in columns.items()}
    _check_layout(wanted, stored, properties)
    _check_key(wanted, properties)
    _check_tracking(wanted, stored, properties)
    added: dict[str, str] = {}
    widened: dict[str, str] = {}
    for name, kind in wanted.data.items():
        paths = [quoted(name)]
        paths += [
            f"{quoted(copy)}.{quoted(name)}" for copy, of in wanted.copies.items() if name in of
        ]
        if name.lower() not in stored:
            added.update(dict.fromkeys(paths, kind))
        elif not holds(stored[name.lower()], kind):
            _check_type(wanted, name, stored[name.lower()], kind)
            widened.update(dict.fromkeys(paths, kind))
    differing = {
        name: text
        for name, text in wanted.origin.properties().items()
        if properties.get(name) != text
    }
    return Alterations(added, widened, differing)


def statements(
    table: str, changes: Alterations, widening_properties: Mapping[str, str]
) -> list[str]:
    """The statements that alter a table; repeating some of them is safe.

    Args:
        widening_properties: those that the table format wants before a type is widened.
    """
    properties = {**changes.properties, **(widening_properties if changes.widened else {})}
    found = []
    if properties:
        given = ", ".join(f"{_literal(name)} = {_literal(properties[name])}" for name in properties)
        found.append(f"alter table {table} set tblproperties ({given})")
    if changes.widened:
        given = ", ".join(f"{path} type {kind}" for path, kind in changes.widened.items())
        found.append(f"alter table {table} alter column {given}")
    if changes.added:
        given = ", ".join(f"{path} {kind}" for path, kind in changes.added.items())
        found.append(f"alter table {table} add columns ({given})")
    return found


def holds(stored: str, given: str) -> bool:
    """Whether a column of type ``stored`` holds every value of type ``given``, exactly."""
    return stored == given or _is_wider(stored, given)


def _is_wider(wide: str, narrower: str) -> bool:
    """Whether both Iceberg and Delta widen a type to the other without reading the data."""
    if wide in _INTEGERS and narrower in _INTEGERS:
        return _INTEGERS.index(wide) > _INTEGERS.index(narrower)
    decimals = _DECIMAL.fullmatch(wide), _DECIMAL.fullmatch(narrower)
    if decimals[0] and decimals[1]:
        return decimals[0][2] == decimals[1][2] and int(decimals[0][1]) > int(decimals[1][1])
    return (wide, narrower) == ("double", "float")


def _check_layout(
    wanted: TargetSchema, stored: Mapping[str, str], properties: Mapping[str, str]
) -> None:
    layout = properties.get(LAYOUT_PROPERTY)
    if layout is not None and layout != str(LAYOUT):
        raise SchemaContractError(
            f"{wanted.table} was made by another version of this project: its layout is {layout}, "
            f"and this version writes layout {LAYOUT}. Nothing was written. Fix: go back to the "
            "version that made it (pip install its wheel, then `dbt deps`), or "
            f"{wanted.rebuild_hint}."
        )
    missing = [name for name in wanted.own if name.lower() not in stored]
    if missing:
        raise SchemaContractError(
            f"{wanted.table} has no column `{'`, `'.join(missing)}`, which this version of the "
            "project writes. Something else made the table, or altered it. Nothing was written. "
            f"Fix: give the table another name, or {wanted.rebuild_hint}."
        )


def _check_key(wanted: TargetSchema, properties: Mapping[str, str]) -> None:
    was = json.loads(properties.get(KEY_PROPERTY, "null"))
    key = list(wanted.origin.key)
    if was is not None and was != key:
        raise SchemaContractError(
            f"{wanted.table}: the `key` of source table {wanted.source_table} is "
            f"[{', '.join(key)}], and the table was built with [{', '.join(was)}]. "
            f"Nothing was written. Fix: restore the setting, or {wanted.rebuild_hint}."
        )


def _check_tracking(
    wanted: TargetSchema, stored: Mapping[str, str], properties: Mapping[str, str]
) -> None:
    """The settings may change as long as the table's present columns stay what they are."""
    text = properties.get(TRACKED_PROPERTY)
    if wanted.origin.tracking is None or text is None:
        return
    before: dict[str, list[str]] = json.loads(text)
    columns = [
        name for name in wanted.data if name.lower() in stored and name not in wanted.untracked
    ]
    was = _tracked(columns, wanted.origin.key, before)
    tracked = _tracked(columns, wanted.origin.key, wanted.origin.tracking)
    if was != tracked:
        raise SchemaContractError(
            f"{wanted.table}: the columns that make a version changed. Source table "
            f"{wanted.source_table} says {_tracking_text(wanted.origin.tracking)}: "
            f"[{', '.join(tracked)}], and the table was built with {_tracking_text(before)}: "
            f"[{', '.join(was)}]. Nothing was written. Fix: restore the setting, "
            f"or {wanted.rebuild_hint}."
        )


def _tracked(
    columns: Sequence[str], key: Sequence[str], tracking: Mapping[str, Sequence[str]]
) -> list[str]:
    track, ignore = tracking.get("track", ()), tracking.get("ignore", ())
    return [
        name
        for name in columns
        if name not in key and name not in ignore and (not track or name in track)
    ]


def _tracking_text(tracking: Mapping[str, Sequence[str]]) -> str:
    for setting in ("track", "ignore"):
        if tracking.get(setting):
            return f"`{setting}: [{', '.join(tracking[setting])}]`"
    return "neither `track` nor `ignore`"


def _check_type(wanted: TargetSchema, name: str, stored: str, given: str) -> None:
    # a float's text changes when it becomes a double, and with it the surrogate keys of history
    if _is_wider(given, stored) and not (stored == "float" and name in wanted.origin.key):
        return
    raise SchemaContractError(
        f"{wanted.table}: the column `{name}` is {stored} in the table and {given} in "
        f"{wanted.upstream}. Allowed: a wider integer, double for float (except in a key), a "
        f"decimal with more digits before the point. Nothing was written. Fix: {wanted.retype}, or "
        f"{wanted.rebuild_hint}."
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
