"""A bank branch: runs transactions, writes them to the log, and knows what the tables hold then."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from random import Random

from afterimage_demo.soliddb.encoding import Value, encode_value, frame_length_prefixed
from afterimage_demo.soliddb.log import SysLog
from afterimage_demo.soliddb.tables import (
    CLIENTS,
    LOYALTY_TIER,
    NEW_TELLER_SHIFTS_ID,
    TABLES,
    TELLER_SHIFTS,
    BankTable,
    Row,
)

OPENS_AT = datetime(2026, 3, 2, 8)
_NAMES = ("Ada Nowak", "Zoë Ångström", "Łukasz Wójcik", "张伟", "Inés O'Neill", "مريم", "Jo 🚚 Kim")
_REFERENCES = ("rent", "", None, "invoice 42", "a tab\tand 'quotes'", "Žluťoučký kůň", "NULL")
_TIERS = ("basic", "silver", "gold", None)
_CENT = Decimal("0.01")


class Bank:
    """The branch's tables and its log.

    rows: table name -> key -> row, as they are now.
    tables: as the catalogue describes them now.
    """

    def __init__(self, seed: int, scale: int) -> None:
        self.random = Random(seed)
        self.scale = scale
        self.log = SysLog()
        self.tables: dict[str, BankTable] = dict(TABLES)
        self.rows: dict[str, dict[Value, Row]] = {name: {} for name in TABLES}
        self.now = OPENS_AT
        self._next = {"CLIENTS": 1, "ACCOUNTS": 1, "TRANSFERS": 7_000_000_000, "SHIFTS": 1}

    def load_clients(self) -> list[Row]:
        """The clients that were there before the log began."""
        for _ in range(30 * self.scale):
            row = self._client()
            self.rows["CLIENTS"][row["CLIENT_ID"]] = row
        return list(self.rows["CLIENTS"].values())

    def transaction(self, *steps: Callable[[], None], capture_off: bool = False) -> None:
        """Run steps as one transaction and commit it."""
        self.now += timedelta(seconds=self.random.randint(1, 90))
        self.log.begin(self.now, capture_off)
        for step in steps:
            step()
        self.log.commit()

    def trade(self) -> None:
        """One transaction of everyday business."""
        step = self.random.choices(
            [
                self.open_account,
                self.transfer,
                self.move_client,
                self.renumber_account,
                self.close_account,
                self.plan_shift,
            ],
            [10, 30, 15, 4, 4, 6],
        )[0]
        self.transaction(step)

    def insert(self, name: str, row: Row) -> None:
        """Insert a row."""
        table = self.tables[name]
        self.rows[name][row[table.key]] = row
        self.log.insert(table, row)

    def update(self, name: str, key: Value, **values: Value) -> None:
        """Set columns of a row, its key too."""
        table = self.tables[name]
        before = self.rows[name].pop(key)
        after = {**before, **values}
        self.rows[name][after[table.key]] = after
        self.log.update(table, before, after)

    def delete(self, name: str, key: Value) -> None:
        """Delete a row."""
        self.log.delete(self.tables[name], self.rows[name].pop(key))

    def open_account(self) -> None:
        """An account for a client, or first a new client."""
        if self.random.random() < 0.4:
            client = self._client()
            self.insert("CLIENTS", client)
        else:
            client = self.random.choice(list(self.rows["CLIENTS"].values()))
        number = f"BR{self._new('ACCOUNTS'):08d}"
        self.insert(
            "ACCOUNTS",
            {
                "ACCOUNT_NUMBER": number,
                "CLIENT_ID": client["CLIENT_ID"],
                "BALANCE": Decimal(self.random.randrange(10**7)).scaleb(-2),
                "INTEREST_RATE": self.random.choice([0.1, 1 / 3, 2.5e-3, None]),
                "OPENED_AT": self.now.replace(microsecond=self.random.randrange(10**6)),
                "SIGNATURE": self.random.choice([b"\x00\xfe\xff", bytes(300), None]),
            },
        )

    def transfer(self) -> None:
        """Money from one account to another."""
        accounts = self.rows["ACCOUNTS"]
        if len(accounts) < 2:
            self.open_account()
            return
        source, target = self.random.sample(list(accounts), 2)
        amount = Decimal(self.random.randrange(1, 50_000)).scaleb(-2)
        transfer_id = self._new("TRANSFERS")
        for account, change in ((source, -amount), (target, amount)):
            balance = accounts[account]["BALANCE"]
            assert isinstance(balance, Decimal)
            self.update("ACCOUNTS", account, BALANCE=(balance + change).quantize(_CENT))
        self.insert(
            "TRANSFERS",
            {
                "TRANSFER_ID": transfer_id,
                "FROM_ACCOUNT": source,
                "TO_ACCOUNT": target,
                "AMOUNT": amount,
                "BOOKED_AT": self.now,
                "REFERENCE": self.random.choice(_REFERENCES),
            },
        )

    def move_client(self) -> None:
        """A client's data change."""
        key = self.random.choice(list(self.rows["CLIENTS"]))
        values: Row = {"EMAIL": f"box{self.random.randrange(10**6)}@example.com"}
        if LOYALTY_TIER in self.tables["CLIENTS"].columns:
            values["LOYALTY_TIER"] = self.random.choice(_TIERS)
        self.update("CLIENTS", key, **values)

    def renumber_account(self) -> None:
        """An account gets another number: its key changes, which is a delete and an insert."""
        if self.rows["ACCOUNTS"]:
            key = self.random.choice(list(self.rows["ACCOUNTS"]))
            number = f"BR{self._new('ACCOUNTS'):08d}"
            self.update("ACCOUNTS", key, ACCOUNT_NUMBER=number)

    def close_account(self) -> None:
        """An account is deleted."""
        if self.rows["ACCOUNTS"]:
            self.delete("ACCOUNTS", self.random.choice(list(self.rows["ACCOUNTS"])))

    def plan_shift(self) -> None:
        """A teller's shift."""
        begins = self.random.randrange(6, 14)
        self.insert("TELLER_SHIFTS", self._shift(begins))

    def archive_transfers(self) -> None:
        """Old transfers go, without being propagated: they stay in the history."""
        for key in list(self.rows["TRANSFERS"])[: 10 * self.scale]:
            row = self.rows["TRANSFERS"][key]
            self.log.delete(self.tables["TRANSFERS"], row)

    def malformed_records(self) -> dict[str, str]:
        """Records that cannot be read; returns reason by address."""
        number = encode_value(999_999, 1)
        values = [number, encode_value("Bad", 7), None, None]
        rejected = {}
        for reason, data in {
            "malformed_message": frame_length_prefixed([*values, None]) + b"\1\2",
            "uncastable_value:BORN_ON": frame_length_prefixed(
                [*values[:3], bytes.fromhex("87ea021e00000000000000"), None]
            ),
            "null_key": frame_length_prefixed([None, *values]),
        }.items():
            rejected[self.log.raw(1, CLIENTS, data).hex().upper()] = reason
        return rejected

    def add_loyalty_tier(self) -> None:
        """ALTER TABLE CLIENTS ADD COLUMN; old rows get NULL."""
        table = CLIENTS.with_column(LOYALTY_TIER)
        sql = "ALTER TABLE CLIENTS ADD COLUMN LOYALTY_TIER VARCHAR(10)"
        self.log.ddl(22, "CLIENTS", table.relation_id, sql)
        self.tables["CLIENTS"] = table
        for row in self.rows["CLIENTS"].values():
            row["LOYALTY_TIER"] = None

    def truncate_shifts(self) -> None:
        """TRUNCATE TABLE."""
        self.rows["TELLER_SHIFTS"].clear()
        self.log.ddl(73, "TELLER_SHIFTS", self.tables["TELLER_SHIFTS"].relation_id)

    def make_shifts_again(self) -> None:
        """The table is dropped and created again: it has another id."""
        self.rows["TELLER_SHIFTS"].clear()
        self.log.ddl(17, "TELLER_SHIFTS", TELLER_SHIFTS.relation_id, "DROP TABLE TELLER_SHIFTS")
        table = BankTable(
            TELLER_SHIFTS.name, NEW_TELLER_SHIFTS_ID, TELLER_SHIFTS.key, TELLER_SHIFTS.columns
        )
        self.tables["TELLER_SHIFTS"] = table
        self.log.ddl(45, "BRANCH.TELLER_SHIFTS", table.relation_id)

    def _client(self) -> Row:
        client_id = self._new("CLIENTS")
        row: Row = {
            "CLIENT_ID": client_id,
            "FULL_NAME": _NAMES[client_id % len(_NAMES)],
            "EMAIL": f"client{client_id}@example.com" if client_id % 5 else None,
            "BORN_ON": date(1900, 2, 28) + timedelta(days=self.random.randrange(40_000)),
            "RISK_SCORE": self.random.choice([0.5, 0.25, -1.0, None]),
        }
        if LOYALTY_TIER in self.tables["CLIENTS"].columns:
            row["LOYALTY_TIER"] = self.random.choice(_TIERS)
        return row

    def _shift(self, begins: int) -> Row:
        return {
            "SHIFT_ID": self._new("SHIFTS"),
            "TELLER": self.random.choice(_NAMES),
            "STARTS_AT": time(begins),
            "ENDS_AT": time(begins + 8, 30),
        }

    def _new(self, what: str) -> int:
        self._next[what] += 1
        return self._next[what] - 1
