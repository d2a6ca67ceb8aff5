"""Query the marts with SQL, without Spark or Java: PyIceberg reads the tables, DuckDB queries.

Usage: python examples/query_marts.py "select * from orders_current limit 5"
Works while dbt is running: readers see the last published state. AFTERIMAGE_WAREHOUSE and
AFTERIMAGE_SCHEMA name another folder or schema than the default ones.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import duckdb
from pyiceberg.catalog.sql import SqlCatalog

WAREHOUSE = Path(os.environ.get("AFTERIMAGE_WAREHOUSE", "warehouse")).resolve()
SCHEMA = os.environ.get("AFTERIMAGE_SCHEMA", "afterimage")


def open_catalog() -> SqlCatalog:
    """The catalog of the embedded target: one SQLite file, the same that Spark writes."""
    return SqlCatalog("lake", uri=f"sqlite:///{WAREHOUSE}/catalog.db", warehouse=str(WAREHOUSE))


def query(sql: str) -> duckdb.DuckDBPyRelation:
    """Run SQL over the marts; a table that the SQL names is read, the others are not."""
    catalog = open_catalog()
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    for _, name in catalog.list_tables(SCHEMA):
        if re.search(rf"\b{re.escape(name)}\b", sql):
            connection.register(name, catalog.load_table(f"{SCHEMA}.{name}").scan().to_arrow())
    return connection.sql(sql)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    query(sys.argv[1]).show(max_width=200)
