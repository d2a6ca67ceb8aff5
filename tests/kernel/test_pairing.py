"""The before-image self-join and the full load, as functions from DataFrame to DataFrame.

Each test is a small stream of records in a line notation, and what must become of each:

    5 U 1 Bob                  at change_seq 5 the update of the row with key 1 to the name Bob
    5 U 1 Bob <- 1 Ann         the same in the log, with its before image
    5 U 1 Bob: accepted        what `pair` decided; a rejected record is followed by its reason

`-` is NULL. Records with the same text are copies of each other; `*2` after the text distinguishes
two records that differ in nothing that the notation shows. Most streams travel through Spark
together, as one DataFrame: a stream's number is the head of its positions and of its hashes.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest
from pyspark.sql import functions as F

from dbt_afterimage.change_log.contract import STAGED_COLUMNS, ReservedColumnError
from dbt_afterimage.change_log.deciding.full_load import Load, decide_loads, markers, rows_of
from dbt_afterimage.change_log.deciding.pairing import is_pending_too_long, pair
from dbt_afterimage.storage.local_relation import local_rows
from tests.oracle.pairing import StagedRow
from tests.oracle.pairing import pair as expected_pair
from tests.staged_columns import STAGED_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

DATA = "stream int, region string, id string, name string"
RECORD_SCHEMA = f"{STAGED_SCHEMA}, {DATA}"
LOG_SCHEMA = (
    "change_seq string, change_oper string, record_hash bigint, before_record_hash bigint, "
    f"{DATA}, before struct<{DATA.replace(' ', ':').replace(',:', ',')}>"
)


@dataclass(frozen=True)
class Record:
    """One raw record. `text` is its content, up to the stream."""

    stream: int
    text: str
    change_seq: str | None
    change_oper: str | None
    region: str | None
    id: str | None
    name: str | None
    reject_reason: str | None = None
    known_columns: tuple[str, ...] | None = None
    partner_may_follow: bool | None = None

    @property
    def seq(self) -> str | None:
        return None if self.change_seq is None else f"{self.stream:05d}{self.change_seq}"

    @property
    def record_hash(self) -> int:
        return (self.stream << 32) + crc32(self.text.encode())

    @property
    def data(self) -> dict[str, Any]:
        return {"stream": self.stream, "region": self.region, "id": self.id, "name": self.name}

    def staged(self) -> dict[str, Any]:
        """A row of a staging model."""
        return {
            **dict.fromkeys(STAGED_COLUMNS),
            "change_seq": self.seq,
            "change_oper": self.change_oper,
            "known_columns": None if self.known_columns is None else list(self.known_columns),
            "reject_reason": self.reject_reason,
            "record_hash": self.record_hash,
            "partner_may_follow": self.partner_may_follow,
            "raw_record": self.text,
            **self.data,
        }


def record(stream: int, text: str, reject_reason: str | None = None) -> Record:
    """`5 U 1 Bob`; a key of two columns is written `north/1`."""
    values = [None if word == "-" else word for word in text.split("*", maxsplit=1)[0].split()]
    seq, oper, key, name = [*values, None, None, None][:4]
    region, _, id_ = (key or "").rpartition("/")
    id_or_none = None if id_ in ("", "-") else id_
    return Record(stream, text, seq, oper, region or None, id_or_none, name, reject_reason)


# --- streams, and what becomes of them


@dataclass(frozen=True)
class Stream:
    """Records of staging, what the log holds already, and what must become of each record."""

    staged: Sequence[str]
    expected: Sequence[str]
    recorded: Sequence[str] = ()
    rejected_by_staging: Mapping[str, str] = field(default_factory=dict)
    partner_may_follow: bool | None = None


STREAMS = {
    # --- nothing to pair
    "insert, delete and truncate are accepted as they are": Stream(
        ["1 I 1 Ann", "2 D 1 Ann", "3 T"],
        ["1 I 1 Ann: accepted", "2 D 1 Ann: accepted", "3 T: accepted"],
    ),
    "several operations of one change_seq and key": Stream(
        ["1 D 1 Ann", "1 I 1 Ann", "1 T"],
        ["1 D 1 Ann: accepted", "1 I 1 Ann: accepted", "1 T: accepted"],
    ),
    # --- pairs
    "an update takes its before image": Stream(
        ["5 U 1 Bob", "5 B 1 Ann"],
        ["5 U 1 Bob <- 1 Ann: accepted", "5 B 1 Ann: merged"],
    ),
    "a key change": Stream(
        ["5 U 7 Ann", "5 B 1 Ann"],
        ["5 U 7 Ann <- 1 Ann: accepted", "5 B 1 Ann: merged"],
    ),
    "a key change beside an insert and a delete of the same keys": Stream(
        ["5 U 7 Ann", "5 B 1 Ann", "5 I 1 Eve", "5 D 7 Old"],
        [
            "5 U 7 Ann <- 1 Ann: accepted",
            "5 B 1 Ann: merged",
            "5 I 1 Eve: accepted",
            "5 D 7 Old: accepted",
        ],
    ),
    "pairs of different positions do not mix": Stream(
        ["5 U 1 Bob", "6 B 1 Bob", "5 B 1 Ann", "6 U 1 Cid"],
        [
            "5 U 1 Bob <- 1 Ann: accepted",
            "5 B 1 Ann: merged",
            "6 U 1 Cid <- 1 Bob: accepted",
            "6 B 1 Bob: merged",
        ],
    ),
    "several pairs of one change_seq": Stream(
        ["5 U 1 Bob", "5 B 1 Ann", "5 U 2 Eve", "5 B 2 Dan"],
        [
            "5 U 1 Bob <- 1 Ann: accepted",
            "5 B 1 Ann: merged",
            "5 U 2 Eve <- 2 Dan: accepted",
            "5 B 2 Dan: merged",
        ],
    ),
    "one pair and one key change of one change_seq": Stream(
        ["5 U 1 Bob", "5 B 1 Ann", "5 U 3 Dan", "5 B 2 Dan"],
        [
            "5 U 1 Bob <- 1 Ann: accepted",
            "5 B 1 Ann: merged",
            "5 U 3 Dan <- 2 Dan: accepted",
            "5 B 2 Dan: merged",
        ],
    ),
    "keys that swap are pairs of equal keys": Stream(
        ["5 U 1 Dan", "5 B 2 Dan", "5 U 2 Ann", "5 B 1 Ann"],
        [
            "5 U 1 Dan <- 1 Ann: accepted",
            "5 B 1 Ann: merged",
            "5 U 2 Ann <- 2 Dan: accepted",
            "5 B 2 Dan: merged",
        ],
    ),
    # --- ambiguous
    "two key changes of one change_seq": Stream(
        ["5 U 3 Ann", "5 B 1 Ann", "5 U 4 Dan", "5 B 2 Dan"],
        [
            "5 U 3 Ann: rejected ambiguous_pair",
            "5 B 1 Ann: rejected ambiguous_pair",
            "5 U 4 Dan: rejected ambiguous_pair",
            "5 B 2 Dan: rejected ambiguous_pair",
        ],
    ),
    "one update and two before images of other keys": Stream(
        ["5 U 3 Ann", "5 B 1 Ann", "5 B 2 Dan"],
        [
            "5 U 3 Ann: rejected ambiguous_pair",
            "5 B 1 Ann: rejected ambiguous_pair",
            "5 B 2 Dan: rejected ambiguous_pair",
        ],
    ),
    "two updates and one before image of other keys": Stream(
        ["5 U 3 Ann", "5 U 4 Ann", "5 B 1 Ann"],
        [
            "5 U 3 Ann: rejected ambiguous_pair",
            "5 U 4 Ann: rejected ambiguous_pair",
            "5 B 1 Ann: rejected ambiguous_pair",
        ],
    ),
    "what is ambiguous spares the pair beside it": Stream(
        ["5 U 1 Bob", "5 B 1 Ann", "5 U 3 Ann", "5 U 4 Dan", "5 B 2 Dan"],
        [
            "5 U 1 Bob <- 1 Ann: accepted",
            "5 B 1 Ann: merged",
            "5 U 3 Ann: rejected ambiguous_pair",
            "5 U 4 Dan: rejected ambiguous_pair",
            "5 B 2 Dan: rejected ambiguous_pair",
        ],
    ),
    # --- pending
    "an update alone waits": Stream(["5 U 1 Bob"], ["5 U 1 Bob: pending"]),
    "a before image alone waits": Stream(["5 B 1 Ann"], ["5 B 1 Ann: pending"]),
    "two updates of one change_seq wait": Stream(
        ["5 U 1 Bob", "5 U 2 Eve"], ["5 U 1 Bob: pending", "5 U 2 Eve: pending"]
    ),
    "an update beside a pair waits": Stream(
        ["5 U 1 Bob", "5 B 1 Ann", "5 U 2 Eve"],
        ["5 U 1 Bob <- 1 Ann: accepted", "5 B 1 Ann: merged", "5 U 2 Eve: pending"],
    ),
    "a before image beside a pair waits": Stream(
        ["5 U 1 Bob", "5 B 1 Ann", "5 B 2 Dan"],
        ["5 U 1 Bob <- 1 Ann: accepted", "5 B 1 Ann: merged", "5 B 2 Dan: pending"],
    ),
    # --- duplicates
    "copies": Stream(
        ["1 I 1 Ann", "1 I 1 Ann", "1 I 1 Ann", "2 D 1 Ann", "2 D 1 Ann", "3 T", "3 T"],
        [
            "1 I 1 Ann: accepted",
            "1 I 1 Ann: duplicate",
            "1 I 1 Ann: duplicate",
            "2 D 1 Ann: accepted",
            "2 D 1 Ann: duplicate",
            "3 T: accepted",
            "3 T: duplicate",
        ],
    ),
    "copies of a pair": Stream(
        ["5 U 1 Bob", "5 B 1 Ann", "5 B 1 Ann", "5 U 1 Bob"],
        [
            "5 U 1 Bob <- 1 Ann: accepted",
            "5 B 1 Ann: merged",
            "5 U 1 Bob: duplicate",
            "5 B 1 Ann: duplicate",
        ],
    ),
    "copies of a key change": Stream(
        ["5 U 7 Ann", "5 B 1 Ann", "5 B 1 Ann", "5 U 7 Ann"],
        [
            "5 U 7 Ann <- 1 Ann: accepted",
            "5 B 1 Ann: merged",
            "5 U 7 Ann: duplicate",
            "5 B 1 Ann: duplicate",
        ],
    ),
    "copies of a record that waits": Stream(
        ["5 U 1 Bob", "5 U 1 Bob"], ["5 U 1 Bob: pending", "5 U 1 Bob: duplicate"]
    ),
    # --- what the log holds already
    "the log has them": Stream(
        ["1 I 1 Ann", "2 D 1 Ann", "3 T", "4 U 1 Ann"],
        [
            "1 I 1 Ann: duplicate",
            "2 D 1 Ann: duplicate",
            "3 T: duplicate",
            "4 U 1 Ann: duplicate",
        ],
        recorded=["1 I 1 Ann", "2 D 1 Ann", "3 T", "4 U 1 Ann"],
    ),
    "the log has the pair": Stream(
        ["5 U 1 Bob", "5 B 1 Ann"],
        ["5 U 1 Bob: duplicate", "5 B 1 Ann: duplicate"],
        recorded=["5 U 1 Bob <- 1 Ann"],
    ),
    "the log has the key change": Stream(
        ["5 U 7 Ann", "5 B 1 Ann"],
        ["5 U 7 Ann: duplicate", "5 B 1 Ann: duplicate"],
        recorded=["5 U 7 Ann <- 1 Ann"],
    ),
    "the log has one pair of a change_seq": Stream(
        ["5 U 1 Bob", "5 B 1 Ann", "5 U 2 Eve", "5 B 2 Dan"],
        [
            "5 U 1 Bob: duplicate",
            "5 B 1 Ann: duplicate",
            "5 U 2 Eve <- 2 Dan: accepted",
            "5 B 2 Dan: merged",
        ],
        recorded=["5 U 1 Bob <- 1 Ann"],
    ),
    "a before image that comes after its update was recorded without it": Stream(
        ["5 U 1 Bob", "5 B 1 Ann"],
        ["5 U 1 Bob: duplicate", "5 B 1 Ann: pending"],
        recorded=["5 U 1 Bob"],
    ),
    "the copy in the log stays, whatever sorts first": Stream(
        ["5 U 1 Bob*1", "5 U 1 Bob*2", "5 U 1 Bob*3", "5 B 1 Ann*2"],
        [
            "5 U 1 Bob*1: rejected conflicting_duplicate",
            "5 U 1 Bob*2: duplicate",
            "5 U 1 Bob*3: rejected conflicting_duplicate",
            "5 B 1 Ann*2: rejected conflicting_duplicate",
        ],
        recorded=["5 U 1 Bob*2 <- 1 Ann"],
    ),
    "an insert in the log is not a copy of a delete": Stream(
        ["5 D 1 Ann"], ["5 D 1 Ann: accepted"], recorded=["5 I 1 Ann", "4 D 1 Ann", "5 D 2 Ann"]
    ),
    # --- records that are rejected
    "a record without a key": Stream(
        ["1 I - Ann", "2 U - Ann", "3 B - Ann", "4 D -"],
        [
            "1 I - Ann: rejected null_key",
            "2 U - Ann: rejected null_key",
            "3 B - Ann: rejected null_key",
            "4 D -: rejected null_key",
        ],
    ),
    "an update to a NULL key takes its before image with it": Stream(
        ["5 U - Ann", "5 B 1 Ann", "6 B 1 Ann"],
        [
            "5 U - Ann: rejected null_key",
            "5 B 1 Ann: rejected orphan_before_image",
            "6 B 1 Ann: pending",
        ],
    ),
    "an update to a NULL key leaves pairs of other keys alone": Stream(
        ["5 U - Ann", "5 B 1 Ann", "5 U 2 Eve", "5 B 2 Dan"],
        [
            "5 U - Ann: rejected null_key",
            "5 B 1 Ann: rejected orphan_before_image",
            "5 U 2 Eve <- 2 Dan: accepted",
            "5 B 2 Dan: merged",
        ],
    ),
    "of two before images one may belong to an update that has yet to come": Stream(
        ["5 U - Ann", "5 U - Ann", "5 B 1 Ann", "5 B 2 Dan"],
        [
            "5 U - Ann: rejected null_key",
            "5 U - Ann: duplicate",
            "5 B 1 Ann: pending",
            "5 B 2 Dan: pending",
        ],
    ),
    "what staging rejected takes part in nothing": Stream(
        ["5 U 1 Bob", "5 B 1 Ann", "6 I 2 Dan", "6 I 2 Dan*2"],
        [
            "5 U 1 Bob: rejected malformed_mask",
            "5 B 1 Ann: pending",
            "6 I 2 Dan: rejected uncastable_value:name",
            "6 I 2 Dan*2: accepted",
        ],
        rejected_by_staging={"5 U 1 Bob": "malformed_mask", "6 I 2 Dan": "uncastable_value:name"},
    ),
    "a null key is the first of the reasons": Stream(
        ["5 I - Ann", "- I - Ann"],
        ["5 I - Ann: rejected null_key", "- I - Ann: rejected null_key"],
        rejected_by_staging={"5 I - Ann": "malformed_mask", "- I - Ann": "null_change_seq"},
    ),
    "a record of an unknown operation has no key to judge": Stream(
        ["5 X - Ann", "5 - - Ann"],
        ["5 X - Ann: rejected unknown_operation", "5 - - Ann: rejected unknown_operation"],
        rejected_by_staging={"5 X - Ann": "unknown_operation", "5 - - Ann": "unknown_operation"},
    ),
    "records without a position": Stream(
        ["- I 1 Ann", "- I 1 Ann", "- I 1 Bob", "- U 1 Ann", "- B 1 Ann"],
        [
            "- I 1 Ann: rejected null_change_seq",
            "- I 1 Ann: duplicate",
            "- I 1 Bob: rejected null_change_seq",
            "- U 1 Ann: rejected null_change_seq",
            "- B 1 Ann: rejected null_change_seq",
        ],
        rejected_by_staging=dict.fromkeys(
            ["- I 1 Ann", "- I 1 Bob", "- U 1 Ann", "- B 1 Ann"], "null_change_seq"
        ),
    ),
    "copies of a rejected record": Stream(
        ["5 I - Ann", "5 I - Bob", "5 I - Ann", "5 I - Bob", "5 I - Ann"],
        [
            "5 I - Ann: rejected null_key",
            "5 I - Ann: duplicate",
            "5 I - Ann: duplicate",
            "5 I - Bob: rejected null_key",
            "5 I - Bob: duplicate",
        ],
    ),
}

OF_TWO_KEY_COLUMNS = {
    "a pair": Stream(
        ["5 U north/1 Bob", "5 B north/1 Ann"],
        ["5 U north/1 Bob <- north/1 Ann: accepted", "5 B north/1 Ann: merged"],
    ),
    "each column of the key counts": Stream(
        ["5 U north/1 Bob", "5 B north/1 Ann", "5 U south/1 Eve", "5 B south/1 Dan"],
        [
            "5 U north/1 Bob <- north/1 Ann: accepted",
            "5 B north/1 Ann: merged",
            "5 U south/1 Eve <- south/1 Dan: accepted",
            "5 B south/1 Dan: merged",
        ],
    ),
    "one column of the key changes": Stream(
        ["5 U south/1 Ann", "5 B north/1 Ann", "6 U south/2 Ann", "6 B south/1 Ann"],
        [
            "5 U south/1 Ann <- north/1 Ann: accepted",
            "5 B north/1 Ann: merged",
            "6 U south/2 Ann <- south/1 Ann: accepted",
            "6 B south/1 Ann: merged",
        ],
    ),
    "the log has one of two pairs": Stream(
        ["5 U north/1 Bob", "5 B north/1 Ann", "5 U south/1 Eve", "5 B south/1 Dan"],
        [
            "5 U north/1 Bob: duplicate",
            "5 B north/1 Ann: duplicate",
            "5 U south/1 Eve <- south/1 Dan: accepted",
            "5 B south/1 Dan: merged",
        ],
        recorded=["5 U north/1 Bob <- north/1 Ann"],
    ),
    "half a key is none": Stream(
        ["5 I 1 Ann", "6 I north/- Ann"],
        ["5 I 1 Ann: rejected null_key", "6 I north/- Ann: rejected null_key"],
    ),
}

OF_NO_KEY = {
    "a pair": Stream(
        ["5 U 1 Bob", "5 B 1 Ann", "6 U 7 Dan", "6 B 1 Dan"],
        [
            "5 U 1 Bob <- 1 Ann: accepted",
            "5 B 1 Ann: merged",
            "6 U 7 Dan <- 1 Dan: accepted",
            "6 B 1 Dan: merged",
        ],
    ),
    "nothing is missing where nothing identifies a row": Stream(
        ["5 I - Ann", "6 D -"], ["5 I - Ann: accepted", "6 D -: accepted"]
    ),
    "a position holds one record of each operation": Stream(
        ["5 I 1 Ann*1", "5 I 2 Bob*1", "5 D 1 Ann"],
        [
            "5 I 1 Ann*1: accepted",
            "5 I 2 Bob*1: rejected conflicting_duplicate",
            "5 D 1 Ann: accepted",
        ],
    ),
    "the log has the pair": Stream(
        ["5 U 1 Bob", "5 B 1 Ann"],
        ["5 U 1 Bob: duplicate", "5 B 1 Ann: duplicate"],
        recorded=["5 U 1 Bob <- 1 Ann"],
    ),
    "an update alone waits": Stream(["5 U 1 Bob"], ["5 U 1 Bob: pending"]),
}

WITHOUT_BEFORE_IMAGES = {
    "no update waits": Stream(
        ["5 U 1 Bob", "6 U 1 Cid", "6 U 2 Dan"],
        ["5 U 1 Bob: accepted", "6 U 1 Cid: accepted", "6 U 2 Dan: accepted"],
    ),
    "a before image has no place": Stream(
        ["5 B 1 Ann", "6 U 1 Bob", "6 B 1 Ann", "7 U 7 Bob", "7 B 1 Bob"],
        [
            "5 B 1 Ann: rejected orphan_before_image",
            "6 U 1 Bob: accepted",
            "6 B 1 Ann: rejected orphan_before_image",
            "7 U 7 Bob: accepted",
            "7 B 1 Bob: rejected orphan_before_image",
        ],
    ),
    "duplicates and what the log has": Stream(
        ["5 U 1 Bob", "5 U 1 Bob", "6 U 1 Cid", "7 I - Ann"],
        [
            "5 U 1 Bob: accepted",
            "5 U 1 Bob: duplicate",
            "6 U 1 Cid: duplicate",
            "7 I - Ann: rejected null_key",
        ],
        recorded=["6 U 1 Cid"],
    ),
}


# What a message says of an update, it says at once: `partner_may_follow` is false.
OF_WHOLE_UPDATES = {
    "an update without its before image waits for none": Stream(
        ["5 U 1 Bob", "6 U 1 Cid", "6 B 1 Bob", "7 U 2 Dan"],
        ["5 U 1 Bob: accepted", "6 U 1 Cid <- 1 Bob: accepted", "6 B 1 Bob: merged",
         "7 U 2 Dan: accepted"],
        partner_may_follow=False,
    ),
    "a rejected before image is waited for no longer": Stream(
        ["5 U 1 Bob", "5 B 1 Ann"],
        ["5 U 1 Bob: accepted", "5 B 1 Ann: rejected uncastable_value:name"],
        rejected_by_staging={"5 B 1 Ann": "uncastable_value:name"},
        partner_may_follow=False,
    ),
    "nor is an update that was rejected": Stream(
        ["5 U 1 Bob", "5 B 1 Ann"],
        ["5 U 1 Bob: rejected uncastable_value:name", "5 B 1 Ann: rejected orphan_before_image"],
        rejected_by_staging={"5 U 1 Bob": "uncastable_value:name"},
        partner_may_follow=False,
    ),
    "a pair that cannot be told is still refused": Stream(
        ["5 U 1 Bob", "5 U 2 Cid", "5 B 3 Ann"],
        [f"5 {text}: rejected ambiguous_pair" for text in ("U 1 Bob", "U 2 Cid", "B 3 Ann")],
        partner_may_follow=False,
    ),
    "an update that the log has without its before image": Stream(
        ["5 U 1 Bob", "5 B 1 Ann"],
        ["5 U 1 Bob: duplicate", "5 B 1 Ann: rejected orphan_before_image"],
        recorded=["5 U 1 Bob"],
        partner_may_follow=False,
    ),
    "others wait": Stream(
        ["5 U 1 Bob", "6 B 1 Ann"],
        ["5 U 1 Bob: pending", "6 B 1 Ann: pending"],
        partner_may_follow=True,
    ),
}  # fmt: skip


# --- running them


def staged_frame(spark: SparkSession, records: Iterable[Record]) -> DataFrame:
    return local_rows(spark, [r.staged() for r in records], RECORD_SCHEMA)


def log_frame(spark: SparkSession, recorded: Iterable[tuple[Record, Record | None]]) -> DataFrame:
    """The change log's columns that `pair` reads."""
    rows = [
        (
            update.seq,
            update.change_oper,
            update.record_hash,
            None if image is None else image.record_hash,
            *update.data.values(),
            None if image is None else tuple(image.data.values()),
        )
        for update, image in recorded
    ]
    return local_rows(spark, rows, LOG_SCHEMA)


