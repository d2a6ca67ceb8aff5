"""Proposes the settings of tables whose changes are in a landed solidDB transaction log."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dbt_afterimage.cli.commands.add_table.keys import (
    Sample,
    key_candidates,
    propose_key,
    unique_in_load,
)
from dbt_afterimage.cli.commands.add_table.proposal import (
    Found,
    Proposal,
    SharedModel,
    SourceTable,
    proposal_of,
    source_column,
)
from dbt_afterimage.cli.support.raw_schema.read_schema import readable, relation_of
from dbt_afterimage.cli.support.raw_schema.tables import RawSchema, RawTable, model_name
from dbt_afterimage.sources.soliddb.framing import FRAMINGS
from dbt_afterimage.sources.soliddb.record_ids import BEFORE_IMAGE, INSERT, ROW_IDS, UPDATE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = {"recid", "trxid", "relid", "flags", "logaddr", "data", "landed_at"}
_TABLES = {"id", "table_name", "table_schema", "snapshot_logaddr"}
_COLUMNS = {"rel_id", "column_name", "column_number", "data_type_number", "snapshot_logaddr"}
_SYSTEM_SCHEMA = "_SYSTEM"
_RECORDS, _OF_A_TABLE = 20_000, 60
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

        def proposed(source: str, prefix: str, table: LoggedTable = table) -> Proposal:
            base, name = base_table(table, schema), model_name(table.full_name())
            unique = unique_in_load(session, schema, base, name, table.column_names())
            return propose(replace(table, unique=unique), schema, source, prefix)

        yield Found("soliddb", table.full_name(), model_name(table.full_name()), proposed)


def _logged_tables(session: SparkSession, schema: RawSchema, landed: Landed) -> list[LoggedTable]:
    """The users' tables of the newest snapshot of the catalogue, with sampled records."""
    tables, columns, log = (
        relation_of(schema.name, one.name) for one in (landed.tables, landed.columns, landed.log)
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
    widths = {id_: {len(listed) for listed in of.values()} for id_, of in snapshots.items()}
    records = _records(session, log, landed.log.types()["data"])
    framing = "decoded" if records is None else framing_of(records, widths)
    times = Counter(row["table_name"] for row in users)
    return [
        LoggedTable(
            landed,
            row["table_name"],
            row["owner"],
            tuple(name for _, name in sorted(snapshots[row["id"]][max(snapshots[row["id"]])])),
            times[row["table_name"]] > 1,
            framing,
            tuple(record for record in records or () if record.relation_id == row["id"]),
        )
        for row in sorted(users, key=lambda row: (row["table_name"], row["owner"]))
        if row["id"] in snapshots
    ]


def _records(session: SparkSession, log: str, kind: str) -> list[Record] | None:
    """Sampled records with a row, of each table a few; None if DATA is decoded already."""
    if kind.startswith("map"):
        return None
    data = "data" if kind == "binary" else "unhex(data)"
    text = "cast(null as string)" if kind == "binary" else "data"
    listed = ", ".join(map(str, ROW_IDS))
    rows = session.sql(
        f"select recid, relid, {data} as data, {text} as text from (select *, "
        "row_number() over (partition by relid order by recid, logaddr) as place from (select * "
        f"from {log} where cast(recid as int) in ({listed}) limit {_RECORDS})) "
        f"where place <= {_OF_A_TABLE}"
    ).collect()
    if any((row["text"] or "").lstrip().startswith("{") for row in rows):
        return None
    return [
        Record(int(row["recid"]), int(row["relid"]), bytes(row["data"]))
        for row in rows
        if row["data"] is not None and row["relid"] is not None
    ]


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


def base_table(table: LoggedTable, schema: RawSchema) -> RawTable | None:
    """The landed full load of the table."""
    return schema.full_load(model_name(table.full_name()), table.column_names())


def propose(table: LoggedTable, schema: RawSchema, source: str, prefix: str = "") -> Proposal:
    """The proposal for a table of the server."""
    entry, columns, landed = model_name(table.full_name()), table.column_names(), table.landed
    base, log = base_table(table, schema), f"stg_{source}__log"
    note = (
        f"framing: {table.framing}, which fits the sampled records of the log"
        if table.framing
        else "framing: no built-in one fits the sampled records of the log. Set it on the source "
        "(docs/soliddb.md), or all records are rejected"
    )
    operations = {record.record_id for record in table.records}
    inserts = [record for record in table.records if record.record_id == INSERT]
    key = propose_key(
        entry,
        columns,
        base,
        Sample(unique=table.unique if base else _unique_in(inserts, table)),
        where="in the full load" if base else f"in {len(inserts)} sampled inserts",
        declared_by="the full load",
    )
    shared = (
        ("log", landed.log, "One row per record of the transaction log of all tables (SYS_LOG)."),
        ("tables", landed.tables, "One row per table and snapshot of the catalogue (SYS_TABLES)."),
        ("columns", landed.columns, "One row per column and snapshot (SYS_COLUMNS)."),
    )
    return proposal_of(
        "soliddb",
        schema.name,
        source,
        prefix,
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
        notes=[note],
        base=base,
        arguments=[f"log=ref('{log}')"],
        no_before_images="before_images: false (no sampled update has a before image)"
        if UPDATE in operations and BEFORE_IMAGE not in operations
        else "",
        source_settings={"framing": table.framing} if table.framing else {},
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


def _fits(cut: Any, record: Record, widths: Collection[int]) -> bool:
    try:
        return len(cut(record.data, ())) in widths
    except ValueError:
        return False


def _unique_in(inserts: Sequence[Record], table: LoggedTable) -> list[tuple[str, ...]]:
    """Candidates for the key that have no value twice, and none missing, in sampled inserts."""
    names, cut = table.column_names(), FRAMINGS.get(table.framing or "")
    if cut is None:
        return []
    rows = [
        dict(zip(names, cut(record.data, ()), strict=True))
        for record in inserts
        if _fits(cut, record, (len(names),))
    ]
    found = []
    for key in key_candidates(model_name(table.full_name()), names):
        values = {tuple(row[name] for name in key) for row in rows}
        if len(rows) > 1 and len(values) == len(rows) and not any(None in one for one in values):
            found.append(key)
    return found
