"""Compares rows stream by stream; the message shows the whole log of the first that differs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from tests.streams.tables import Stream, StreamTable


def by_stream(rows: Iterable[dict[str, Any]], *left_out: str) -> dict[int, list[str]]:
    """Rows as sorted texts, by the number of their stream."""
    grouped = defaultdict(list)
    for row in rows:
        kept = {name: row[name] for name in sorted(row) if name not in left_out}
        grouped[row["stream"]].append(repr(kept))
    return {stream: sorted(texts) for stream, texts in grouped.items()}


def streams_that_differ(
    table: StreamTable, actual: dict[int, list[str]], expected: dict[int, list[str]]
) -> list[Stream]:
    """The streams whose rows are not the expected ones."""
    return [
        stream
        for stream in table.streams
        if actual.get(stream.number, []) != expected.get(stream.number, [])
    ]


def assert_equal(
    table: StreamTable, actual: dict[int, list[str]], expected: dict[int, list[str]]
) -> None:
    """Every stream has the expected rows."""
    wrong = streams_that_differ(table, actual, expected)
    if not wrong:
        return
    stream = wrong[0]
    ours = actual.get(stream.number, [])
    theirs = expected.get(stream.number, [])
    log = sorted(
        f"{row.change_seq} in batch {batch}: {row.change_oper} {row.transaction_id} "
        f"{row.data} <- {row.before} known {row.known_columns}"
        for row, batch in zip(stream.log, stream.batches, strict=True)
    )
    shown = [
        f"{len(wrong)} of {len(table.streams)} streams differ, first {stream.number}",
        *(f"only in the table: {text}" for text in ours if text not in theirs),
        *(f"only expected:     {text}" for text in theirs if text not in ours),
        *log,
    ]
    raise AssertionError("\n".join(shown))
