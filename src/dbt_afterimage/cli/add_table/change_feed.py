"""Proposes the settings of a change feed whose columns are those of a preset."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from dbt_afterimage.cli.add_table.keys import propose_key
from dbt_afterimage.cli.add_table.proposal import (
    KeyProposal,
    Proposal,
    SourceColumn,
    SourceTable,
    model_name,
)
from dbt_afterimage.cli.add_table.raw_schema import ChangeRecord, Column, RawSchema, RawTable
from dbt_afterimage.settings.change_feed import ChangeFeedSettings

_COMMAND_ID = "`__$command_id`"
_SUFFIXES = ("_ct", "_cdc", "_changes", "_change_feed", "_events", "_snapshots", "_extracts")


@dataclass(frozen=True)
class Feed:
    """A preset, and how its tables are known.

    Attributes:
        preset: its name.
        columns: a table with all of them is one of its tables.
        is_telling: no other table has such columns. False: `--all` leaves such tables out.
        may_have_load: whether a landed table of the same name is the full load of the feed.
    """

    preset: str
    columns: frozenset[str]
    is_telling: bool = True
    may_have_load: bool = False


FEEDS = (
    Feed(
        "sql_server_cdc",
        frozenset({"__$start_lsn", "__$seqval", "__$operation", "__$update_mask"}),
        may_have_load=True,
    ),
    Feed("debezium_flat", frozenset({"__op", "__lsn", "__source_ts_ms"})),
    Feed("delta_change_feed", frozenset({"_change_type", "_commit_version", "_commit_timestamp"})),
    Feed("aws_dms", frozenset({"op", "change_seq", "commit_timestamp"})),
    Feed("snapshots", frozenset({"load_date"}), is_telling=False),
)


@dataclass(frozen=True)
class FeedSample:
    """What was read of a feed.

    Attributes:
        deletes: sampled deletes; some feeds fill in the key only.
        unique: sets of columns with no value twice in the inserts, or in an extract.
    """

    deletes: tuple[ChangeRecord, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()


def feed_of(table: RawTable) -> Feed | None:
    """The feed whose columns a table has."""
    names = {name.lower() for name in table.names()}
    return next((feed for feed in FEEDS if feed.columns <= names and len(names) > 1), None)


@cache
def settings_of(preset: str) -> ChangeFeedSettings:
    """The settings of a preset, for a table without a setting of its own."""
    return ChangeFeedSettings.model_validate({"system": "change_feed", "preset": preset})


def data_columns(table: RawTable, feed: Feed) -> list[Column]:
    """The columns that are the source's."""
    settings = settings_of(feed.preset)
    return [column for column in table.columns if not settings.is_own_column(column.name)]


def table_name(table: RawTable) -> str:
    """The source table's name in model names: `dbo_Customers_CT` -> `customers`."""
    name = model_name(table.name).removeprefix("dbo_")
    suffix = next((one for one in _SUFFIXES if name.endswith(one) and name != one), "")
    return name.removesuffix(suffix)


def base_table(table: RawTable, schema: RawSchema, feed: Feed) -> RawTable | None:
    """A landed table of the source table's name, with its columns."""
    if not feed.may_have_load:
        return None
    columns = [column.name for column in data_columns(table, feed)]
    found = schema.full_load(table_name(table), columns)
    return found if found is not None and found is not table and feed_of(found) is None else None


def propose(
    table: RawTable,
    schema: RawSchema,
    feed: Feed,
    source: str,
    sample: FeedSample,
    prefix: str = "",
) -> Proposal:
    """What to write for a change feed.

    Args:
        table: the raw table.
        schema: the raw schema.
        feed: what `feed_of` says of the table.
        source: name of the dbt source.
        sample: what was read of the table.
        prefix: of model names.
    """
    name = prefix + table_name(table)
    columns = [column.name for column in data_columns(table, feed)]
    settings: dict[str, Any] = {"preset": feed.preset}
    notes = [f"preset: {feed.preset}, by its columns"]
    lower = {column.lower() for column in table.names()}
    if feed.preset == "sql_server_cdc" and "__$command_id" not in lower:
        parts = settings_of(feed.preset).sequence
        settings["sequence"] = {part: parts[part] for part in parts if part != _COMMAND_ID}
        notes.append("sequence: without __$command_id, which this version of SQL Server lacks")
    arguments = [f"'{source}'", f"'{table.name}'"]
    tables = []
    base = base_table(table, schema, feed)
    if base:
        arguments.append(f"base='{base.name}'")
        settings["base"] = {"kind": "frozen"}
        notes += [
            "base.kind: frozen (set live if the base table is kept up to date)",
            "the time of the full load is not in the data: set base.loaded_at, or history begins "
            "in 1900",
        ]
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
                tuple(_described(column, columns, feed) for column in table.columns),
            ),
            *tables,
        ),
        staging=f"stg_{source}__{name}",
        staging_macro="stage_change_feed",
        staging_arguments=tuple(arguments),
        key=_key(table, base, columns, sample, feed),
        key_columns=tuple(columns),
        has_before_images=settings_of(feed.preset).before_images,
        notes=tuple(notes),
    )


def _key(
    table: RawTable,
    base: RawTable | None,
    columns: list[str],
    sample: FeedSample,
    feed: Feed,
) -> KeyProposal:
    where = "in each extract" if feed.preset == "snapshots" else "in the inserts"
    return propose_key(
        table_name(table),
        columns,
        base or table,
        deletes=sample.deletes,
        unique=sample.unique,
        where="in the base table" if base else where,
        declared_by="the base table" if base else "the table",
    )


def _described(column: Column, data: list[str], feed: Feed) -> SourceColumn:
    described = (
        f"Column {column.name} of the source."
        if column.name in data
        else f"Column of the feed (preset {feed.preset})."
    )
    return SourceColumn(column.name, column.comment or described)
