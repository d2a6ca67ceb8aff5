"""Copies messages of a Kafka cluster into a raw table, as they are, each of them once.

The raw table is its own checkpoint: the progress table stores the landed offsets of each partition,
and those that a killed run did not record are read from the rows themselves. Each batch is a Spark
batch query over a range of offsets, and one commit: a message is in the table, or still to be
landed. Nothing runs in a callback of Spark's driver, so the query works on a cluster too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from dbt_afterimage.ingest.kafka.batches import in_order, shares
from dbt_afterimage.ingest.kafka.landed import Landed, Topics, read_landed, record_landed
from dbt_afterimage.sources.qlik_messages import offsets
from dbt_afterimage.sources.qlik_messages.message_columns import RAW_COLUMNS
from dbt_afterimage.sources.qlik_messages.offsets import Offsets
from dbt_afterimage.spark.session import is_remote, java
from dbt_afterimage.storage.append import append_once
from dbt_afterimage.storage.create import table_options
from dbt_afterimage.storage.progress import (
    Progress,
    next_recorded_at,
    read_progress,
    recover_progress,
    rows_after_progress,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13"
BATCH = 1_000_000
_MARK = "landed_at"
# What Kafka gives for the id of a topic where it has none.
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
# Kafka's and Spark's own name for the first offset that a partition has.
_EARLIEST = -2


class KafkaLandingError(ValueError):
    """Messages cannot be landed as asked; the text is meant for the user."""


@dataclass(frozen=True)
class Request:
    """What to land.

    Attributes:
        brokers: `bootstrap.servers`, such as `localhost:9092`.
        topics: names of topics; empty where `pattern` is given.
        pattern: a regular expression for the whole name of a topic; None with `topics`.
        starting: `earliest` or `latest`: where to begin in a topic that was never landed.
        options: further options of the client, by Kafka's own names.
        max_messages: land up to this many; None for all messages that are there.
        accept_gap: go on where Kafka has removed messages that were not landed, or where a topic
            has another id.
    """

    brokers: str
    topics: Sequence[str] = ()
    pattern: str | None = None
    starting: str = "earliest"
    options: Mapping[str, str] = field(default_factory=dict)
    max_messages: int | None = None
    accept_gap: bool = False


@dataclass(frozen=True)
class Ends:
    """What the cluster has.

    Attributes:
        earliest: the first offset of each partition.
        latest: the next one to be written to it.
        topics: names and ids; empty where the cluster is so old that it gives none.
    """

    earliest: Offsets
    latest: Offsets
    topics: Topics = frozenset()


def land(
    session: SparkSession,
    request: Request,
    table: str,
    progress: str,
    table_format: str,
    report: Callable[[str], None],
) -> int:
    """Append what was not landed yet, up to what is there now; the table is made when missing.

    Args:
        session: the live Spark session, with Spark's Kafka package.
        request: what to land.
        table: name of the raw table.
        progress: name of the table of progress.
        table_format: `iceberg` or `delta`.
        report: progress callback, called with one line of text.

    Returns:
        The number of messages.

    Raises:
        KafkaLandingError: the topics are not there, Kafka lacks what was not landed yet, or the
            session is one of Spark Connect.
        ConcurrentRunError: another run landed into the same table meanwhile.
    """
    if is_remote(session):
        raise KafkaLandingError(
            "`land kafka`: the session is one of Spark Connect (`spark.remote`), and a landing "
            "needs Spark's driver in this process. Nothing was landed. Fix: land with a target "
            "without `spark.remote` on the same catalog, then build over Connect."
        )
    _create(session, table, table_format)
    recorded = read_progress(session, progress, table)
    stored = session.table(table)
    done = recover_progress(stored, recorded, mark=_MARK)
    known = read_landed(session, progress, table, recorded.recorded_at)
    landed = known.offsets
    if done != recorded:
        landed = offsets.merged(
            landed, offsets.last_offsets(rows_after_progress(stored, recorded, _MARK))
        )
    ends = _ends(session, request)
    check_topics(request, ends, Landed(landed, known.topics), table)
    start = starting_offsets(request, ends, landed, table)
    first = Landed(offsets.merged(landed, initial_offsets(ends, start)), known.topics | ends.topics)
    if first != Landed(landed, known.topics):
        record_landed(session, progress, table, done.recorded_at, first)
    position = {key: offset + 1 for key, offset in initial_offsets(ends, start).items()}
    counts = {key: ends.latest[key] - offset for key, offset in position.items()}
    wanted = sum(counts.values())
    if request.max_messages is not None:
        wanted = min(wanted, request.max_messages)
    if not wanted:
        report(f"Nothing new for {table}")
        return 0
    writer = _Writer(session, table, progress, table_format, done.recorded_at, first)
    left = wanted
    for part in in_order(start, counts, min(BATCH, wanted)):
        while True:
            unread = {key: ends.latest[key] - position[key] for key in part}
            share = shares(unread, min(BATCH, left))
            if not share:
                break
            begin = {
                key: _EARLIEST if part[key] == _EARLIEST and at == ends.earliest[key] else at
                for key, at in position.items()
                if key in share
            }
            end = {key: position[key] + count for key, count in share.items()}
            has_messages = writer.append(_read(session, request, begin, end), end)
            position.update(end)
            report(f"{writer.count:,} of {wanted:,} messages landed")
            if has_messages:
                left -= sum(share.values())
    writer.record_rest()
    return writer.count


def starting_offsets(
    request: Request, ends: Ends, landed: Offsets, table: str
) -> dict[tuple[str, int], int]:
    """The first offset to land of each partition; -2 is its earliest one.

    A partition added to a landed topic begins there whatever `starting` says: all its messages are
    newer than the first landing.

    Raises:
        KafkaLandingError: Kafka lacks messages behind those that were landed.
    """
    start = {}
    landed_topics = {topic for topic, _ in landed}
    for key, earliest in ends.earliest.items():
        name = f"{key[0]}-{key[1]}"
        if key not in landed:
            is_from_end = request.starting == "latest" and key[0] not in landed_topics
            start[key] = ends.latest[key] if is_from_end else _EARLIEST
            continue
        start[key] = landed[key] + 1
        if start[key] > ends.latest[key]:
            raise KafkaLandingError(
                f"`land kafka`: {table} has {name} up to offset {landed[key]}, and Kafka's last "
                f"one is {ends.latest[key] - 1}. The topic was recreated, or it is another "
                "cluster's. Nothing was landed. Fix: land it into another table."
            )
        if start[key] < earliest:
            if not request.accept_gap:
                raise KafkaLandingError(
                    f"`land kafka`: {table} has {name} up to offset {landed[key]}, and Kafka "
                    f"begins at {earliest}: it has removed {earliest - start[key]:,} messages "
                    "that were not landed. Nothing was landed. Fix: land them from a copy of the "
                    "topic, or go on without them: --accept-gap."
                )
            start[key] = earliest
    return start


def initial_offsets(ends: Ends, start: Offsets) -> Offsets:
    """The last offset before the first one to land, for each partition; it counts as landed.

    An empty partition has one too: its messages may be removed before they are landed.
    """
    return {key: (ends.earliest[key] if at == _EARLIEST else at) - 1 for key, at in start.items()}


def check_topics(request: Request, ends: Ends, landed: Landed, table: str) -> None:
    """Stop where a topic is not the one that was landed.

    Its offsets do not show it once it has as many messages as the former one had.

    Raises:
        KafkaLandingError: names the topic.
    """
    known = {topic for topic, _ in landed.topics}
    for topic, number in sorted(ends.topics - landed.topics):
        if topic in known and not request.accept_gap:
            last = max((at for key, at in landed.offsets.items() if key[0] == topic), default=0)
            raise KafkaLandingError(
                f"`land kafka`: the topic {topic} is not the one that {table} has up to offset "
                f"{last}: its id is {number}. It was recreated, or it is another cluster's. "
                "Nothing was landed. Fix: land it into another table; or, where it is a copy "
                "with the same offsets, go on behind the last one: --accept-gap."
            )


class _Writer:
    """Appends batches, and records the landed offsets."""

    def __init__(
        self,
        session: SparkSession,
        table: str,
        progress: str,
        table_format: str,
        recorded_at: str | None,
        landed: Landed,
    ) -> None:
        self._session, self._table, self._progress = session, table, progress
        self._format, self._recorded_at, self._landed = table_format, recorded_at, landed
        self._is_recorded = True
        self.count = 0

    def append(self, rows: DataFrame, end: Offsets) -> bool:
        """Append the messages before `end`, in one commit; False if there are none.

        Offsets are not messages: compaction removes some, and those of transactions' markers and of
        aborted transactions are never read. So the table's last offset may be smaller than the
        last one that was read, which is what is recorded.
        """
        reached = {key: until - 1 for key, until in end.items()}
        self._landed = replace(self._landed, offsets=offsets.merged(self._landed.offsets, reached))
        self._is_recorded = False
        if rows.isEmpty():
            return False
        at = next_recorded_at(Progress(self._recorded_at))
        marked = rows.withColumns(
            {"landed_at": F.lit(at).cast("timestamp"), "landing_batch": F.lit(at)}
        )
        append_once(
            self._session, self._table, marked, self._format, self._recorded_at, batch_column=_MARK
        )
        self._recorded_at = at
        self.record_rest()
        landed_at = F.lit(at).cast("timestamp")
        self.count += self._session.table(self._table).filter(F.col(_MARK) == landed_at).count()
        return True

    def record_rest(self) -> None:
        """Record the offsets of ranges without messages that no batch came after."""
        if not self._is_recorded:
            record_landed(
                self._session, self._progress, self._table, self._recorded_at, self._landed
            )
            self._is_recorded = True


def _read(session: SparkSession, request: Request, begin: Offsets, end: Offsets) -> DataFrame:
    """The messages from `begin` on and before `end`.

    Spark stops if Kafka has removed some of them meanwhile (`failOnDataLoss`), except before the
    first batch of a partition, which begins at the earliest offset at the time of its reading.
    """
    assigned: dict[str, list[int]] = {}
    for topic, partition in begin:
        assigned.setdefault(topic, []).append(partition)
    return (
        session.read.format("kafka")
        .option("kafka.bootstrap.servers", request.brokers)
        .options(**{f"kafka.{name}": value for name, value in request.options.items()})
        .option("assign", json.dumps(assigned))
        .option("startingOffsets", offsets.to_text(begin))
        .option("endingOffsets", offsets.to_text(end))
        .option("includeHeaders", "true")
        .load()
        .select(*[name for name in RAW_COLUMNS if name not in ("landed_at", "landing_batch")])
    )


def _create(session: SparkSession, table: str, table_format: str) -> None:
    columns = ", ".join(f"`{name}` {kind}" for name, kind in RAW_COLUMNS.items())
    session.sql(f"create table if not exists {table} ({columns}) {table_options(table_format)}")


def _ends(session: SparkSession, request: Request) -> Ends:
    """Query the cluster for the partitions and their offsets."""
    jvm = java(session)
    kafka = jvm.org.apache.kafka
    properties = jvm.java.util.Properties()
    for name, value in {**request.options, "bootstrap.servers": request.brokers}.items():
        properties.setProperty(name, value)
    try:
        admin = kafka.clients.admin.Admin.create(properties)
    except TypeError as error:  # Py4J takes an unknown class for a package
        raise KafkaLandingError(
            "`land kafka`: Spark's Kafka package is not there. Fix: run `afterimage land kafka`, "
            f"which fetches it, or add {PACKAGE}:{session.version} to `spark.jars.packages` in "
            "profiles.yml."
        ) from error
    try:
        topics = list(request.topics)
        if request.pattern is not None:
            pattern = jvm.java.util.regex.Pattern.compile(request.pattern)
            names = admin.listTopics().names().get()
            topics = sorted(name for name in names if pattern.matcher(name).matches())
        if not topics:
            raise KafkaLandingError(
                f"`land kafka`: no topic of {request.brokers} matches the pattern "
                f"{request.pattern!r}. Nothing was landed. Fix: correct the pattern."
            )
        described = admin.describeTopics(topics).allTopicNames().get()
        partitions = [
            (topic, partition.partition())
            for topic in topics
            for partition in described.get(topic).partitions()
        ]

        def offsets_at(spec: Any) -> dict[tuple[str, int], int]:
            wanted = jvm.java.util.HashMap()
            for topic, partition in partitions:
                wanted.put(kafka.common.TopicPartition(topic, partition), spec)
            answer = admin.listOffsets(wanted, options).all().get()
            return {
                (topic, partition): answer.get(
                    kafka.common.TopicPartition(topic, partition)
                ).offset()
                for topic, partition in partitions
            }

        # the end for a reader of committed messages lies before the first open transaction
        level = request.options.get("isolation.level", "read_uncommitted").upper()
        options = kafka.clients.admin.ListOffsetsOptions(kafka.common.IsolationLevel.valueOf(level))
        spec = kafka.clients.admin.OffsetSpec
        ids = {(topic, described.get(topic).topicId().toString()) for topic in topics}
        known = frozenset(pair for pair in ids if pair[1] != _NO_ID)
        return Ends(offsets_at(spec.earliest()), offsets_at(spec.latest()), known)
    finally:
        admin.close()
