"""Numbers of SYS_LOG: record ids, flags, DDL codes. From the manual's page on the log reader."""

from __future__ import annotations

# Digits of a LOGADDR as hex: 20 bytes on the page, 28 in messages of newer servers.
ADDRESS_DIGITS = (40, 56)

# RECID
EMPTY = 0
INSERT = 1
UPDATE = 3
DELETE = 4
BEFORE_IMAGE = 5
SQL = 6
START = 7
COMMIT = 12
DDL = 13

RECORD_IDS = {
    EMPTY: "no data",
    INSERT: "insert",
    UPDATE: "after image",
    DELETE: "delete",
    BEFORE_IMAGE: "before image",
    SQL: "SQL text",
    START: "start of a transaction",
    COMMIT: "commit",
    DDL: "DDL",
}
ROW_IDS = (INSERT, UPDATE, DELETE, BEFORE_IMAGE)

# FLAGS
HAS_DATA = 1
IS_CAPTURE_OFF = 64

# LOGRECID of a DDL record
CREATE_TABLE = 45
DROP_TABLE = 17
RENAME_TABLE = 47
ALTER_TABLE = 22
TRUNCATE_TABLE = 73

DDL_KINDS = {
    CREATE_TABLE: "create table",
    DROP_TABLE: "drop table",
    RENAME_TABLE: "rename table",
    ALTER_TABLE: "alter table",
    TRUNCATE_TABLE: "truncate table",
    16: "create index",
    18: "drop index",
    46: "create view",
    20: "drop view",
    28: "create sequence",
    30: "drop sequence",
    27: "create counter",
    29: "drop counter",
}
# After these the columns of a table may be others.
CHANGES_COLUMNS = (CREATE_TABLE, ALTER_TABLE)
EMPTIES_TABLE = (TRUNCATE_TABLE, DROP_TABLE)
# After these the rows of a table that is there are others, or are laid out in another way.
CONCERNS_ROWS = (ALTER_TABLE, *EMPTIES_TABLE)
