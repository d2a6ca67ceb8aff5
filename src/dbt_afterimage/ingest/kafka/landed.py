"""The progress of a landing: what the raw table itself does not hold."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.ingest.kafka.request import KafkaLandingError, Topics
from dbt_afterimage.sources.qlik_messages import offsets
from dbt_afterimage.sources.qlik_messages.offsets import Offsets
from dbt_afterimage.storage.progress import Progress, write_progress


@dataclass(frozen=True)
class Landed:
    """The offsets that a raw table has.

    Attributes:
        offsets: up to where each partition counts as landed.
        topics: what it was landed from; a topic may have several ids, where that was accepted.
    """

    offsets: Offsets
    topics: Topics


_ROWS = 1000
"""So many progress rows are read: those of the last batch, and of runs that overlapped it."""


def read_landed(session: SparkSession, progress: str, table: str) -> Landed:
    """The last progress rows, together.

    The last one does not suffice: of two runs at one time, one may have found where a topic begins
    and recorded it with the batch before, while the other one landed the last batch.

    Raises:
        KafkaLandingError: a row was cut off, or changed.
    """
    rows = (
        session.table(progress)
        .filter(F.col("model") == table)
        .orderBy(F.col("recorded_at").desc())
        .limit(_ROWS)
        .select("arrival", "raw_version", F.col("recorded_at").cast("string"))
        .collect()
    )
    landed, topics = [], set()
    for row in rows:
        try:
            landed.append(offsets.from_text(row["arrival"]))
            topics.update(_pairs(row["raw_version"]))
        except ValueError as error:
            raise _unreadable(progress, table, row["recorded_at"]) from error
        if not landed[-1]:
            raise _unreadable(progress, table, row["recorded_at"])
    return Landed(offsets.merged(*landed), frozenset(topics))


def record_landed(
    session: SparkSession, progress: str, table: str, recorded_at: str | None, landed: Landed
) -> None:
    """Record what the raw table has with its last batch.

    What is found before a message is landed (where partitions begin, ids of topics) is recorded
    with the last batch too, not as a batch of its own: otherwise rows that another run has landed
    meanwhile without recording them would count as recorded.

    Args:
        recorded_at: the last batch of the raw table, None before the first one.
    """
    read = Progress(
        recorded_at,
        arrival=offsets.to_text(landed.offsets),
        raw_version=_text(landed.topics),
    )
    write_progress(session, progress, table, read)


def _unreadable(progress: str, table: str, recorded_at: str | None) -> KafkaLandingError:
    at = "is null" if recorded_at is None else f"= timestamp '{recorded_at}'"
    statement = f"delete from {progress} where model = '{table}' and recorded_at {at}"
    return KafkaLandingError(
        f"`land kafka`: {progress}: `arrival` or `raw_version` of {table} (recorded_at "
        f"{recorded_at}) is not what a landing writes there: it was cut off or changed, so the "
        "landed offsets are not known. Nothing was landed. Fix: delete the row, so that they are "
        f'read from {table}: afterimage spark-sql -e "{statement}"'
    )


def _pairs(text: str | None) -> list[tuple[str, str]]:
    given = json.loads(text) if text else {}
    try:
        return [(topic, str(number)) for topic, numbers in given.items() for number in numbers]
    except (AttributeError, TypeError) as error:
        raise ValueError(f"no ids of topics: {text}") from error


def _text(topics: Topics) -> str:
    nested = defaultdict(list)
    for topic, number in sorted(topics):
        nested[topic].append(number)
    return json.dumps(nested)
