"""The settings of docs/feeds/recipes.md, on three records each: values by hand."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.change_feed_staging import settings_of, staged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs/feeds/recipes.md").read_text(encoding="utf-8")
RECIPES = {
    name: yaml.safe_load(text)["afterimage"]
    for name, text in re.findall(r"```yaml\n# (\w+)\n(.*?)```", PAGE, re.DOTALL)
}
MESSAGES = {"value": "binary"}
DATA = {"id": "int", "name": "string", "note": "string"}


@dataclass(frozen=True)
class Feed:
    """Three records of a feed: an insert of Ann, an update to Anna, and a delete, in their order.

    Attributes:
        columns: of the raw table.
        rows: the three records, or more where an update is two.
        has_before: the update has its before image.
        knows_notes: the update has the note, which it did not change; it is NULL.
    """

    columns: dict[str, str]
    rows: list[tuple[Any, ...]]
    has_before: bool = True
    knows_notes: bool = True


def messages(*documents: dict[str, Any], **features: bool) -> Feed:
    rows = [(json.dumps(document).encode(),) for document in documents]
    return Feed(MESSAGES, rows, **features)


ANN = {"id": 1, "name": "Ann", "note": None}
ANNA = {**ANN, "name": "Anna"}
PLACE = 2**32
DYNAMO = {"id": {"N": "1"}, "name": {"S": "Ann"}, "note": {"NULL": True}}
TYPED = [{"name": name, "type": "text", "value": value} for name, value in ANN.items()]
NOON_TEXT = "2026-03-02T12:00:00Z"
NOON, ONE, TWO = (datetime(2026, 3, 2, hour) for hour in (12, 13, 14))


def golden(op: str, number: int, before: Any, after: Any) -> dict[str, Any]:
    place = {"op_ts": "2026-03-02 12:00:00.000000", "pos": f"{number:020d}"}
    return {"table": "A.B", "op_type": op, **place, "before": before, "after": after}


def maxwell(kind: str, position: str, data: Any, **more: Any) -> dict[str, Any]:
    return {"type": kind, "ts": 1772452800, "xid": 7, "position": position, "data": data, **more}


def wal(action: str, lsn: str, **images: Any) -> dict[str, Any]:
    return {"action": action, "lsn": lsn, "xid": 7, "timestamp": "2026-03-02 12:00:00+00", **images}


def dynamo(event: str, number: int, **images: Any) -> dict[str, Any]:
    place = {"ApproximateCreationDateTime": 1772452800, "SequenceNumber": str(10**39 + number)}
    return {"eventName": event, "dynamodb": {"Keys": {"id": {"N": "1"}}, **place, **images}}


FEEDS = {
    "GoldenGate": messages(
        golden("I", 1, None, ANN),
        golden("U", 2, {"id": 1, "name": "Ann"}, {"id": 1, "name": "Anna"}),
        golden("D", 10, ANNA, None),
        knows_notes=False,
    ),
    "Maxwell": messages(
        maxwell("insert", "mysql-bin-changelog.000999:7000", ANN, xoffset=1),
        maxwell("update", "mysql-bin-changelog.001000:400", ANNA, old={"name": "Ann"}, commit=True),
        maxwell("delete", "mysql-bin-changelog.001000:500", ANNA, commit=True),
    ),
    "wal2json": messages(
        wal("I", "0/16BDB38", columns=TYPED),
        wal("U", "0/FFBDB38", columns=[TYPED[0], {**TYPED[1], "value": "Anna"}], identity=TYPED),
        wal("D", "1/10", identity=TYPED),
        knows_notes=False,
    ),
    "DynamoDB": messages(
        dynamo("INSERT", 1, NewImage=DYNAMO),
        dynamo("MODIFY", 2, NewImage={**DYNAMO, "name": {"S": "Anna"}}, OldImage=DYNAMO),
        dynamo("REMOVE", 3),
    ),
    "Airbyte": Feed(
        {
            **DATA, "_ab_cdc_lsn": "decimal(38,9)", "_ab_cdc_updated_at": "string",
            "_ab_cdc_deleted_at": "string", "_airbyte_raw_id": "string",
        },
        [
            (1, "Ann", None, Decimal(9 * PLACE), "2026-03-02T12:00:00Z", None, "a"),
            (1, "Anna", None, Decimal(10 * PLACE), "2026-03-02T12:00:00Z", None, "b"),
            (1, None, None, Decimal(11 * PLACE), NOON_TEXT, NOON_TEXT, "c"),
        ],
        has_before=False,
    ),
    "OLake": Feed(
        {
            **DATA, "_op_type": "string", "_cdc_timestamp": "timestamp",
            "_olake_timestamp": "timestamp", "_olake_id": "string",
        },
        [
            # of the first read
            (1, "Ann", None, "r", None, NOON, "a"),
            (1, "Anna", None, "u", ONE, TWO, "a"),
            (1, None, None, "d", TWO, TWO, "a"),
        ],
        has_before=False,
    ),
    "Snowflake": Feed(
        {
            **DATA, "METADATA$ACTION": "string", "METADATA$ISUPDATE": "boolean",
            "METADATA$ROW_ID": "string", "batch": "bigint",
        },
        [
            (1, "Ann", None, "INSERT", False, "r", 9),
            (1, "Ann", None, "DELETE", True, "r", 10),
            (1, "Anna", None, "INSERT", True, "r", 10),
            (1, "Anna", None, "DELETE", False, "r", 11),
        ],
    ),
    "Iceberg": Feed(
        {
            **DATA, "_change_type": "string", "_change_ordinal": "int",
            "_commit_snapshot_id": "bigint", "committed_at": "timestamp",
        },
        [
            (1, "Ann", None, "INSERT", 0, 5, NOON),
            (1, "Ann", None, "UPDATE_BEFORE", 1, 3, ONE),
            (1, "Anna", None, "UPDATE_AFTER", 1, 3, ONE),
            (1, "Anna", None, "DELETE", 2, 4, TWO),
        ],
    ),
    "Fabric": Feed(
        {**DATA, "__rowMarker__": "int", "file_number": "bigint", "file_row": "bigint"},
        [
            (1, "Ann", None, 0, 9, 3),
            (1, "Anna", None, 4, 10, 1),
            (1, None, None, 2, 10, 2),
        ],
        has_before=False,
    ),
}  # fmt: skip


def test_each_recipe_has_its_records() -> None:
    assert list(RECIPES) == list(FEEDS)


@pytest.mark.parametrize("name", FEEDS)
def test_a_recipe_reads_its_feed(spark: SparkSession, name: str) -> None:
    feed = FEEDS[name]
    is_document = "json_text" in RECIPES[name]
    settings = settings_of(None, {**RECIPES[name], "key": ["id"]}, DATA if is_document else None)
    wanted = ["change_seq", "change_oper", "id", "name", "known_columns", "reject_reason"]
    found = sorted(map(tuple, staged(spark, settings, feed.columns, feed.rows, wanted)))
    inserts = "U" if name == "Airbyte" else "I"
    assert [row[1:4] for row in found] == [
        (inserts, 1, "Ann"),
        *([("B", 1, "Ann")] if feed.has_before else []),
        ("U", 1, "Anna"),
        ("D", 1, found[-1][3]),
    ]
    assert [row[-1] for row in found] == [None] * len(found)
    known = None if feed.knows_notes else ["id", "name"]
    assert [row[4] for row in found if row[1:4] == ("U", 1, "Anna")] == [known]
    places = sorted({row[0] for row in found})
    assert len(places) == 3
    assert len({len(place) for place in places}) == 1
