"""A column of a table as the catalogue describes it: what decoding has to know."""

from __future__ import annotations

from typing import NamedTuple

# SYS_COLUMNS.DATA_TYPE_NUMBER
CHAR = 0
INTEGER = 1
FLOAT = 2
DOUBLE = 3
DATE = 4
DFLOAT = 5
BINARY = 6
UNICODE = 7
BIGINT = 8


class Column(NamedTuple):
    """One column of a table, in the order of COLUMN_NUMBER.

    Attributes:
        name: COLUMN_NAME, as the catalogue spells it.
        type_number: DATA_TYPE_NUMBER, one of the constants of this module.
        sql_type: DATA_TYPE in capitals, such as `TIMESTAMP`. It distinguishes DATE, TIME and
            TIMESTAMP, which share a type number.
    """

    name: str
    type_number: int
    sql_type: str = ""


# How DDL and SQL records lay out their DATA is not documented either. They are taken for rows of
# these columns, so that one framing holds for every record.
DDL_COLUMNS = (Column("LOGRECID", INTEGER), Column("INFO", CHAR))
SQL_COLUMNS = (Column("SQL", CHAR),)
