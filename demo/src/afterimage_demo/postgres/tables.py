"""The tables of the database that the demo reads, as PostgreSQL itself shows their rows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PostgresTable:
    """A table.

    Attributes:
        key: its primary key.
        columns: name -> type in Spark; those of `read_as` differ in PostgreSQL.
        read_as: name -> SQL of PostgreSQL that gives the value as `columns` says.
    """

    key: str
    columns: dict[str, str]
    read_as: dict[str, str]

    def rows_as_json(self, name: str, present: list[str]) -> str:
        """A statement that reads all rows, one JSON object per row.

        Args:
            name: of the table.
            present: columns that it has by now.
        """
        columns = [column for column in self.columns if column in present]
        values = ", ".join(f"{self.read_as.get(column, column)} as {column}" for column in columns)
        return f"select row_to_json(of_row) from (select {values} from {name}) as of_row"


TABLES = {
    "pgbench_branches": PostgresTable(
        "bid", {"bid": "int", "bbalance": "int", "filler": "string"}, {}
    ),
    "pgbench_tellers": PostgresTable(
        "tid", {"tid": "int", "bid": "int", "tbalance": "int", "filler": "string"}, {}
    ),
    "pgbench_accounts": PostgresTable(
        "aid", {"aid": "int", "bid": "int", "abalance": "int", "filler": "string"}, {}
    ),
    "pgbench_history": PostgresTable(
        "id",
        {
            "id": "bigint",
            "tid": "int",
            "bid": "int",
            "aid": "int",
            "delta": "int",
            "mtime": "timestamp_ntz",
            "filler": "string",
        },
        {},
    ),
    "documents": PostgresTable(
        "id",
        {
            "id": "int",
            "title": "string",
            "body": "string",
            "price": "decimal(10,2)",
            "published": "date",
            "edited": "timestamp",
            "read_at": "string",
            "is_public": "boolean",
            "cover": "binary",
            "reference": "string",
            "properties": "string",
            "tags": "string",
            "note": "string",
        },
        {
            "read_at": "to_char(read_at, 'HH24:MI:SS.US')",
            "cover": "encode(cover, 'base64')",
            "properties": "properties::text",
            "tags": "to_json(tags)::text",
        },
    ),
}