def of_log(stream: int, text: str) -> tuple[Record, Record | None]:
    """`5 U 1 Bob <- 1 Ann` as a record and its before image."""
    text, _, image = text.partition(" <- ")
    seq = text.split()[0]
    return record(stream, text), record(stream, f"{seq} B {image}") if image else None


def shown(rows: Iterable[Row]) -> dict[int, list[str]]:
    """What `pair` decided, in the notation, by stream; before images without their hash's mark."""
    texts: dict[int, list[str]] = {}
    for row in rows:
        before = row["before"]
        image = "" if before is None else f" <- {_key(before)} {before['name'] or '-'}"
        parts = [(row["change_seq"] or "")[5:] or "-", row["change_oper"] or "-"]
        parts += [_key(row), row["name"] or "-"] if row["change_oper"] != "T" else []
        reason = f" {row['reject_reason']}" if row["outcome"] == "rejected" else ""
        text = f"{' '.join(parts)}{image}: {row['outcome']}{reason}"
        texts.setdefault(row["stream"], []).append(text)
    return {stream: sorted(of_stream) for stream, of_stream in texts.items()}


def _key(values: Any) -> str:
    region = "" if values["region"] is None else f"{values['region']}/"
    return f"{region}{values['id'] or '-'}"


def plain(text: str) -> str:
    """An expectation as `shown` writes it: without `*2`, and with the name of a `D -`."""
    record_text, _, outcome = text.partition(": ")
    record_text = " ".join(word.split("*")[0] for word in record_text.split())
    if " D -" in record_text and record_text.endswith("D -"):
        record_text += " -"
    return f"{record_text}: {outcome}"


