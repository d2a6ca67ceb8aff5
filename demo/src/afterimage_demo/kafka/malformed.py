"""Messages that break the rules, for each reason that shows in a message and its table.

`ambiguous_pair`, `orphan_before_image` and `unsupported_record` are not among them.

Except for the conflicting copy they are about a row that never was, so that no table depends on
them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from afterimage_demo.kafka.forms import avro_envelope, avro_registered, json_bytes
from afterimage_demo.kafka.messages import Message, schema_id_of, written
from afterimage_demo.kafka.tables import ARTICLES, CART_LINES, CARTS, SHOPPERS, ShopTable
from afterimage_demo.tables import Value

NOBODY = 990_000_001
UNREGISTERED_ID = 99
FORM_OF_2016 = {
    "task_name": "webshop-to-kafka",
    "table": "shoppers",
    "op": "INSERT",
    "data": [{"shopper_id": NOBODY}],
}


class Malformed(NamedTuple):
    """A message that must be rejected: its table, change_seq as it is kept, and why."""

    table: ShopTable
    change_seq: str | None
    reason: str
    value: bytes


def malformed(at: datetime) -> list[Malformed]:
    """All of them but the conflicting copy, with positions at a time."""

    def seq(number: int) -> str:
        return f"{at:%Y%m%d%H%M%S}00{NOBODY + number:019d}"

    def spoilt(
        table: ShopTable,
        number: int,
        reason: str,
        headers: Mapping[str, Any] | None = None,
        **values: Value,
    ) -> Malformed:
        row = {**dict.fromkeys(table.columns), **dict.fromkeys(table.key, NOBODY), **values}
        own = {**_headers(seq(number)), **(headers or {})}
        position = own["changeSequence"] or None
        return Malformed(table, position, reason, insert(table, row, own))

    unregistered = avro_registered(UNREGISTERED_ID, b"\x00")
    no_record = avro_envelope(b"\x80", schema_id=schema_id_of(CART_LINES, 1))
    return [
        Malformed(SHOPPERS, None, "malformed_message", b"{not json"),
        Malformed(SHOPPERS, None, "malformed_message", json_bytes(FORM_OF_2016)),
        Malformed(ARTICLES, None, "unknown_schema", unregistered),
        Malformed(CART_LINES, None, "malformed_message", no_record),
        spoilt(SHOPPERS, 1, "null_change_seq", {"changeSequence": ""}),
        spoilt(SHOPPERS, 2, "malformed_mask", {"changeMask": "0G"}),
        spoilt(SHOPPERS, 3, "uncastable_value:voucher_balance", voucher_balance="12,50"),
        spoilt(SHOPPERS, 4, "null_key", shopper_id=None),
        spoilt(CARTS, 5, "unknown_operation", {"operation": "EXPIRE"}),
        spoilt(CARTS, 6, "malformed_change_seq", {"changeSequence": "2026-03-02T11:07:31Z"}),
        spoilt(CARTS, 7, "mask_too_wide", {"changeMask": "1000"}),
        # before the reload of its table, which must not be placed behind it
        spoilt(ARTICLES, 8, "future_change_seq", {"changeSequence": f"29990101{1:027d}"}),
    ]


def conflicting_copy(table: ShopTable, message: Message) -> Malformed:
    """An insert that was sent before, with other content."""
    assert message.key is not None
    key: dict[str, Value] = json.loads(message.key)
    row: dict[str, Value] = {**dict.fromkeys(table.columns), **key}
    seq = str(message.headers["changeSequence"])
    return Malformed(table, seq, "conflicting_duplicate", insert(table, row, _headers(seq)))


def insert(table: ShopTable, row: Mapping[str, Value], headers: Mapping[str, Any]) -> bytes:
    """An INSERT with these headers; of a table of JSON messages masks are text."""
    content = {"data": dict(row), "beforeData": None, "headers": dict(headers)}
    # bare JSON goes for any topic, whatever form its other messages have
    return json_bytes(content) if table.form.startswith("json") else written(table, content)


def _headers(seq: str) -> dict[str, Any]:
    return {
        "operation": "INSERT",
        "changeSequence": seq,
        "timestamp": "2026-03-02T12:00:00.000",
        "streamPosition": "",
        "transactionId": "",
        "changeMask": None,
        "columnMask": None,
        "transactionEventCounter": 1,
        "transactionLastEvent": True,
    }
