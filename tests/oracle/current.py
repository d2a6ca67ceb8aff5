"""Current state of one table: the open rows of its history, or those and the deleted ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tests.oracle.history import Row, Version


def build_current(history: Iterable[Version]) -> list[Row]:
    """Return one flat row per open version, in the order of `history`.

    Its columns: the data columns, valid_from, valid_from_seq, transaction_id.
    """
    return [_row(version) for version in history if version.is_current]


def build_current_with_deleted(history: Iterable[Version], key: Sequence[str]) -> list[Row]:
    """Return one flat row per key, of its last version, but none for a key that its row left.

    Its columns: those of `build_current`, is_deleted and deleted_at.
    """
    last: dict[tuple[Any, ...], Version] = {}
    for version in history:
        identity = tuple(version.data[name] for name in key)
        if identity not in last or version.valid_from_seq > last[identity].valid_from_seq:
            last[identity] = version
    return [
        {
            **_row(version),
            "is_deleted": version.closed_by is not None,
            "deleted_at": version.valid_to,
        }
        for version in last.values()
        if version.closed_by != "K"
    ]


def _row(version: Version) -> Row:
    return {
        **version.data,
        "valid_from": version.valid_from,
        "valid_from_seq": version.valid_from_seq,
        "transaction_id": version.transaction_id,
    }