def expected(stream: Stream) -> list[str]:
    return sorted(plain(text) for text in stream.expected)


def run_streams(
    spark: SparkSession,
    streams: Mapping[str, Stream],
    key: list[str],
    *,
    before_images: bool = True,
    arrange: Callable[[DataFrame], DataFrame] = lambda rows: rows,
    shuffle: random.Random | None = None,
) -> dict[str, list[str]]:
    """What `pair` makes of all streams, in one Spark job, by the streams' names."""
    staged, recorded = [], []
    for number, stream in enumerate(streams.values(), 1):
        reasons = stream.rejected_by_staging
        staged += [
            replace(
                record(number, text, reasons.get(text)),
                partner_may_follow=stream.partner_may_follow,
            )
            for text in stream.staged
        ]
        recorded += [of_log(number, text) for text in stream.recorded]
    if shuffle is not None:
        shuffle.shuffle(staged)
        shuffle.shuffle(recorded)
    rows = pair(
        arrange(staged_frame(spark, staged)),
        arrange(log_frame(spark, recorded)),
        key,
        before_images=before_images,
    ).collect()
    assert len(rows) == len(staged), "every record, and none of the log's, has an outcome"
    decided = shown(rows)
    return {name: decided[number] for number, name in enumerate(streams, 1)}


