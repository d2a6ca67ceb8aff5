"""Columns of the ingested system tables of solidDB, as Spark types."""

from __future__ import annotations

SYS_LOG = (
    "recid int, recname string, trxid int, stmttrxid int, relid int, flags int, logaddr binary, "
    "data binary, textdata string, landed_at timestamp"
)
SYS_TABLES = (
    "id int, table_name string, table_type string, table_schema string, snapshot_logaddr binary"
)
SYS_COLUMNS = (
    "rel_id int, column_name string, column_number int, data_type string, data_type_number int, "
    "numeric_precision int, numeric_scale int, attr_type int, snapshot_logaddr binary"
)
