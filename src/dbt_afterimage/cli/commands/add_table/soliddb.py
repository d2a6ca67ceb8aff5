"""Proposes the settings of tables whose changes are in a landed solidDB transaction log."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dbt_afterimage.cli.commands.add_table.keys import Sample, propose_key, unique_in_load
from dbt_afterimage.cli.commands.add_table.proposal import (
    Found,
    Proposal,
    SharedModel,
    SourceTable,
    full_load,
    source_column,
)
from dbt_afterimage.cli.support.raw_schema.read_schema import readable, relation_of
from dbt_afterimage.cli.support.raw_schema.schema import RawSchema, RawTable, model_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SYSTEM = "soliddb"
_LOG = {"recid", "trxid", "relid", "flags", "logaddr", "data", "landed_at"}
_TABLES = {"id", "table_name", "table_schema", "snapshot_logaddr"}
_COLUMNS = {"rel_id", "column_name", "column_number", "data_type_number", "snapshot_logaddr"}
_SYSTEM_SCHEMA = "_SYSTEM"
FRAMING = (
    "framing: length_prefixed, unless you set another one on the source (docs/soliddb.md): if it "
    "is wrong, the first run rejects all records"
)


@dataclass(frozen=True)
class Landed:
    """The landed tables of one server."""

    log: RawTable
    tables: RawTable
    columns: RawTable


@dataclass(frozen=True)
class LoggedTable:
    """A table of the server.

    Attributes:
        landed: where its log is.
        name: TABLE_NAME.
        schema: TABLE_SCHEMA.
        columns: COLUMN_NAME in order of COLUMN_NUMBER.
        is_one_of_many: several schemas have a table of this name.
        unique: sets of columns that have no value twice in its full load, lower case.
    """

    landed: Landed
    name: str
    schema: str
    columns: tuple[str, ...]
    is_one_of_many: bool
    unique: tuple[tuple[str, ...], ...] = ()

    def column_names(self) -> list[str]:
        """Its columns as the staging view names them."""
        return [name.lower() for name in self.columns]

    def full_name(self) -> str:
        """Its name, with its schema if several schemas have a table of this name."""
        return f"{self.schema}.{self.name}" if self.is_one_of_many else self.name


def landed_tables(schema: RawSchema) -> Landed | None:
    """SYS_LOG, SYS_TABLES and SYS_COLUMNS in a raw schema; None unless all are there."""
    log, tables, columns = (
        next((t for t in schema.tables.values() if t.types().keys() >= columns), None)
        for columns in (_LOG, _TABLES, _COLUMNS)
    )
    return Landed(log, tables, columns) if log and tables and columns else None


def is_users(name: str, schema: str) -> bool:
    """Whether a table of the catalogue is a user's, not the server's own."""
    return schema.upper() != _SYSTEM_SCHEMA and not name.upper().startswith("SYS_")


def find(session: SparkSession, schema: RawSchema) -> Iterator[Found]:
    """The tables of the server whose log a schema holds."""
    landed = landed_tables(schema)
    if landed is None:
        return
    with readable(f"{schema.name}.{landed.log.name}"):
        tables = _logged_tables(session, schema, landed)
    for table in tables:

        def proposed(source: str, table: LoggedTable = table) -> Proposal:
            base, name = base_table(table, schema), model_name(table.full_name())
            unique = unique_in_load(session, schema, base, name, table.column_names())
            return propose(replace(table, unique=unique), schema, source)

        yield Found(SYSTEM, table.full_name(), model_name(table.full_name()), proposed)


def _logged_tables(session: SparkSession, schema: RawSchema, landed: Landed) -> list[LoggedTable]:
    """The users' tables of the newest snapshot of the catalogue."""
    tables, columns = (
        relation_of(schema.name, one.name) for one in (landed.tables, landed.columns)
    )
    place = "coalesce(hex(snapshot_logaddr), '')"
    named = session.sql(
        f"select distinct cast(id as int) as id, table_name, coalesce(table_schema, '') as owner "
        f"from {tables} where {place} = (select max({place}) from {tables})"
    ).collect()
    users = [row for row in named if is_users(row["table_name"], row["owner"])]
    # parts of indexes have another kind
    has_kind = "attr_type" in landed.columns.types()
    snapshots: dict[int, dict[str, list[tuple[int, str]]]] = defaultdict(lambda: defaultdict(list))
    for row in session.sql(
        f"select distinct cast(rel_id as int) as id, {place} as place, "
        f"cast(column_number as int) as number, column_name from {columns} "
        f"where {'coalesce(cast(attr_type as int), 0) = 0' if has_kind else 'true'}"
    ).collect():
        snapshots[row["id"]][row["place"]].append((row["number"], row["column_name"]))
    times = Counter(row["table_name"] for row in users)
    return [
        LoggedTable(
            landed,
            row["table_name"],
            row["owner"],
            tuple(name for _, name in sorted(snapshots[row["id"]][max(snapshots[row["id"]])])),
            times[row["table_name"]] > 1,
        )
        for row in sorted(users, key=lambda row: (row["table_name"], row["owner"]))
        if row["id"] in snapshots
    ]


def base_table(table: LoggedTable, schema: RawSchema) -> RawTable | None:
    """The landed full load of the table."""
    return schema.full_load(model_name(table.full_name()), table.column_names())


def propose(table: LoggedTable, schema: RawSchema, source: str) -> Proposal:
    """The proposal for a table of the server."""
    entry, columns, landed = model_name(table.full_name()), table.column_names(), table.landed
    base, log = base_table(table, schema), f"stg_{source}__log"
    is_decoded = landed.log.types()["data"].startswith("map")
    notes = [] if is_decoded else [FRAMING]
    key = propose_key(
        entry,
        columns,
        base,
        Sample(unique=table.unique),
        where="in the full load",
        declared_by="the full load",
    )
    shared = (
        ("log", landed.log, "One row per record of the transaction log of all tables (SYS_LOG)."),
        ("tables", landed.tables, "One row per table and snapshot of the catalogue (SYS_TABLES)."),
        ("columns", landed.columns, "One row per column and snapshot (SYS_COLUMNS)."),
    )
    return Proposal(
        SYSTEM,
        schema.name,
        source,
        entry,
        SourceTable(
            entry,
            f"The table {table.schema}.{table.name} at the server. Not landed.",
            {"table_schema": table.schema} if table.is_one_of_many else {},
            tuple(map(source_column, columns)),
            identifier=table.name if table.name.lower() != entry else None,
        ),
        key,
        columns,
        notes,
        full_load(base, entry),
        [f"log=ref('{log}')"],
        source_settings={"framing": "decoded"} if is_decoded else {},
        shared_tables=tuple(SourceTable(one.name, one.comment or text) for _, one, text in shared),
        shared_model=SharedModel(
            name=log,
            module="dbt_afterimage.soliddb",
            builder="build_log",
            arguments=tuple(
                f'{name}=dbt.source("{source}", "{one.name}")' for name, one, _ in shared
            ),
            description="One row per record of the log of all tables, decoded once.",
        ),
    )