@pytest.fixture(scope="module")
def decided(spark: SparkSession) -> dict[str, list[str]]:
    return run_streams(spark, STREAMS, ["id"])


@pytest.mark.parametrize("name", STREAMS)
def test_pair(decided: dict[str, list[str]], name: str) -> None:
    assert decided[name] == expected(STREAMS[name])


@pytest.mark.parametrize("partitions", [1, 3, 8])
def test_order_and_partitioning_do_not_matter(
    spark: SparkSession, decided: dict[str, list[str]], partitions: int
) -> None:
    shuffled = run_streams(
        spark,
        STREAMS,
        ["id"],
        arrange=lambda rows: rows.repartition(partitions),
        shuffle=random.Random(partitions),
    )
    assert shuffled == decided


def test_composite_keys(spark: SparkSession) -> None:
    found = run_streams(spark, OF_TWO_KEY_COLUMNS, ["region", "id"])
    assert found == {name: expected(stream) for name, stream in OF_TWO_KEY_COLUMNS.items()}


def test_tables_without_a_key(spark: SparkSession) -> None:
    found = run_streams(spark, OF_NO_KEY, [])
    assert found == {name: expected(stream) for name, stream in OF_NO_KEY.items()}


def test_before_images_off(spark: SparkSession) -> None:
    found = run_streams(spark, WITHOUT_BEFORE_IMAGES, ["id"], before_images=False)
    assert found == {name: expected(stream) for name, stream in WITHOUT_BEFORE_IMAGES.items()}


