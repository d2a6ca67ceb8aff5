"""Copies messages of a Kafka cluster into a raw table, as they are, each of them once.

The raw table is its own checkpoint: up to where it was landed stands in the table of progress, and
what a killed run did not note there is read from the rows themselves. A batch is one commit, so a
message is in the table, or it is still to be landed. The checkpoint of Spark's query is thrown
away: it cannot say anything that the table does not know better.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from dbt_afterimage.ingest.kafka.batches import in_order
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
        max_messages: land so many at most; None for all that are there.
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
        report: is told how far it is, in a line of text.

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
    noted = read_progress(session, progress, table)
    stored = session.table(table)
    done = recover_progress(stored, noted, mark=_MARK)
    known = read_landed(session, progress, table, noted.recorded_at)
    landed = known.offsets
    if done != noted:
        landed = offsets.merged(
            landed, offsets.last_offsets(rows_after_progress(stored, noted, _MARK))
        )
    ends = _ends(session, request)
    check_topics(request, ends, Landed(landed, known.topics), table)
    start = starting_offsets(request, ends, landed, table)
    begun = Landed(offsets.merged(landed, begun_offsets(ends, start)), known.topics | ends.topics)
    if begun != Landed(landed, known.topics):
        record_landed(session, progress, table, done.recorded_at, begun)
    counts = {
        place: ends.latest[place] - (ends.earliest[place] if at == _EARLIEST else at)
        for place, at in start.items()
    }
    wanted = sum(counts.values())
    if request.max_messages is not None:
        wanted = min(wanted, request.max_messages)
    if not wanted:
        report(f"Nothing new for {table}")
        return 0
    writer = _Writer(session, table, progress, table_format, done.recorded_at, begun)
    *few, rest = in_order(start, counts, min(BATCH, request.max_messages or BATCH))
    for part in few:
        _run(session, request, part, None, writer, wanted, report)
    most = None if request.max_messages is None else request.max_messages - writer.count
    if most is None or most > 0:
        _run(session, request, rest, most, writer, wanted, report)
    return writer.count


def starting_offsets(
    request: Request, ends: Ends, landed: Offsets, table: str
) -> dict[tuple[str, int], int]:
    """The first offset to land of each partition; -2 is its earliest one.

    A partition that a topic gains begins there whatever was asked: what it has came since.

    Raises:
        KafkaLandingError: Kafka lacks messages behind those that were landed.
    """
    start = {}
    begun = {topic for topic, _ in landed}
    for place, earliest in ends.earliest.items():
        name = f"{place[0]}-{place[1]}"
        if place not in landed:
            is_from_end = request.starting == "latest" and place[0] not in begun
            start[place] = ends.latest[place] if is_from_end else _EARLIEST
            continue
        start[place] = landed[place] + 1
        if start[place] > ends.latest[place]:
            raise KafkaLandingError(
                f"`land kafka`: {table} has {name} up to offset {landed[place]}, and Kafka's last "
                f"one is {ends.latest[place] - 1}. The topic was recreated, or it is another "
                "cluster's. Nothing was landed. Fix: land it into another table."
            )
        if start[place] < earliest:
            if not request.accept_gap:
                raise KafkaLandingError(
                    f"`land kafka`: {table} has {name} up to offset {landed[place]}, and Kafka "
                    f"begins at {earliest}: it has removed {earliest - start[place]:,} messages "
                    "that were not landed. Nothing was landed. Fix: land them from a copy of the "
                    "topic, or go on without them: --accept-gap."
                )
            start[place] = earliest
    return start


def begun_offsets(ends: Ends, start: Offsets) -> Offsets:
    """What counts as landed where nothing is: all that is in front of the first offset to land.

    It is noted of a partition that has nothing yet, too: what comes may be removed unlanded.
    """
    return {
        place: (ends.earliest[place] if at == _EARLIEST else at) - 1 for place, at in start.items()
    }


def check_topics(request: Request, ends: Ends, landed: Landed, table: str) -> None:
    """Stop where a topic is not the one that was landed.

    Its offsets do not show it once it has as many messages as the former one had.

    Raises:
        KafkaLandingError: names the topic.
    """
    known = {topic for topic, _ in landed.topics}
    for topic, number in sorted(ends.topics - landed.topics):
        if topic in known and not request.accept_gap:
            last = max((at for place, at in landed.offsets.items() if place[0] == topic), default=0)
            raise KafkaLandingError(
                f"`land kafka`: the topic {topic} is not the one that {table} has up to offset "
                f"{last}: its id is {number}. It was recreated, or it is another cluster's. "
                "Nothing was landed. Fix: land it into another table; or, where it is a copy "
                "with the same offsets, go on behind the last one: --accept-gap."
            )


class _Writer:
    """Appends batches, and notes up to where it has come."""

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
        self.count = 0
        self.batches = 0

    def append(self, rows: DataFrame) -> None:
        """Append one batch, in one commit."""
        if rows.isEmpty():
            return
        at = next_recorded_at(Progress(self._recorded_at))
        marked = rows.withColumns(
            {"landed_at": F.lit(at).cast("timestamp"), "landing_batch": F.lit(at)}
        )
        append_once(
            self._session, self._table, marked, self._format, self._recorded_at, batch_column=_MARK
        )
        found = self._session.table(self._table).filter(F.col(_MARK) == F.lit(at).cast("timestamp"))
        last = (
            found.groupBy("topic", "partition")
            .agg(F.max("offset").alias("offset"), F.count(F.lit(1)).alias("messages"))
            .collect()
        )
        reached = offsets.merged(self._landed.offsets, offsets.of_rows(last))
        self._landed, self._recorded_at = replace(self._landed, offsets=reached), at
        record_landed(self._session, self._progress, self._table, at, self._landed)
        self.count += sum(row["messages"] for row in last)
        self.batches += 1


def _run(
    session: SparkSession,
    request: Request,
    start: Offsets,
    most: int | None,
    writer: _Writer,
    wanted: int,
    report: Callable[[str], None],
) -> None:
    size = min(BATCH, most or BATCH)
    batches = None if most is None else writer.batches + most // size
    assigned: dict[str, list[int]] = {}
    for topic, partition in start:
        assigned.setdefault(topic, []).append(partition)
    stream = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", request.brokers)
        .options(**{f"kafka.{name}": value for name, value in request.options.items()})
        .option("assign", json.dumps(assigned))
        .option("startingOffsets", offsets.to_text(start))
        .option("includeHeaders", "true")
        .option("maxOffsetsPerTrigger", str(size))
        .load()
        .select(*[name for name in RAW_COLUMNS if name not in ("landed_at", "landing_batch")])
    )
    failures: list[BaseException] = []
    is_enough = False

    def append(rows: DataFrame, _: int) -> None:
        nonlocal is_enough
        if is_enough:
            return
        try:
            writer.append(rows)
        except BaseException as error:
            failures.append(error)
            raise
        report(f"{writer.count:,} of {wanted:,} messages landed")
        is_enough = batches is not None and writer.batches >= batches

    with tempfile.TemporaryDirectory(prefix="afterimage_land_") as checkpoint:
        query = (
            stream.writeStream.foreachBatch(append)
            .option("checkpointLocation", f"file://{checkpoint}")
            .trigger(availableNow=True)
            .start()
        )
        try:
            while not query.awaitTermination(1):
                if is_enough:
                    query.stop()
        except Exception:
            if failures:
                raise failures[0] from None
            raise
        finally:
            query.stop()


def _create(session: SparkSession, table: str, table_format: str) -> None:
    columns = ", ".join(f"`{name}` {kind}" for name, kind in RAW_COLUMNS.items())
    session.sql(f"create table if not exists {table} ({columns}) {table_options(table_format)}")


def _ends(session: SparkSession, request: Request) -> Ends:
    """Ask the cluster which partitions there are, and what they hold."""
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
        places = [
            (topic, partition.partition())
            for topic in topics
            for partition in described.get(topic).partitions()
        ]

        def ask(spec: Any) -> dict[tuple[str, int], int]:
            wanted = jvm.java.util.HashMap()
            for topic, partition in places:
                wanted.put(kafka.common.TopicPartition(topic, partition), spec)
            answer = admin.listOffsets(wanted).all().get()
            return {
                (topic, partition): answer.get(
                    kafka.common.TopicPartition(topic, partition)
                ).offset()
                for topic, partition in places
            }

        spec = kafka.clients.admin.OffsetSpec
        ids = {(topic, described.get(topic).topicId().toString()) for topic in topics}
        known = frozenset(pair for pair in ids if pair[1] != _NO_ID)
        return Ends(ask(spec.earliest()), ask(spec.latest()), known)
    finally:
        admin.close()
