"""Generates the solidDB demo: `generate_bank()` is the only function that other code needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

import pyarrow as pa

from afterimage_demo.generate import DemoBatch
from afterimage_demo.soliddb.bank import OPENS_AT, Bank
from afterimage_demo.soliddb.encoding import Value
from afterimage_demo.soliddb.log import LogRow, columns_snapshot, tables_snapshot
from afterimage_demo.soliddb.tables import BankTable, Row

TRANSACTIONS = 120
"""Transactions of everyday business in a batch, times the scale."""

_TIMESTAMP = pa.timestamp("us", tz="UTC")
_SYS_LOG = pa.schema(
    [
        ("recid", pa.int32()),
        ("recname", pa.string()),
        ("trxid", pa.int32()),
        ("stmttrxid", pa.int32()),
        ("relid", pa.int32()),
        ("flags", pa.int32()),
        ("logaddr", pa.binary()),
        ("data", pa.binary()),
        ("textdata", pa.string()),
        ("landed_at", _TIMESTAMP),
    ]
)
_SYS_TABLES = pa.schema(
    [
        ("id", pa.int32()),
        ("table_name", pa.string()),
        ("table_type", pa.string()),
        ("table_schema", pa.string()),
        ("snapshot_logaddr", pa.binary()),
    ]
)
_SYS_COLUMNS = pa.schema(
    [
        ("rel_id", pa.int32()),
        ("column_name", pa.string()),
        ("column_number", pa.int32()),
        ("data_type", pa.string()),
        ("data_type_number", pa.int32()),
        ("numeric_precision", pa.int32()),
        ("numeric_scale", pa.int32()),
        ("attr_type", pa.int32()),
        ("snapshot_logaddr", pa.binary()),
    ]
)
_CLIENTS_BASE = pa.schema(
    [
        ("client_id", pa.int32()),
        ("full_name", pa.string()),
        ("email", pa.string()),
        ("born_on", pa.date32()),
        ("risk_score", pa.float64()),
    ]
)


@dataclass(frozen=True)
class BankData:
    """The demo's deliveries, and what is true of them.

    truth: per batch and table, the rows by key. Archived transfers are among them: their deletes
    should not be propagated.
    rejected: of every malformed record, address and reason.
    """

    batches: tuple[DemoBatch, ...]
    truth: tuple[Mapping[str, Mapping[Value, Row]], ...]
    rejected: Mapping[str, str]


def generate_bank(scale: int = 1, seed: int = 7, batches: int = 2) -> BankData:
    """Generate the demo's data; the same arguments give the same data, whatever the clock says.

    scale: multiplies all sizes.
    batches: how many deliveries, a day each; the planned scenarios are in the first two.
    """
    if scale < 1 or batches < 1:
        raise ValueError(f"`scale` and `batches` must be 1 or more, got {scale} and {batches}")
    bank = Bank(seed, scale)
    loaded = deepcopy(bank.load_clients())
    first_catalogue = list(bank.tables.values())
    rejected: dict[str, str] = {}
    deliveries: list[DemoBatch] = []
    truth = []
    for number in range(1, batches + 1):
        bank.now = max(bank.now, OPENS_AT.replace(day=OPENS_AT.day + number - 1))
        bank.log.heartbeat()
        for half in (1, 2):
            for _ in range(TRANSACTIONS * scale // 2):
                bank.trade()
            if half == 1:
                rejected |= _scenarios(bank, number)
        bank.log.heartbeat()
        taken_at = bank.log.address
        truth.append(deepcopy(bank.rows))
        tables = list(bank.tables.values())
        if number == 1:
            bank.log.shutdown()
        # the batch ends in the middle of a transaction, whose COMMIT comes with the next one
        bank.log.begin(bank.now)
        bank.plan_shift()
        snapshots: list[tuple[list[BankTable], bytes | None]] = [(tables, taken_at)]
        if number == 1:
            snapshots.insert(0, (first_catalogue, None))
        deliveries.append(_delivery(number, bank.log.rows, snapshots, loaded))
        bank.log.rows = []
        bank.log.commit()
    return BankData(tuple(deliveries), tuple(truth), rejected)


def _scenarios(bank: Bank, number: int) -> dict[str, str]:
    rejected: dict[str, str] = {}
    if number == 1:
        bank.transaction(lambda: rejected.update(bank.malformed_records()))
        bank.transaction(bank.archive_transfers, capture_off=True)
        bank.transaction(bank.truncate_shifts)
        bank.transaction(lambda: bank.log.ddl(16, "TRANSFERS_BY_ACCOUNT", None))
    elif number == 2:
        bank.transaction(bank.add_loyalty_tier)
        bank.transaction(bank.make_shifts_again, bank.plan_shift)
    return rejected


def _delivery(
    number: int,
    rows: Sequence[LogRow],
    snapshots: Sequence[tuple[list[BankTable], bytes | None]],
    loaded: Sequence[Row],
) -> DemoBatch:
    tables = [row for tables, taken_at in snapshots for row in tables_snapshot(tables, taken_at)]
    columns = [row for tables, taken_at in snapshots for row in columns_snapshot(tables, taken_at)]
    base = [{name.lower(): value for name, value in row.items()} for row in loaded]
    return DemoBatch(
        number,
        {
            "sys_log": pa.Table.from_pylist(list(rows), _SYS_LOG),
            "sys_tables": pa.Table.from_pylist(tables, _SYS_TABLES),
            "sys_columns": pa.Table.from_pylist(columns, _SYS_COLUMNS),
            # a frozen base: it arrives once
            "clients_base": pa.Table.from_pylist(base if number == 1 else [], _CLIENTS_BASE),
        },
        frozenset(),
    )
