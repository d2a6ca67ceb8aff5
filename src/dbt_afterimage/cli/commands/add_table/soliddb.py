"""Proposes the settings of tables whose changes are in a landed solidDB transaction log."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt_afterimage.cli.commands.add_table.keys import key_candidates, propose_key
from dbt_afterimage.cli.commands.add_table.proposal import (
    LOAD_WITHOUT_TIME,
    Proposal,
    SharedModel,
    SourceColumn,
    SourceTable,
    model_name,
    unanswered_base,
)
from dbt_afterimage.cli.commands.add_table.raw_schema import RawSchema, RawTable
from dbt_afterimage.sources.soliddb.framing import FRAMINGS
from dbt_afterimage.sources.soliddb.record_ids import BEFORE_IMAGE, INSERT, UPDATE

_LOG = {"recid", "trxid", "relid", "flags", "logaddr", "data", "landed_at"}
_TABLES = {"id", "table_name", "table_schema", "snapshot_logaddr"}
_COLUMNS = {"rel_id", "column_name", "column_number", "data_type_number", "snapshot_logaddr"}
_SYSTEM_SCHEMA = "_SYSTEM"
# Of sampled records, how many a framing must cut into as many values as their table has columns.
_CONVINCING = 0.9


@dataclass(frozen=True)
class Landed:
    """The landed tables of one server."""

    log: RawTable
    tables: RawTable
    columns: RawTable


@dataclass(frozen=True)
class Record:
    """A sampled record with a row: its record id, its table's id and its DATA."""

    record_id: int
    relation_id: int
    data: bytes


