"""Proposes the settings of a change feed whose columns are those of a preset."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from dbt_afterimage.cli.commands.add_table.keys import (
    Sample,
    key_candidates,
    propose_key,
    sampled_deletes,
    unique_in_load,
)
from dbt_afterimage.cli.commands.add_table.proposal import (
    Found,
    Proposal,
    SourceTable,
    full_load,
    source_columns,
)
from dbt_afterimage.cli.support.raw_schema.read_schema import relation_of, unique_keys
from dbt_afterimage.cli.support.raw_schema.schema import RawSchema, RawTable, model_name
from dbt_afterimage.settings.change_feed import ChangeFeedSettings, presets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SYSTEM = "change_feed"
_SUFFIXES = ("_ct", "_cdc", "_changes", "_change_feed", "_events", "_snapshots", "_extracts")


def preset_of(table: RawTable) -> str | None:
    """The preset whose columns a table has."""
    names = table.types().keys()
    fitting = [
        preset
        for preset, described in presets().items()
        if described.recognition
        and described.recognition.columns
        and {name.lower() for name in described.recognition.columns} < names
    ]
    return max(fitting, key=is_certain, default=None)


def is_certain(preset: str) -> bool:
    """Whether no other table has the columns of the preset's."""
    known = presets()[preset].recognition
    return known is not None and known.is_certain


@cache
def settings_of(preset: str) -> ChangeFeedSettings:
    """The settings of a preset, for a table without a setting of its own."""
    return ChangeFeedSettings.model_validate({"system": "change_feed", "preset": preset})


def data_columns(table: RawTable, preset: str) -> list[str]:
    """The columns that are the source's."""
    settings = settings_of(preset)
    return [name for name in table.names() if not settings.is_own_column(name)]


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
    return schema.full_load(table_name(table), data_columns(table, preset), preset_of)


def find(session: SparkSession, schema: RawSchema) -> Iterator[Found]:
    """The tables of a schema whose columns are those of a preset."""
    known = [(table, preset) for table in schema.tables.values() if (preset := preset_of(table))]
    for table, of_table in known:

        def proposed(source: str, table: RawTable = table, preset: str = of_table) -> Proposal:
            sample = _sample(session, schema, table, preset)
            return propose(table, schema, preset, source, sample)

        yield Found(SYSTEM, table.name, table_name(table), proposed, is_certain(of_table))


def _sample(session: SparkSession, schema: RawSchema, table: RawTable, preset: str) -> Sample:
    """Sampled deletes of a feed, and what is unique in its inserts or in its full load."""
    settings = settings_of(preset)
    relation, stem = relation_of(schema.name, table.name), table_name(table)
    data = data_columns(table, preset)
    if base := base_table(table, schema, preset):
        return Sample(unique=unique_in_load(session, schema, base, stem, data))
    if table.declared_key:
        return Sample()

    def is_one_of(*letters: str) -> str:
        values = [value for value, letter in settings.operations.items() if letter in letters]
        listed = ", ".join(f"'{value}'" for value in values) or "null"
        return f"cast({settings.operation} as string) in ({listed})"

    within = [settings.load_id] if settings.load_id else []
    inserts = f"(select * from {relation} where {is_one_of('I', 'L')})"
    return Sample(
        deletes=sampled_deletes(session, relation, is_one_of("D"), data),
        unique=unique_keys(session, inserts, key_candidates(stem, data), within),
    )


def propose(
    table: RawTable, schema: RawSchema, preset: str, source: str, sample: Sample
) -> Proposal:
    """The proposal for a change feed."""
    name, base = table_name(table), base_table(table, schema, preset)
    own, columns = settings_of(preset), data_columns(table, preset)
    settings: dict[str, Any] = {"preset": preset}
    notes = [f"preset: {preset}, by its columns"]
    lacking = [part for part in own.sequence if _is_lacking(part, table)]
    if lacking and len(lacking) < len(own.sequence):
        parts = {part: kind for part, kind in own.sequence.items() if part not in lacking}
        settings["sequence"] = parts
        notes.append(f"sequence: without {', '.join(lacking)}, which the table lacks")
    where = "the base table"
    if base is None:
        of_data = "each full load" if own.load_id else "the inserts"
        where = "the table" if table.declared_key else of_data
    described = source_columns(table, columns, lambda _: f"Column of the feed (preset {preset}).")
    text = table.comment or f"The change feed of {name}."
    return Proposal(
        SYSTEM,
        schema.name,
        source,
        name,
        SourceTable(table.name, text, settings, described),
        propose_key(name, columns, base or table, sample, where),
        columns,
        notes,
        full_load(base, name),
        has_before_images=own.before_images,
    )


def _is_lacking(part: str, table: RawTable) -> bool:
    """Whether a part of the sequence reads a column that some version of the format has not."""
    read = [part] if part.isidentifier() else re.findall(r"`([^`]+)`", part)
    return not {name.lower() for name in read} <= table.types().keys()
