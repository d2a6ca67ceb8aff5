"""Proposes the settings of a change feed whose columns are those of a preset."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from dbt_afterimage.cli.commands.add_table.keys import propose_key
from dbt_afterimage.cli.commands.add_table.proposal import (
    LOAD_WITHOUT_TIME,
    KeyProposal,
    Proposal,
    SourceColumn,
    SourceTable,
    model_name,
    unanswered_base,
)
from dbt_afterimage.cli.commands.add_table.raw_schema import Column, RawSchema, RawTable, Sample
from dbt_afterimage.settings.change_feed import ChangeFeedSettings, presets

_SUFFIXES = ("_ct", "_cdc", "_changes", "_change_feed", "_events", "_snapshots", "_extracts")


def preset_of(table: RawTable) -> str | None:
    """The preset whose columns a table has."""
    names = {name.lower() for name in table.names()}
    fitting = [
        preset
        for preset, described in presets().items()
        if described.recognition
        and described.recognition.columns
        and {name.lower() for name in described.recognition.columns} < names
    ]
    return next((preset for preset in fitting if is_certain(preset)), next(iter(fitting), None))


def is_certain(preset: str) -> bool:
    """Whether no other table has the columns of the preset's."""
    known = presets()[preset].recognition
    return known is not None and known.is_certain


@cache
def settings_of(preset: str) -> ChangeFeedSettings:
    """The settings of a preset, for a table without a setting of its own."""
    return ChangeFeedSettings.model_validate({"system": "change_feed", "preset": preset})


def data_columns(table: RawTable, preset: str) -> list[Column]:
    """The columns that are the source's."""
    settings = settings_of(preset)
    return [column for column in table.columns if not settings.is_own_column(column.name)]


def table_name(table: RawTable) -> str:
    """The source table's name in model names: `dbo_Customers_CT` -> `customers`."""
    name = model_name(table.name).removeprefix("dbo_")
    suffix = next((one for one in _SUFFIXES if name.endswith(one) and name != one), "")
    return name.removesuffix(suffix)


def base_table(table: RawTable, schema: RawSchema, preset: str) -> RawTable | None:
    """A landed table of the source table's name, with its columns."""
    known = presets()[preset].recognition
    if known is None or not known.has_load_table:
        return None
    columns = [column.name for column in data_columns(table, preset)]
    found = schema.full_load(table_name(table), columns)
    return found if found is not None and found is not table and preset_of(found) is None else None


def propose(
    table: RawTable,
    schema: RawSchema,
    preset: str,
    source: str,
    sample: Sample,
    prefix: str = "",
) -> Proposal:
    """The proposal for a change feed.

    Args:
        preset: what `preset_of` says of the table.
    """
    name = prefix + table_name(table)
    columns = [column.name for column in data_columns(table, preset)]
    settings: dict[str, Any] = {"preset": preset}
    notes = [f"preset: {preset}, by its columns"]
    parts = settings_of(preset).sequence
    lacking = [part for part in parts if _is_lacking(part, table)]
    if lacking and len(lacking) < len(parts):
        settings["sequence"] = {part: kind for part, kind in parts.items() if part not in lacking}
        notes.append(f"sequence: without {', '.join(lacking)}, which the table lacks")
    arguments = [f"'{source}'", f"'{table.name}'"]
    tables = []
    base = base_table(table, schema, preset)
    if base:
        arguments.append(f"base='{base.name}'")
        settings["base"] = unanswered_base()
        notes.append(LOAD_WITHOUT_TIME)
        tables.append(
            SourceTable(
                base.name,
                base.comment or f"One row per row of {table_name(table)}: the full load.",
            )
        )
    return Proposal(
        table=name,
        schema=schema.name,
        source=source,
        source_settings={"system": "change_feed"},
        system="change_feed",
        tables=(
            SourceTable(
                table.name,
                table.comment or f"The change feed of {table_name(table)}.",
                settings,
                tuple(_described(column, columns, preset) for column in table.columns),
            ),
            *tables,
        ),
        staging=f"stg_{source}__{name}",
        staging_macro="stage_change_feed",
        staging_arguments=tuple(arguments),
        key=_key(table, base, columns, sample, preset),
        key_columns=tuple(columns),
        has_before_images=settings_of(preset).before_images,
        notes=tuple(notes),
    )


def _key(
    table: RawTable,
    base: RawTable | None,
    columns: list[str],
    sample: Sample,
    preset: str,
) -> KeyProposal:
    where = "in each full load" if settings_of(preset).load_id else "in the inserts"
    return propose_key(
        table_name(table),
        columns,
        base or table,
        deletes=sample.deletes,
        unique=sample.unique,
        where="in the base table" if base else where,
        declared_by="the base table" if base else "the table",
    )


def _described(column: Column, data: list[str], preset: str) -> SourceColumn:
    described = (
        f"Column {column.name} of the source."
        if column.name in data
        else f"Column of the feed (preset {preset})."
    )
    return SourceColumn(column.name, column.comment or described)


def _is_lacking(part: str, table: RawTable) -> bool:
    """Whether a part of the sequence reads a column that some version of the format has not."""
    read = [part] if part.isidentifier() else re.findall(r"`([^`]+)`", part)
    return not {name.lower() for name in read} <= {column.lower() for column in table.names()}