def test_nothing_waits_for_what_cannot_follow(spark: SparkSession) -> None:
    found = run_streams(spark, OF_WHOLE_UPDATES, ["id"])
    assert found == {name: expected(stream) for name, stream in OF_WHOLE_UPDATES.items()}


def test_of_conflicting_copies_the_first_by_content_stays(spark: SparkSession) -> None:
    copies = [record(1, f"5 I 1 Ann*{n}") for n in range(4)]
    first, *others = sorted(copies, key=lambda copy: copy.record_hash)
    rows = pair(staged_frame(spark, [*copies, *others, first]), None, ["id"]).collect()
    found = Counter((row["record_hash"], row["outcome"], row["reject_reason"]) for row in rows)
    assert found == Counter(
        [
            (first.record_hash, "accepted", None),
            (first.record_hash, "duplicate", None),
            *[(o.record_hash, "rejected", "conflicting_duplicate") for o in others],
            # the second copy of a rejected one is a copy
            *[(o.record_hash, "duplicate", None) for o in others],
        ]
    )


def test_what_an_update_gets_of_its_before_image(spark: SparkSession) -> None:
    update = replace(record(1, "5 U 7 Bob"), known_columns=("id", "name"))
    image = replace(record(1, "5 B 1 Ann"), known_columns=("id",))
    rows = pair(staged_frame(spark, [update, image]), None, ["id"]).collect()
    (of_update,) = [row for row in rows if row["change_oper"] == "U"]
    assert of_update["before"].asDict() == image.data
    assert list(of_update["before"].asDict()) == ["stream", "region", "id", "name"]
    assert of_update["known_columns"] == ["id", "name"]
    assert of_update["before_known_columns"] == ["id"]
    assert of_update["before_record_hash"] == image.record_hash


