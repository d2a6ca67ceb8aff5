"""The tables of the bank branch, with the type numbers of their columns in the catalogue."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from afterimage_demo.soliddb.encoding import Value

Row: TypeAlias = dict[str, Value]
SCHEMA = "BRANCH"


@dataclass(frozen=True)
class BankColumn:
    """A column as SYS_COLUMNS has it.

    type_number: DATA_TYPE_NUMBER; sql_type: DATA_TYPE.
    precision, scale: of DECIMAL columns.
    """

    name: str
    type_number: int
    sql_type: str
    precision: int | None = None
    scale: int | None = None


@dataclass(frozen=True)
class BankTable:
    """A table; `relation_id` is its id in SYS_TABLES."""

    name: str
    relation_id: int
    key: str
    columns: tuple[BankColumn, ...]

    def with_column(self, column: BankColumn) -> BankTable:
        """The table after ALTER TABLE ... ADD COLUMN."""
        return replace(self, columns=(*self.columns, column))


CLIENTS = BankTable(
    "CLIENTS",
    10_001,
    "CLIENT_ID",
    (
        BankColumn("CLIENT_ID", 1, "INTEGER"),
        BankColumn("FULL_NAME", 7, "WVARCHAR"),
        BankColumn("EMAIL", 0, "VARCHAR"),
        BankColumn("BORN_ON", 4, "DATE"),
        BankColumn("RISK_SCORE", 2, "REAL"),
    ),
)
LOYALTY_TIER = BankColumn("LOYALTY_TIER", 0, "VARCHAR")

ACCOUNTS = BankTable(
    "ACCOUNTS",
    10_002,
    "ACCOUNT_NUMBER",
    (
        BankColumn("ACCOUNT_NUMBER", 0, "VARCHAR"),
        BankColumn("CLIENT_ID", 1, "INTEGER"),
        BankColumn("BALANCE", 5, "DECIMAL", 18, 2),
        BankColumn("INTEREST_RATE", 3, "DOUBLE PRECISION"),
        BankColumn("OPENED_AT", 4, "TIMESTAMP"),
        BankColumn("SIGNATURE", 6, "VARBINARY"),
    ),
)

TRANSFERS = BankTable(
    "TRANSFERS",
    10_003,
    "TRANSFER_ID",
    (
        BankColumn("TRANSFER_ID", 8, "BIGINT"),
        BankColumn("FROM_ACCOUNT", 0, "VARCHAR"),
        BankColumn("TO_ACCOUNT", 0, "VARCHAR"),
        BankColumn("AMOUNT", 5, "DECIMAL", 18, 2),
        BankColumn("BOOKED_AT", 4, "TIMESTAMP"),
        BankColumn("REFERENCE", 7, "LONG WVARCHAR"),
    ),
)

TELLER_SHIFTS = BankTable(
    "TELLER_SHIFTS",
    10_004,
    "SHIFT_ID",
    (
        BankColumn("SHIFT_ID", 1, "INTEGER"),
        BankColumn("TELLER", 7, "WVARCHAR"),
        BankColumn("STARTS_AT", 4, "TIME"),
        BankColumn("ENDS_AT", 4, "TIME"),
    ),
)
NEW_TELLER_SHIFTS_ID = 10_009

TABLES = {table.name: table for table in (CLIENTS, ACCOUNTS, TRANSFERS, TELLER_SHIFTS)}
