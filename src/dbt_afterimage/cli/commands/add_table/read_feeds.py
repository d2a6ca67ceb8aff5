"""Reads samples of change feeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_afterimage.cli.commands.add_table import change_feed
from dbt_afterimage.cli.commands.add_table.keys import key_candidates
from dbt_afterimage.cli.commands.add_table.raw_schema import RawSchema, RawTable, Sample
from dbt_afterimage.cli.commands.add_table.read import (
    relation_of,
    sampled_deletes,
    unique_in_load,
    unique_keys,
)
from dbt_afterimage.settings.change_feed import ChangeFeedSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read_feed_sample(
    session: SparkSession, schema: RawSchema, table: RawTable, preset: str
) -> Sample:
    """Sampled deletes of a feed, and what is unique in its inserts or in its full load."""
    settings = change_feed.settings_of(preset)
    relation = relation_of(schema.name, table.name)
    data = [column.name for column in change_feed.data_columns(table, preset)]
    base = change_feed.base_table(table, schema, preset)
    stem = change_feed.table_name(table)
    if base:
        return Sample(unique=unique_in_load(session, schema, base, stem, data))
    if table.declared_key:
        return Sample()
    within = [settings.load_id] if settings.load_id else []
    inserts = f"(select * from {relation} where {_is_one_of(settings, 'I', 'L')})"
    return Sample(
        deletes=sampled_deletes(session, relation, _is_one_of(settings, "D"), data),
        unique=tuple(unique_keys(session, inserts, key_candidates(stem, data), within)),
    )


def _is_one_of(settings: ChangeFeedSettings, *letters: str) -> str:
    """SQL: the record has one of these operations of the contract."""
    values = [value for value, letter in settings.operations.items() if letter in letters]
    listed = ", ".join(f"'{value}'" for value in values) or "null"
    return f"cast({settings.operation} as string) in ({listed})"
