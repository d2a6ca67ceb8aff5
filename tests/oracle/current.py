"""Current state of one table: the open rows of its history, nothing else."""

from __future__ import annotations

from collections.abc import Iterable

from tests.oracle.history import Row, Version


def build_current(history: Iterable[Version]) -> list[Row]:
    """Return one flat row per open version, in the order of `history`.

    Its columns: the data columns, valid_from, valid_from_seq, transaction_id.
    """
    return [
        {
            **version.data,
            "valid_from": version.valid_from,
            "valid_from_seq": version.valid_from_seq,
            "transaction_id": version.transaction_id,
        }
        for version in history
        if version.is_current
    ]
