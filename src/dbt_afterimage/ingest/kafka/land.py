"""Copies messages of a Kafka cluster into a raw table, as they are, each of them once.

The raw table is its own checkpoint: the progress table stores the landed offsets of each partition,
and those that a killed run did not record are read from the rows themselves. Each batch is a Spark
batch query over a range of offsets, and one commit: a message is in the table, or still to be
landed. Nothing runs in a callback of Spark's driver, so the query works on a cluster too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.ingest.kafka import java_ends, python_ends
from dbt_afterimage.ingest.kafka.batches import in_order, shares
from dbt_afterimage.ingest.kafka.landed import Landed, read_landed, record_landed
from dbt_afterimage.ingest.kafka.request import PACKAGE, Ends, KafkaLandingError, Request
from dbt_afterimage.sources.qlik_messages import offsets
from dbt_afterimage.sources.qlik_messages.message_columns import RAW_COLUMNS
from dbt_afterimage.sources.qlik_messages.offsets import Offsets
from dbt_afterimage.spark.session import is_remote
from dbt_afterimage.storage.append import append_once
from dbt_afterimage.storage.create import table_options
from dbt_afterimage.storage.progress import (
    Progress,
    next_recorded_at,
    read_progress,
    recover_progress,
    rows_after_progress,
)

BATCH = 1_000_000
_MARK = "landed_at"
# Kafka's and Spark's own name for the first offset that a partition has.
_EARLIEST = -2


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
        session: the live Spark session, with Spark's Kafka package; classic or Spark Connect.

    Returns:
        The number of messages.

    Raises:
        KafkaLandingError: the topics are not there, Kafka lacks what was not landed yet, or Spark
            lacks its Kafka package.
        ConcurrentRunError: another run landed into the same table meanwhile.
    """
    check_source(session)
    _create(session, table, table_format)
    recorded = read_progress(session, progress, table)
    stored = session.table(table)
    done = recover_progress(stored, recorded, mark=_MARK)
    landed = read_landed(session, progress, table)
    if done != recorded:
        unrecorded = offsets.last_offsets(rows_after_progress(stored, recorded, _MARK))
        landed = replace(landed, offsets=offsets.merged(landed.offsets, unrecorded))
    ends = python_ends.ends(request) if is_remote(session) else java_ends.ends(session, request)
    check_topics(request, ends, landed, table)
    start = starting_offsets(request, ends, landed.offsets, table)
    before = initial_offsets(ends, start)
    first = Landed(offsets.merged(landed.offsets, before), landed.topics | ends.topics)
    if first != landed:
        record_landed(session, progress, table, done.recorded_at, first)
    position = {key: offset + 1 for key, offset in before.items()}
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


def check_source(session: SparkSession) -> None:
    """Stop if Spark has no data source for Kafka.

    Raises:
        KafkaLandingError: names the package, and where to add it.
    """
    source = session.read.format("kafka").options(subscribe="none")
    try:
        # reads no broker: the columns of the source are always the same
        _ = source.option("kafka.bootstrap.servers", "localhost:9092").load().columns
    except Exception as error:
        if "data source: kafka" not in str(error):
            raise
        where = "of the server's target" if is_remote(session) else "of the target"
        raise KafkaLandingError(
            "`land kafka`: Spark's Kafka package is not there. Nothing was landed. Fix: add "
            f"{PACKAGE}:{session.version} to `spark.jars.packages` {where} in profiles.yml."
        ) from error


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
            uncommitted = (
                " Or earlier landings read uncommitted messages: then wait until their "
                "transaction ends, or leave `isolation.level` out."
            )
            raise KafkaLandingError(
                f"`land kafka`: {table} has {name} up to offset {landed[key]}, and Kafka's last "
                f"one is {ends.latest[key] - 1}. The topic was recreated, or it is another "
                "cluster's. Nothing was landed. Fix: land it into another table."
                f"{uncommitted if request.reads_committed else ''}"
            )
        if start[key] < earliest:
            if not request.accept_gap:
                raise KafkaLandingError(
                    f"`land kafka`: {table} has {name} up to offset {landed[key]}, and Kafka "
                    f"begins at {earliest}: it has removed {earliest - start[key]:,} messages "
                    "that were not landed. Nothing was landed. Fix: land them from a copy of the "
                    "topic, or continue without them: --accept-gap."
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
                "with the same offsets, continue after the last one: --accept-gap."
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
