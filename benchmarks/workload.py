"""Generates a reproducible base table and change table of any size with Spark SQL.

A row is a function of its key and of the number of its updates, so the generator needs no state:
the before image of an update is the row with one update less. Of 20 changes, 17 are updates, 2 are
inserts and 1 is a delete. Updates prefer low keys (a third of them hits 4 % of the keys) and change
about a sixth of the columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMN_TYPES = ("string", "int", "decimal(12,2)", "timestamp", "double")
HEADERS = (
    "header__change_seq",
    "header__change_oper",
    "header__change_mask",
    "header__stream_position",
    "header__operation",
    "header__transaction_id",
    "header__timestamp",
)
CHANGED_EVERY = 6
"""Every sixth update of a row changes a given column."""
CHANGES_PER_SECOND = 10
"""A batch of 100,000 changes thus spans about three hours of source time."""
OPERATIONS = {"I": "INSERT", "U": "UPDATE", "D": "DELETE", "B": "BEFOREIMAGE"}


@dataclass(frozen=True)
class Workload:
    """The size and shape of the generated tables.

    Attributes:
        keys: rows of the base table; their keys are 0 to keys - 1.
        columns: columns of the table, including its key `id`.
        changes: changes in a batch. An update is one change, but two records.
        random_seed: makes all pseudo-random choices reproducible.
    """

    keys: int
    columns: int
    changes: int
    random_seed: int = 7

    @property
    def data_columns(self) -> dict[str, str]:
        """Types by column name, without the key."""
        return {
            f"c{number:03}": COLUMN_TYPES[number % len(COLUMN_TYPES)]
            for number in range(1, self.columns)
        }

    def values(self, updates: str) -> list[str]:
        """SQL expressions for a row's columns, the key first, after a number of updates."""
        values = ["id"]
        for number, (name, kind) in enumerate(self.data_columns.items(), 1):
            drawn = (
                f"xxhash64({self.random_seed}, id, {number},"
                f" ({updates} + {number}) div {CHANGED_EVERY})"
            )
            value = {
                "string": f"substr(hex({drawn}), 1, 12)",
                "int": f"cast(pmod({drawn}, 100000) as int)",
                "decimal(12,2)": f"cast(pmod({drawn}, 100000000) * 0.01 as decimal(12,2))",
                "timestamp": f"timestamp_seconds(1700000000 + pmod({drawn}, 100000000))",
                "double": f"pmod({drawn}, 1000) / 8",
            }[kind]
            values.append(f"if(pmod({drawn}, 19) = 0, null, {value}) as {name}")
        return values

    def base_table(self) -> str:
        """A query for the rows of the base table, before the first change."""
        return f"select {', '.join(self.values('0'))} from range(0, {self.keys}, 1, 8)"

    def late(self, batch: int) -> str:
        """Condition on `event` that selects the changes of a batch that arrive with the next batch.

        They are 1 % of the batch, up to 1,000 changes, and the last ones of the batch, so that the
        look-back covers them.
        """
        end = (batch + 1) * self.changes
        return f"(event >= {end - min(self.changes // 20, 5_000)} and event % 5 = 3)"

    def change_table(self, batch: int = 0, only: str = "true") -> str:
        """A query for the raw records of a batch; `only` is a condition on `event`."""
        first, end = batch * self.changes, (batch + 1) * self.changes
        instant = f"timestamp_micros({{}} * {1_000_000 // CHANGES_PER_SECOND} + 1772409600000000)"
        headers = [
            "concat(date_format(at, 'yyyyMMddHHmmss'), '00', lpad(event, 19, '0'))"
            " as header__change_seq",
            "oper as header__change_oper",
            f"if(oper = 'U', {self._mask()}, null) as header__change_mask",
            "hex(event) as header__stream_position",
            "case oper "
            + " ".join(f"when '{oper}' then '{name}'" for oper, name in OPERATIONS.items())
            + " end as header__operation",
            "hex(event div 3) as header__transaction_id",
            "at as header__timestamp",
        ]
        return (
            f"select {', '.join(headers + self.values('updates'))} from ("
            # a before image is the row with one update less
            f"select event, id, {instant.format('event')} as at, oper,"
            " if(oper = 'B', number - 1, number) as updates"
            " from (select event, kind, id, if(kind = 'U',"
            " row_number() over (partition by id, kind order by event), 0) as number"
            f" from ({self._events(end)}) as events) as numbered"
            " lateral view explode(if(kind = 'U', array('B', 'U'), array(kind))) records as oper"
            f" where event >= {first} and {only}) as records"
        )

    def _events(self, end: int) -> str:
        """A query for the operation and the key of each event; only deletes use every 20th key."""
        drawn = f"pmod(xxhash64({self.random_seed}, id, 'key'), 2147483648L) / 2147483648D"
        updated = f"cast(pow({drawn}, 3) * {self.keys} as bigint)"
        inserted = f"{self.keys} + id div 20 * 2 + id % 20"
        deleted = f"if(id div 20 * 20 < {self.keys}, id div 20 * 20, {self.keys} + id div 20 * 2)"
        return (
            "select id as event,"
            " case when id % 20 < 2 then 'I' when id % 20 = 2 then 'D' else 'U' end as kind,"
            f" case when id % 20 < 2 then {inserted} when id % 20 = 2 then {deleted}"
            f" when {updated} % 20 = 0 then {updated} + 1 else {updated} end as id"
            f" from range(0, {end}, 1, 8)"
        )

    def _mask(self) -> str:
        """The change mask: bit i is column i of the change table with headers; byte 0 first."""
        bits: dict[int, list[str]] = {}
        for number in range(1, self.columns):
            byte, bit = divmod(len(HEADERS) + number, 8)
            is_changed = f"(updates + {number}) % {CHANGED_EVERY} = 0"
            bits.setdefault(byte, []).append(f"if({is_changed}, {1 << bit}, 0)")
        width = max(bits) + 1 if bits else 1
        parts = [f"lpad(hex({' + '.join(bits.get(byte, ['0']))}), 2, '0')" for byte in range(width)]
        return f"unhex(concat({', '.join(parts)}))"


def create_raw_tables(
    session: SparkSession, workload: Workload, schema: str, table_format: str
) -> None:
    """Create the base table `items` and the empty change table `items__ct`."""
    session.sql(f"create schema if not exists {schema}")
    session.sql(
        f"create or replace table {schema}.items using {table_format} as {workload.base_table()}"
    )
    records = f"select * from ({workload.change_table()}) as records where false"
    session.sql(f"create or replace table {schema}.items__ct using {table_format} as {records}")


def append_batch(
    session: SparkSession, workload: Workload, schema: str, batch: int, only: str = "true"
) -> None:
    """Append the raw records of a batch to the change table; `only` is a condition on `event`."""
    session.sql(f"insert into {schema}.items__ct {workload.change_table(batch, only=only)}")
