"""The progress of a landing: what the raw table itself does not hold."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dbt_afterimage.sources.qlik_messages import offsets
from dbt_afterimage.sources.qlik_messages.offsets import Offsets
from dbt_afterimage.storage.progress import Progress, write_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Topics = frozenset[tuple[str, str]]
"""(topic, its id): the cluster gives a topic that is recreated another id."""


@dataclass(frozen=True)
class Landed:
    """What a raw table has.

    Attributes:
        offsets: up to where each partition counts as landed.
        topics: what it was landed from; a topic may have several ids, where that was accepted.
    """

    offsets: Offsets
    topics: Topics


_ROWS = 1000
"""So many progress rows are read: those of the last batch, and of runs that overlapped it."""


def read_landed(session: SparkSession, progress: str, table: str) -> Landed:
    """What the last progress rows record, together.

    The last one does not suffice: of two runs at one time, one may have found where a topic begins
    and recorded it with the batch before, while the other one landed the last batch.

    Args:
        session: the live Spark session.
        progress: name of the progress table.
        table: name of the raw table.
    """
    rows = (
        session.table(progress)
        .filter(F.col("model") == table)
        .orderBy(F.col("recorded_at").desc())
        .limit(_ROWS)
        .select("arrival", "raw_version")
        .collect()
    )
    return Landed(
        offsets.merged(*[offsets.from_text(row["arrival"]) for row in rows]),
        frozenset(pair for row in rows for pair in _pairs(row["raw_version"])),
    )


def record_landed(
    session: SparkSession, progress: str, table: str, recorded_at: str | None, landed: Landed
) -> None:
    """Record what the raw table has with its last batch.

    What is found before a message is landed (where partitions begin, ids of topics) is recorded
    with the last batch too, not as a batch of its own: otherwise rows that another run has landed
    meanwhile without recording them would count as recorded.

    Args:
        session: the live Spark session.
        progress: name of the progress table.
        table: name of the raw table.
        recorded_at: the last batch of the raw table, None before the first one.
        landed: what to record.
    """
    read = Progress(
        recorded_at,
        arrival=offsets.to_text(landed.offsets),
        raw_version=_text(landed.topics),
    )
    write_progress(session, progress, table, read)


def _pairs(text: str | None) -> list[tuple[str, str]]:
    given: dict[str, list[str]] = json.loads(text) if text else {}
    return [(topic, number) for topic, numbers in given.items() for number in numbers]


def _text(topics: Topics) -> str:
    nested = defaultdict(list)
    for topic, number in sorted(topics):
        nested[topic].append(number)
    return json.dumps(nested)