def test_values_that_nobody_reads_may_be_left_out(spark: SparkSession) -> None:
    lines = ["5 U 1 Bob", "5 B 1 Ann", "6 I 2 Eve", "6 I 2 Eve", "7 U 3 Cid", "8 I - Dan"]
    staged = staged_frame(spark, [record(1, line) for line in lines])
    rows = pair(staged, None, ["id"], keeps_unread=False).collect()
    found = Counter(
        (row["change_seq"][-1], row["outcome"], row["stream"], row["name"]) for row in rows
    )
    assert found == Counter(
        [
            ("5", "accepted", 1, "Bob"),
            ("5", "merged", None, None),
            ("6", "accepted", 1, "Eve"),
            ("6", "duplicate", None, None),
            ("7", "pending", 1, "Cid"),
            ("8", "rejected", 1, "Dan"),
        ]
    )
    (of_update,) = [row for row in rows if row["before"]]
    assert of_update["before"]["name"] == "Ann"


def test_columns_of_the_result(spark: SparkSession) -> None:
    result = pair(staged_frame(spark, [record(1, "5 I 1 Ann")]), None, ["id"])
    kept = [name for name in STAGED_COLUMNS if name != "raw_record"]
    added = ["outcome", "before", "before_known_columns", "before_record_hash"]
    assert sorted(result.columns) == sorted([*kept, "stream", "region", "id", "name", *added])


def test_nothing_to_pair(spark: SparkSession) -> None:
    assert pair(staged_frame(spark, []), None, ["id"]).collect() == []
    assert pair(staged_frame(spark, []), log_frame(spark, []), ["id"]).collect() == []


def test_data_columns_may_have_any_name(spark: SparkSession) -> None:
    """Names that `pair` might use for itself, reserved words, spaces, capitals, other alphabets."""
    names = ["Class", "place", "is_recorded", "is_candidate", "partner", "updates", "images_before"]
    names += ["own_key", "key", "image", "select", "order", "Größe", "two words", "record hash"]
    schema = RECORD_SCHEMA + "".join(f", `{name}` string" for name in names)
    update, image = record(1, "5 U 1 Bob"), record(1, "5 B 1 Ann")
    staged = local_rows(
        spark,
        [
            (*update.staged().values(), *[f"new {name}" for name in names]),
            (*image.staged().values(), *[f"old {name}" for name in names]),
        ],
        schema,
    )
    (row,) = pair(staged, None, ["id", "stream"]).filter("change_oper = 'U'").collect()
    assert [row[name] for name in names] == [f"new {name}" for name in names]
    assert [row["before"][name] for name in names] == [f"old {name}" for name in names]


@pytest.mark.parametrize("name", ["outcome", "Outcome", "recorded_at", "before", "load_rows"])
def test_a_data_column_with_a_name_of_the_log_is_refused(spark: SparkSession, name: str) -> None:
    staged = staged_frame(spark, [record(1, "5 I 1 Ann")]).withColumnRenamed("name", name)
    with pytest.raises(ReservedColumnError, match=f"`{name}`.*Fix: "):
        pair(staged, None, ["id"])


def test_who_has_waited_too_long(spark: SparkSession) -> None:
    records = [record(0, text) for text in ("4 U 1 Bob", "5 B 1 Ann", "6 U 1 Bob", "3 I 1 Ann")]
    records += [record(0, "- I 1 Ann", "null_change_seq")]
    rows = pair(staged_frame(spark, records), None, ["id"])
    late = rows.select("change_seq", is_pending_too_long("000005").alias("is_late")).collect()
    assert {row["change_seq"]: bool(row["is_late"]) for row in late} == {
        "000003": False,
        "000004": True,
        "000005": True,
        "000006": False,
        None: False,
    }


# --- the same as the second implementation


