"""Writes the transaction log of a solidDB server, SYS_LOG, and snapshots of its catalogue."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from afterimage_demo.soliddb.encoding import Value, encode_value, frame_length_prefixed
from afterimage_demo.soliddb.tables import SCHEMA, BankTable, Row

LogRow: TypeAlias = dict[str, Any]
Frame: TypeAlias = Callable[[Iterable[bytes | None]], bytes]

RECORD_NAMES = {
    0: "DBE_LOGREADER_LOG_REC_EMPTY",
    1: "DBE_LOGREADER_LOG_REC_INSERT",
    3: "DBE_LOGREADER_LOG_REC_UPDATE",
    4: "DBE_LOGREADER_LOG_REC_DELETE_FULL",
    5: "DBE_LOGREADER_LOG_REC_UPDATE_BEFOREIMAGE",
    6: "DBE_LOGREADER_LOG_REC_SQL",
    7: "DBE_LOGREADER_LOG_REC_TRX_START",
    12: "DBE_LOGREADER_LOG_REC_COMMIT",
    13: "DBE_LOGREADER_LOG_REC_DDL",
}
_DATA, _SHUTDOWN, _CAPTURE_OFF = 1, 2, 64
_LANDS_AFTER = timedelta(seconds=2)


class SysLog:
    """The log as a reader lands it: one dict per record, with the columns of SYS_LOG.

    frame: puts values together; by default a 4-byte length before each.
    address_length: bytes of a LOGADDR, 20 or 28.
    shifted_year: dates have 0x8000 added to the year, as the engine stores them.
    """

    def __init__(
        self,
        frame: Frame = frame_length_prefixed,
        address_length: int = 20,
        shifted_year: bool = True,
    ) -> None:
        self.rows: list[LogRow] = []
        self._frame = frame
        self._address_form = {20: ">QIII", 28: ">QIQQ"}[address_length]
        self._shifted_year = shifted_year
        self._position = 0x295
        self._transaction = 100
        self._statement = 0
        self._at = datetime(2026, 3, 2)

    @property
    def address(self) -> bytes:
        """LOGADDR of the record that was written last."""
        return struct.pack(self._address_form, 1, 0xFFFFFFFF, self._position, self._position)

    def heartbeat(self) -> None:
        """A record without data, as a live reader gets about once a second."""
        self.rows.append(dict.fromkeys(_COLUMNS) | {"flags": 0, "landed_at": self._at})

    def shutdown(self) -> None:
        """The notice that the server begins to shut down."""
        self.rows.append(dict.fromkeys(_COLUMNS) | {"flags": _SHUTDOWN, "landed_at": self._at})

    def begin(self, at: datetime, capture_off: bool = False) -> int:
        """Start of a transaction that is committed at `at`; returns its TRXID."""
        self._at = at
        self._transaction += 1
        self._statement = 0
        self._write(7, flags=_DATA | (_CAPTURE_OFF if capture_off else 0))
        return self._transaction

    def commit(self) -> None:
        """COMMIT of the running transaction."""
        self._write(12)

    def insert(self, table: BankTable, row: Row) -> None:
        """Insert a row."""
        self._row(1, table, row)

    def update(self, table: BankTable, before: Row, after: Row) -> None:
        """Before and after image; a changed key is a delete and an insert."""
        if before[table.key] != after[table.key]:
            self._row(4, table, before)
            self._row(1, table, after)
            return
        self._row(5, table, before)
        self._row(3, table, after)

    def delete(self, table: BankTable, row: Row) -> None:
        """Delete a row."""
        self._row(4, table, row)

    def ddl(self, code: int, name: str, relation_id: int | None, sql: str | None = None) -> None:
        """A DDL record, after its SQL text where that is given."""
        self._statement += 1
        if sql is not None:
            self._write(6, relid=relation_id, data=self._frame([encode_value(sql, 0)]))
        data = self._frame([encode_value(code, 1), encode_value(name, 0)])
        self._write(13, relid=relation_id, data=data)

    def raw(self, record_id: int, table: BankTable, data: bytes | None) -> bytes:
        """A record with DATA as given; returns its address."""
        self._write(record_id, relid=table.relation_id, data=data)
        return self.address

    def encoded(self, table: BankTable, row: Row) -> bytes:
        """DATA of a row."""
        return self._frame(
            encode_value(row[column.name], column.type_number, shifted_year=self._shifted_year)
            for column in table.columns
        )

    def _row(self, record_id: int, table: BankTable, row: Row) -> None:
        self._write(record_id, relid=table.relation_id, data=self.encoded(table, row))

    def _write(self, record_id: int, flags: int = _DATA, **values: Any) -> None:
        self._position += 1
        self.rows.append(
            dict.fromkeys(_COLUMNS)
            | {
                "recid": record_id,
                "recname": RECORD_NAMES.get(record_id),
                "trxid": self._transaction,
                "stmttrxid": self._statement,
                "flags": flags,
                "logaddr": self.address,
                "landed_at": self._at + _LANDS_AFTER,
            }
            | values
        )


_COLUMNS = (
    "recid",
    "recname",
    "trxid",
    "stmttrxid",
    "relid",
    "flags",
    "logaddr",
    "data",
    "textdata",
    "landed_at",
)


def tables_snapshot(tables: Iterable[BankTable], address: bytes | None) -> list[dict[str, Value]]:
    """Rows of SYS_TABLES, read when the log was at an address."""
    return [
        {
            "id": table.relation_id,
            "table_name": table.name,
            "table_type": "BASE TABLE",
            "table_schema": SCHEMA,
            "snapshot_logaddr": address,
        }
        for table in tables
    ]


def columns_snapshot(tables: Iterable[BankTable], address: bytes | None) -> list[dict[str, Value]]:
    """Rows of SYS_COLUMNS, read when the log was at an address."""
    rows: list[dict[str, Value]] = []
    for table in tables:
        # an entry of an index, which is not a column of the row
        names = [(column, 0) for column in table.columns] + [(table.columns[0], 1)]
        for number, (column, attr_type) in enumerate(names):
            rows.append(
                {
                    "rel_id": table.relation_id,
                    "column_name": column.name,
                    "column_number": number,
                    "data_type": column.sql_type,
                    "data_type_number": column.type_number,
                    "numeric_precision": column.precision,
                    "numeric_scale": column.scale,
                    "attr_type": attr_type,
                    "snapshot_logaddr": address,
                }
            )
    return rows
