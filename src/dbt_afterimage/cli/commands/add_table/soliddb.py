"""Proposes the settings of tables whose changes are in a landed solidDB transaction log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbt_afterimage.cli.commands.add_table.keys import Sample, propose_key, unique_in_load
from dbt_afterimage.cli.commands.add_table.proposal import (
    Found,
    Proposal,
    SharedModel,
    SourceColumn,
    SourceTable,
    full_load,
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
        columns: COLUMN_NAME in order of COLUMN_NUMBER, lower case, as the staging view has them.
        is_one_of_many: several schemas have a table of this name.
    """

    landed: Landed
    name: str
    schema: str
    columns: tuple[str, ...]
    is_one_of_many: bool

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
            unique = unique_in_load(session, schema, base, name, table.columns)
            return propose(table, schema, source, Sample(unique=unique))

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
    newest = session.sql(
        "select id, max_by(numbered, place) from (select cast(rel_id as int) as id, "
        f"{place} as place, array_sort(collect_set(struct(cast(column_number as int), "
        f"lower(column_name)))) as numbered from {columns} "
        f"where {'coalesce(cast(attr_type as int), 0) = 0' if has_kind else 'true'} "
        "group by all) group by all"
    ).collect()
    names = {row[0]: tuple(name for _, name in row[1]) for row in newest}
    times = Counter(row["table_name"] for row in users)
    return [
        LoggedTable(
            landed,
            row["table_name"],
            row["owner"],
            names[row["id"]],
            times[row["table_name"]] > 1,
        )
        for row in sorted(users, key=lambda row: (row["table_name"], row["owner"]))
        if row["id"] in names
    ]


def base_table(table: LoggedTable, schema: RawSchema) -> RawTable | None:
    """The landed full load of the table."""
    return schema.full_load(model_name(table.full_name()), table.columns)


def propose(table: LoggedTable, schema: RawSchema, source: str, sample: Sample) -> Proposal:
    """The proposal for a table of the server."""
    entry, columns, landed = model_name(table.full_name()), table.columns, table.landed
    base, log = base_table(table, schema), f"stg_{source}__log"
    is_decoded = landed.log.types()["data"].startswith("map")
    notes = [] if is_decoded else [FRAMING]
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
            tuple(map(SourceColumn, columns)),
            identifier=table.name if table.name.lower() != entry else None,
        ),
        propose_key(entry, columns, base, sample, "the full load"),
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
