"""Qlik messages as the tests write them: bare, with the fields of Qlik's manual."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

NOON = datetime(2026, 3, 2, 12, tzinfo=timezone.utc)


def seq(number: int) -> str:
    return f"2026030212000000{number:019d}"


def change(
    operation: str,
    number: int,
    data: dict[str, Any] | None,
    before: dict[str, Any] | None = None,
    **headers: Any,
) -> dict[str, Any]:
    """A bare message."""
    return {
        "data": data,
        "beforeData": before,
        "headers": {
            "operation": operation,
            "changeSequence": seq(number),
            "timestamp": "2026-03-02T11:59:59.500",
            "streamPosition": "0",
            "transactionId": f"t{number}",
            "changeMask": None,
            "columnMask": None,
            "transactionEventCounter": 1,
            "transactionLastEvent": True,
            **headers,
        },
    }


def refresh(data: dict[str, Any]) -> dict[str, Any]:
    message = change("REFRESH", 0, data)
    empty = {"changeSequence": "", "timestamp": "", "transactionId": ""}
    counters = {"transactionEventCounter": None, "transactionLastEvent": None}
    return {**message, "headers": {**message["headers"], **empty, **counters}}
