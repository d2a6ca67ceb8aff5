"""Small change logs as text, one line per change, and versions that read like them.

A line: change_seq, operation, key, name, city, what is before it. `20 U 7 Ann Oslo <- 1 Ann Rome at
15 in t1`; an unknown value or time is a `?`, NULL a `-`. `L` without a key is the marker of a load.
A version: `1 Ann Rome [10, 20) I U` was opened by an insert at 10 and closed by an update at 20.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

COLUMNS = ["id", "name", "city"]
IMAGE = "id int, name string, city string"
SCHEMA = (
    f"{IMAGE}, change_seq string, change_oper string, changed_at timestamp, transaction_id string,"
    " known_columns array<string>, before_known_columns array<string>,"
    " truncate_scope map<string,string>, load_id string, load_rows bigint,"
    " before struct<id: int, name: string, city: string>"
)
MIDNIGHT = datetime(2026, 3, 2)


def change(line: str) -> tuple[Any, ...]:
    """`20 U 7 Ann Oslo <- 1 Ann Rome at 15 in t1`; a value `?` is not known, `-` is NULL."""
    line, _, transaction = line.partition(" in ")
    line, _, second = line.partition(" at ")
    line, _, old = line.partition(" <- ")
    seq, oper, *image = line.split()
    scope = None
    if oper == "T" and image:
        scope, image = dict([image[0].split("=")]), []
    before, before_known = values(old.split())
    data, known = values([*image, "-", "-"] if oper == "D" else image)
    marks = oper == "L" and not image
    return (
        *(data or (None, None, None)),
        seq,
        oper,
        None if second == "?" else MIDNIGHT + timedelta(seconds=int(second or seq)),
        transaction or None,
        known,
        before_known,
        scope,
        "load" if oper == "L" else None,
        0 if marks else None,
        before,
    )


def values(words: list[str]) -> tuple[tuple[Any, ...] | None, list[str] | None]:
    if not words:
        return None, None
    words = [*words, "?", "?"][: len(COLUMNS)]
    known = [name for name, word in zip(COLUMNS, words, strict=True) if word != "?"]
    data = [None if word in "?-" else word for word in words]
    return (int(words[0]), *data[1:]), None if len(known) == len(COLUMNS) else known


def brief(row: dict[str, Any]) -> str:
    unknown = row["unknown_columns"] or []
    words = ["?" if name in unknown else row[name] or "-" for name in ("name", "city")]
    assert row["is_current"] == (row["valid_to_seq"] is None)
    interval = f"[{row['valid_from_seq']}, {row['valid_to_seq'] or ''})"
    return f"{row['id']} {' '.join(words)} {interval} {row['opened_by']} {row['closed_by'] or ''}"
