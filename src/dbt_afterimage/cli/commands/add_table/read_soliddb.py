"""Reads the landed catalogue of a solidDB server and samples of its log."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from dbt_afterimage.cli.commands.add_table import soliddb
from dbt_afterimage.cli.commands.add_table.raw_schema import RawSchema, RawTable
from dbt_afterimage.cli.commands.add_table.read import relation_of, types_of
from dbt_afterimage.cli.commands.add_table.soliddb import Landed, LoggedTable, Record
from dbt_afterimage.sources.soliddb.record_ids import ROW_IDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RECORDS = 20_000
_OF_A_TABLE = 60


def read_logged_tables(
    session: SparkSession, schema: RawSchema, landed: Landed
) -> list[LoggedTable]:
    """The users' tables of the newest snapshot of the catalogue, with sampled records."""
    tables, columns = _relation(schema, landed.tables), _relation(schema, landed.columns)
    place = "coalesce(hex(snapshot_logaddr), '')"
    named = session.sql(
        f"select distinct cast(id as int) as id, table_name, coalesce(table_schema, '') as owner "
        f"from {tables} where {place} = (select max({place}) from {tables})"
    ).collect()
    users = [row for row in named if soliddb.is_users(row["table_name"], row["owner"])]
    of_relation: dict[int, dict[str, list[tuple[int, str]]]] = defaultdict(dict)
    for row in session.sql(
        f"select distinct cast(rel_id as int) as id, {place} as place, "
        f"cast(column_number as int) as number, column_name from {columns} "
        f"where {_is_users_column(landed.columns)}"
    ).collect():
        listed = of_relation[row["id"]].setdefault(row["place"], [])
        listed.append((row["number"], row["column_name"]))
    widths = {
        relation: {len(listed) for listed in snapshots.values()}
        for relation, snapshots in of_relation.items()
    }
    records, is_decoded = _records(session, schema, landed.log)
    framing = "decoded" if is_decoded else soliddb.framing_of(records, widths)
    times = Counter(row["table_name"] for row in users)
    found = []
    for row in sorted(users, key=lambda row: (row["table_name"], row["owner"])):
        snapshots = of_relation.get(row["id"])
        if not snapshots:
            continue
        newest = sorted(snapshots[max(snapshots)])
        found.append(
            LoggedTable(
                landed,
                row["table_name"],
                row["owner"],
                tuple(name for _, name in newest),
                times[row["table_name"]] > 1,
                framing,
                tuple(record for record in records if record.relation_id == row["id"]),
            )
        )
    return found


def _relation(schema: RawSchema, table: RawTable) -> str:
    return relation_of(schema.name, table.name)


def _is_users_column(columns: RawTable) -> str:
    """SQL: no part of an index."""
    has_kind = "attr_type" in types_of(columns)
    return "coalesce(cast(attr_type as int), 0) = 0" if has_kind else "true"


def _records(session: SparkSession, schema: RawSchema, log: RawTable) -> tuple[list[Record], bool]:
    """Sampled records with a row, of each table a few; and whether DATA is decoded already."""
    kind = types_of(log)["data"]
    if kind.startswith("map"):
        return [], True
    data = "data" if kind == "binary" else "unhex(data)"
    text = "cast(null as string)" if kind == "binary" else "data"
    listed = ", ".join(map(str, ROW_IDS))
    rows = session.sql(
        f"select recid, relid, {data} as data, {text} as text from (select *, "
        "row_number() over (partition by relid order by recid, logaddr) as place from (select * "
        f"from {_relation(schema, log)} where cast(recid as int) in ({listed}) limit {_RECORDS})) "
        f"where place <= {_OF_A_TABLE}"
    ).collect()
    if any((row["text"] or "").lstrip().startswith("{") for row in rows):
        return [], True
    return [
        Record(int(row["recid"]), int(row["relid"]), bytes(row["data"]))
        for row in rows
        if row["data"] is not None and row["relid"] is not None
    ], False
