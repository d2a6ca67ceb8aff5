"""The tables of the database that the demo reads, as MariaDB itself shows their rows."""

from __future__ import annotations

TABLES = {
    # column -> its type in MariaDB and in Spark, and SQL of MariaDB that gives its value in JSON
    "parcels": {
        "id": ("int primary key", "int", "id"),
        "packed": ("datetime", "timestamp_ntz", "packed"),
        "weighed": ("datetime(6)", "timestamp_ntz", "weighed"),
        "scanned": ("timestamp(3) null", "timestamp", "scanned"),
        "pickup": ("time(6)", "string", "pickup"),
        # Debezium writes the lowest byte first
        "flags": ("bit(10)", "binary", "to_base64(reverse(unhex(lpad(hex(flags), 4, '0'))))"),
        "size": ("enum('s', 'm', 'l')", "string", "size"),
        "price": ("decimal(10,2)", "decimal(10,2)", "price"),
        "barcode": ("bigint unsigned", "decimal(20,0)", "barcode"),
        # as text: MariaDB would write it into the object
        "contents": ("json", "string", "concat(contents, '')"),
        "due": ("date", "date", "due"),
    },
    "wallets": {
        "id": ("int primary key", "int", "id"),
        "balance": ("decimal(12,2)", "decimal(12,2)", "balance"),
    },
    "payments": {
        "id": ("int auto_increment primary key", "int", "id"),
        "payer": ("int", "int", "payer"),
        "payee": ("int", "int", "payee"),
        "amount": ("decimal(12,2)", "decimal(12,2)", "amount"),
    },
}


def creation(table: str) -> str:
    """A statement that creates a table."""
    columns = ", ".join(f"{name} {kind}" for name, (kind, _, _) in TABLES[table].items())
    return f"create table {table} ({columns});"


def rows_as_json(table: str) -> str:
    """A statement that reads all rows, one JSON object per row."""
    values = ", ".join(f"'{name}', {value}" for name, (_, _, value) in TABLES[table].items())
    return f"select json_object({values}) from {table}"
