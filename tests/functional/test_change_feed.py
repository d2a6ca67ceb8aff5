"""stage_change_feed: the presets on records of the vendors' pages, against rows by hand.

A file of tests/data/feeds has the raw records of a preset, malformed ones among them, and the
columns of the contract that must come of them.
"""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_afterimage.settings.change_feed import SEQUENCE_WIDTHS
from tests.change_feed_staging import settings_of, staged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEEDS = sorted((Path(__file__).parents[1] / "data" / "feeds").glob("*.json"))


def raw_value(value: Any, kind: str) -> Any:
    """A value of a file of records as Spark takes it: JSON has neither binaries nor times."""
    if value is None:
        return None
    if kind == "hex":
        return bytes.fromhex(value)
    if kind == "timestamp":
        return datetime.fromisoformat(value).replace(tzinfo=timezone.utc)
    return value


@pytest.mark.parametrize("file", FEEDS, ids=lambda file: file.stem)
def test_records_of_the_vendors_pages(spark: SparkSession, file: Path) -> None:
    feed = json.loads(file.read_text(encoding="utf-8"))
    kinds = feed["columns"]
    rows = [
        tuple(raw_value(*pair) for pair in zip(row, kinds.values(), strict=True))
        for row in feed["rows"]
    ]
    columns = {name: "binary" if kind == "hex" else kind for name, kind in kinds.items()}
    settings = settings_of(file.stem, feed["settings"], feed.get("types"))
    found = staged(spark, settings, columns, rows, feed["expected"])
    key = repr
    assert sorted(map(list, found), key=key) == sorted(feed["expected_rows"], key=key)


PARTS = [
    # type of the part, type of the column, values in ascending order, values that do not fit
    ("number", "bigint", [0, 9, 10, 2**63 - 1], [-1]),
    ("number", "string", ["0", "9", "10"], ["x", "-1"]),
    ("digits", "string", ["0", "9", "10", "9" * 18, "1" + "0" * 18, "9" * 36], ["", "1" * 37, "A"]),
    ("digits", "decimal(38,0)", [0, 9, 10, 10**18, 10**36 - 1], [10**36, -1]),
    ("binary", "binary", [b"\x00", b"\x00\x01", b"\x01", b"\xff" * 16], [b"", b"\x01" * 17]),
    ("text", "string", ["a", "a1", "b", "é"], ["", "x" * 17]),
    ("timestamp", "string", ["1970-01-01", "2026-03-02 12:00:00.000001"], ["soon", "1969-12-31"]),
]


@pytest.mark.parametrize(("part", "kind", "values", "unfit"), PARTS)
def test_a_sequence_sorts_like_its_values(
    spark: SparkSession, part: str, kind: str, values: list[Any], unfit: list[Any]
) -> None:
    if kind.startswith("decimal"):
        kind, values, unfit = "string", [*map(str, values)], [*map(str, unfit)]
    given = {"key": ["id"], "sequence": {"place": part}, "ignore_columns": ["place"]}
    given |= {"operation": "op", "operations": {"i": "I"}}
    rows = [(number, "i", value) for number, value in enumerate([*values, *unfit])]
    columns = {"id": "int", "op": "string", "place": kind}
    found = staged(
        spark, settings_of(None, given), columns, rows, ["id", "change_seq", "reject_reason"]
    )
    by_id = sorted(found)
    places = [row[1] for row in by_id[: len(values)]]
    assert places == sorted(set(places))
    assert {len(place) for place in places} == {SEQUENCE_WIDTHS[part]}
    assert {row[1:] for row in by_id[len(values) :]} == {(None, "malformed_change_seq")}