@dataclass(frozen=True)
class LoggedTable:
    """A table of the server.

    Attributes:
        landed: where its log is.
        name: TABLE_NAME.
        schema: TABLE_SCHEMA.
        columns: COLUMN_NAME in order of COLUMN_NUMBER.
        is_one_of_many: several schemas have a table of this name.
        framing: what cuts the sampled records of the log; None where nothing built in does.
        records: sampled records of the table.
        unique: sets of columns that have no value twice in its full load, lower case.
    """

    landed: Landed
    name: str
    schema: str
    columns: tuple[str, ...]
    is_one_of_many: bool
    framing: str | None
    records: tuple[Record, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()

    def column_names(self) -> list[str]:
        """Its columns as the staging view names them."""
        return [name.lower() for name in self.columns]


def landed_tables(schema: RawSchema) -> Landed | None:
    """SYS_LOG, SYS_TABLES and SYS_COLUMNS in a raw schema; None unless all are there."""
    found = [
        next((t for t in schema.tables.values() if _has(t, columns)), None)
        for columns in (_LOG, _TABLES, _COLUMNS)
    ]
    log, tables, columns = found
    return Landed(log, tables, columns) if log and tables and columns else None


def is_users(name: str, schema: str) -> bool:
    """Whether a table of the catalogue is a user's, not the server's own."""
    return schema.upper() != _SYSTEM_SCHEMA and not name.upper().startswith("SYS_")


def framing_of(records: Iterable[Record], widths: Mapping[int, Collection[int]]) -> str | None:
    """The built-in framing that fits the sampled records; None if none does, or there is none.

    Args:
        widths: table id -> how many columns it has, or had.
    """
    known = [record for record in records if record.relation_id in widths]
    fitting = {
        name: sum(_fits(cut, record, widths[record.relation_id]) for record in known)
        for name, cut in FRAMINGS.items()
    }
    best = max(fitting, key=lambda name: fitting[name])
    return best if known and fitting[best] >= _CONVINCING * len(known) else None


def table_name(table: LoggedTable) -> str:
    """The table's name in model names: `LOANS` -> `loans`, with its schema if several have one."""
    return model_name(full_name(table))


def full_name(table: LoggedTable) -> str:
    """The table's name, with its schema if several schemas have a table of this name."""
    return f"{table.schema}.{table.name}" if table.is_one_of_many else table.name


def base_table(table: LoggedTable, schema: RawSchema) -> RawTable | None:
    """The landed full load of the table."""
    return schema.full_load(table_name(table), table.column_names())


def propose(table: LoggedTable, schema: RawSchema, source: str, prefix: str = "") -> Proposal:
    """The proposal for a table of the server."""
    name = prefix + table_name(table)
    columns = table.column_names()
    settings: dict[str, Any] = {}
    notes: list[str] = []
    source_settings: dict[str, Any] = {"system": "soliddb"}
    if table.framing:
        source_settings["framing"] = table.framing
        notes.append(f"framing: {table.framing}, which fits the sampled records of the log")
    else:
        notes.append(
            "framing: no built-in one fits the sampled records of the log. Set it on the source "
            "(docs/soliddb.md), or all records are rejected"
        )
    if table.is_one_of_many:
        settings["table_schema"] = table.schema
    log = f"stg_{source}__log"
    entry = table_name(table)
    arguments = [f"'{source}'", f"'{entry}'", f"log=ref('{log}')"]
    base = base_table(table, schema)
    tables = []
    if base:
        arguments.append(f"base='{base.name}'")
        settings["base"] = unanswered_base()
        notes.append(LOAD_WITHOUT_TIME)
        tables.append(SourceTable(base.name, base.comment or f"The full load of {entry}."))
    operations = {record.record_id for record in table.records}
    has_before_images = not (UPDATE in operations and BEFORE_IMAGE not in operations)
    if not has_before_images:
        settings["before_images"] = False
        notes.append("before_images: false (no sampled update has a before image)")
    landed = table.landed
    listed = (
        ("log", landed.log, "One row per record of the transaction log of all tables (SYS_LOG)."),
        ("tables", landed.tables, "One row per table and snapshot of the catalogue (SYS_TABLES)."),
        ("columns", landed.columns, "One row per column and snapshot (SYS_COLUMNS)."),
    )
    inserts = [record for record in table.records if record.record_id == INSERT]
    key = propose_key(
        entry,
        columns,
        base,
        unique=table.unique if base else _unique_in(inserts, table),
        where="in the full load" if base else f"in {len(inserts)} sampled inserts",
        declared_by="the full load",
    )
    return Proposal(
        table=name,
        schema=schema.name,
        source=source,
        source_settings=source_settings,
        system="soliddb",
        tables=(
            SourceTable(
                entry,
                f"The table {table.schema}.{table.name} at the server. Not landed.",
                settings,
                tuple(SourceColumn(one, f"Column {one} of the source.") for one in columns),
                identifier=table.name if table.name.lower() != entry else None,
            ),
            *tables,
        ),
        shared_tables=tuple(
            SourceTable(one.name, one.comment or description) for _, one, description in listed
        ),
        shared_model=SharedModel(
            name=log,
            module="dbt_afterimage.soliddb",
            builder="build_log",
            arguments=tuple(
                f'{argument}=dbt.source("{source}", "{one.name}")' for argument, one, _ in listed
            ),
            description="One row per record of the log of all tables, decoded once.",
        ),
        staging=f"stg_soliddb__{name}",
        staging_macro="stage_soliddb_table",
        staging_arguments=tuple(arguments),
        key=key,
        key_columns=tuple(columns),
        has_before_images=has_before_images,
        notes=tuple(notes),
    )


def _has(table: RawTable, columns: Collection[str]) -> bool:
    return {name.lower() for name in table.names()} >= set(columns)


def _fits(cut: Any, record: Record, widths: Collection[int]) -> bool:
    try:
        return len(cut(record.data, ())) in widths
    except ValueError:
        return False


def _unique_in(inserts: Sequence[Record], table: LoggedTable) -> list[tuple[str, ...]]:
    """Candidates for the key that have no value twice, and none missing, in sampled inserts."""
    names = table.column_names()
    if table.framing not in FRAMINGS:
        return []
    cut = FRAMINGS[table.framing]
    rows = [
        dict(zip(names, cut(record.data, ()), strict=True))
        for record in inserts
        if _fits(cut, record, (len(names),))
    ]
    found = []
    for key in key_candidates(table_name(table), names):
        values = {tuple(row[name] for name in key) for row in rows}
        if len(rows) > 1 and len(values) == len(rows) and not any(None in one for one in values):
            found.append(key)
    return found