def random_stream(chance: random.Random, number: int) -> list[Record]:
    """Few positions and keys, so that records meet; some lack a key, some are copied or broken."""
    records = []
    for _ in range(chance.randint(1, 12)):
        oper = chance.choices("IUBDT", (2, 8, 8, 2, 1))[0]
        key = chance.choice(["north/1", "north/2", "south/1", "south/1", "north/-"])
        if chance.random() < 0.8:
            key = key.replace("south", "north").replace("-", "2")
        text = f"{chance.randint(1, 3)} {oper}"
        if oper != "T":
            text += f" {key} {chance.choice('abc')}"
        reason = "malformed_mask" if chance.random() < 0.05 else None
        if reason:
            text += " broken"  # not shown, but other content
        # copies of one record say the same of their partners
        may_follow = {0: False, 1: None}.get(crc32(text.encode()) % 4, True)
        new = replace(record(number, text, reason), partner_may_follow=may_follow)
        records += [new] * chance.choices([1, 2, 3], (8, 2, 1))[0]
    return records


def compared(records: Sequence[Record], recorded: Sequence[Record], **options: Any) -> Counter[Any]:
    """Where the second implementation puts each record."""
    by_hash = {r.record_hash: r for r in [*records, *recorded]}
    result = expected_pair(
        [as_oracle(r) for r in records],
        ["region", "id"],
        pending_from="",
        recorded=[as_oracle(r) for r in recorded],
        **options,
    )
    found: Counter[Any] = Counter()
    for log in result.log:
        before = None if log.before is None else tuple(log.before.values())
        data = None if log.data is None else tuple(log.data.values())
        found["accepted", log.change_seq, log.change_oper, data, before] += 1
    for rejected, reason in result.rejected:
        found["rejected", rejected.record_hash, reason] += 1
    for pending in result.pending:
        found["pending", pending.record_hash] += 1
    found["duplicate"] = result.duplicates
    assert by_hash
    return +found


def as_oracle(raw: Record) -> StagedRow:
    return StagedRow(
        raw.seq,
        raw.change_oper,
        raw.data,
        raw.record_hash,
        reject_reason=raw.reject_reason,
        partner_may_follow=raw.partner_may_follow is not False,
    )


def of_product(rows: Iterable[Row]) -> dict[int, Counter[Any]]:
    """Where `pair` puts each record, by stream."""
    found: dict[int, Counter[Any]] = {}
    columns = ("stream", "region", "id", "name")
    for row in rows:
        of_stream = found.setdefault(row["stream"], Counter())
        outcome = row["outcome"]
        if outcome == "accepted":
            data = None if row["change_oper"] == "T" else tuple(row[name] for name in columns)
            before = None if row["before"] is None else tuple(row["before"])
            of_stream[outcome, row["change_seq"], row["change_oper"], data, before] += 1
        elif outcome == "rejected":
            of_stream[outcome, row["record_hash"], row["reject_reason"]] += 1
        elif outcome == "pending":
            of_stream[outcome, row["record_hash"]] += 1
        elif outcome == "duplicate":
            of_stream[outcome] += 1
    return found


@pytest.mark.parametrize("before_images", [True, False])
def test_random_streams_become_what_the_second_implementation_makes_of_them(
    spark: SparkSession, before_images: bool
) -> None:
    """In two batches: the second reads the first once more, beside what the log holds by then."""
    chance = random.Random(20260302)
    count = 300
    first = {number: random_stream(chance, number) for number in range(1, count + 1)}
    second = {number: random_stream(chance, number) for number in first}

    rows = pair(
        staged_frame(spark, [r for stream in first.values() for r in stream]),
        None,
        ["region", "id"],
        before_images=before_images,
    ).cache()
    decided = of_product(rows.collect())
    for number, stream in first.items():
        assert decided[number] == compared(stream, [], before_images=before_images), number

    log = rows.filter("outcome = 'accepted'")
    recorded_hashes = {
        hash_ for row in log.select("record_hash", "before_record_hash").collect() for hash_ in row
    }
    both = {number: [*first[number], *second[number]] for number in first}
    rows_of_both = pair(
        staged_frame(spark, [r for stream in both.values() for r in stream]),
        log,
        ["region", "id"],
        before_images=before_images,
    )
    decided = of_product(rows_of_both.collect())
    rows.unpersist()
    for number, stream in both.items():
        recorded = {r.record_hash: r for r in first[number] if r.record_hash in recorded_hashes}
        options = {"before_images": before_images}
        assert decided[number] == compared(stream, [*recorded.values()], **options), number


# --- full loads


def load_frame(spark: SparkSession, records: Iterable[Record]) -> DataFrame:
    return staged_frame(spark, records).withColumn("load_id", F.lit("initial"))


def decide_load(rows: DataFrame, key: list[str], position: str) -> DataFrame:
    return decide_loads(rows_of([Load("initial", position)], rows), key)


def decided_load(rows: DataFrame) -> list[str]:
    return [
        f"{row['change_seq']} {row['id'] or '-'} {row['name']}: {row['outcome']}"
        + (f" {row['reject_reason']}" if row["outcome"] == "rejected" else "")
        for row in rows.orderBy("id", "name", "outcome").collect()
    ]


def test_the_rows_of_a_load(spark: SparkSession) -> None:
    records = [
        record(1, "- L 1 Ann"),
        record(1, "- L 2 Bob"),
        record(1, "- L 2 Bob"),
        record(1, "- L - Cid"),
        record(1, "- L - Cid"),
        record(1, "- L - Dan"),
        record(1, "- L 3 Eve", "uncastable_value:name"),
        record(1, "- L 3 Fay"),
        record(1, "- L 4 Gus", "uncastable_value:name"),
        record(1, "- L 4 Gus", "uncastable_value:name"),
    ]
    rows = decide_load(load_frame(spark, records), ["id"], "000")
    assert decided_load(rows) == [
        "000 - Cid: duplicate",
        "000 - Cid: rejected null_key",
        "000 - Dan: rejected null_key",
        "000 1 Ann: accepted",
        "000 2 Bob: accepted",
        "000 2 Bob: duplicate",
        "000 3 Eve: rejected uncastable_value:name",
        "000 3 Fay: accepted",
        "000 4 Gus: duplicate",
        "000 4 Gus: rejected uncastable_value:name",
    ]


def test_of_rows_with_one_key_the_first_by_content_stays(spark: SparkSession) -> None:
    copies = [record(1, f"- L 1 Ann*{n}") for n in range(3)]
    first, *others = sorted(copies, key=lambda copy: copy.record_hash)
    staged = load_frame(spark, [*others, *copies])
    for partitions in (1, 3):
        rows = decide_load(staged.repartition(partitions), ["id"], "000").collect()
        found = Counter((row["record_hash"], row["outcome"], row["reject_reason"]) for row in rows)
        assert found == Counter(
            [
                (first.record_hash, "accepted", None),
                *[(o.record_hash, "rejected", "conflicting_duplicate") for o in others],
                *[(o.record_hash, "duplicate", None) for o in others],
            ]
        )


def test_a_null_key_is_the_first_of_a_load_rows_reasons(spark: SparkSession) -> None:
    rows = load_frame(spark, [record(1, "- L - Ann", "uncastable_value:name")])
    assert decided_load(decide_load(rows, ["id"], "000")) == ["000 - Ann: rejected null_key"]


def test_a_load_of_a_table_without_a_key(spark: SparkSession) -> None:
    """Two equal rows cannot be distinguished from one row that came twice: all are kept."""
    rows = load_frame(spark, [record(1, "- L 1 Ann"), record(1, "- L 1 Ann"), record(1, "- L - B")])
    assert decided_load(decide_load(rows, [], "000")) == [
        "000 - B: accepted",
        "000 1 Ann: accepted",
        "000 1 Ann: accepted",
    ]


def test_rows_of_a_load_have_the_position_of_the_load(spark: SparkSession) -> None:
    rows = load_frame(spark, [record(0, "7 L 1 Ann"), record(0, "- L 2 Bob")])
    assert decided_load(decide_load(rows, ["id"], "000003")) == [
        "000003 1 Ann: accepted",
        "000003 2 Bob: accepted",
    ]


def test_a_load_fits_to_what_pair_returns(spark: SparkSession) -> None:
    changes = pair(staged_frame(spark, [record(1, "5 I 1 Ann")]), None, ["id"])
    loaded = decide_load(load_frame(spark, [record(1, "- L 1 Ann")]), ["id"], "000")
    both = changes.unionByName(loaded, allowMissingColumns=True)
    assert both.columns == changes.columns
    assert both.count() == 2


def test_the_marker_of_a_load(spark: SparkSession) -> None:
    staged = load_frame(spark, [record(1, "- L 1 Ann"), record(1, "- L 2 Bob")])
    staged = staged.withColumn("changed_at", F.lit("2026-03-02 07:30:00").cast("timestamp"))
    assert of_marker(markers(decide_load(staged, ["id"], "000"), [Load("initial", "000")])) == {
        "load_rows": 2,
        "changed_at": "2026-03-02 07:30:00",
        "change_seq": "000",
        "change_oper": "L",
        "outcome": "accepted",
        "load_id": "initial",
    }


def test_the_marker_of_an_empty_load(spark: SparkSession) -> None:
    rows = decide_load(load_frame(spark, []), ["id"], "000")
    found = of_marker(markers(rows, [Load("initial", "000")]))
    assert (found["load_rows"], found["changed_at"]) == (0, None)
    found = of_marker(markers(rows, [Load("initial", "000", "2026-03-02 07:30:00")]))
    assert (found["load_rows"], found["changed_at"]) == (0, "2026-03-02 07:30:00")


def test_loads_are_decided_together_and_have_nothing_to_do_with_each_other(
    spark: SparkSession,
) -> None:
    staged = load_frame(spark, [record(1, "- L 1 Ann"), record(1, "- L 2 Bob")])
    later = load_frame(spark, [record(1, "- L 1 Ann"), record(1, "- L 1 Anna")])
    other = load_frame(spark, [record(1, "- L 9 Zoe")])
    rows = (
        staged.union(later.withColumn("load_id", F.lit("later")))
        .union(other.withColumn("load_id", F.lit("other")))
        .union(staged_frame(spark, [record(1, "7 I 5 Eve")]).withColumn("load_id", F.lit(None)))
    )
    loads = [Load("initial", "000"), Load("later", "300"), Load("empty", "400")]
    found = decide_loads(rows_of(loads, rows), ["id"])
    assert sorted(text.partition(":")[0] for text in decided_load(found)) == [
        "000 1 Ann",
        "000 2 Bob",
        "300 1 Ann",
        "300 1 Anna",
    ]
    counts = {
        (row["load_id"], row["change_seq"]): row["load_rows"]
        for row in markers(found.filter("outcome = 'accepted'"), loads).collect()
    }
    assert counts == {("initial", "000"): 2, ("later", "300"): 1, ("empty", "400"): 0}


def of_marker(rows: DataFrame) -> dict[str, Any]:
    # as text: PySpark gives timestamps in the time zone of the machine
    (row,) = rows.withColumn("changed_at", F.col("changed_at").cast("string")).collect()
    return row.asDict()
