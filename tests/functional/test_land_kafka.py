"""Landing of messages from a real broker: each message once, whatever happens in between."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from afterimage_demo.broker import Broker, send
from dbt_afterimage.ingest.kafka import java_ends, python_ends
from dbt_afterimage.ingest.kafka.request import KafkaLandingError, Request
from tests.functional.dbt_project import DbtProject
from tests.functional.killed_landing import SCHEMA, arguments
from tests.functional.messages_project import write_project
from tests.functional.runs import Runs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def produce(
    spark: SparkSession,
    broker: Broker,
    topic: str,
    first: int,
    count: int,
    partition: str = "id % 3",
) -> None:
    """Send numbered messages; the number is key and value, every fourth value is NULL."""
    rows = spark.range(first, first + count).selectExpr(
        f"'{topic}' as topic",
        "cast(id as string) as key",
        "if(id % 4 = 3, null, cast(concat('value ', id) as binary)) as value",
        f"cast({partition} as int) as partition",
        "if(id % 2 = 0, array(named_struct('key', 'table', 'value', cast('carts' as binary))), "
        "null) as headers",
    )
    send(rows.coalesce(1), broker.address, includeHeaders="true")


@contextmanager
def admin(spark: SparkSession, broker: Broker) -> Iterator[Any]:
    """Kafka's client for what is done to topics, and its packages."""
    jvm: Any = spark.sparkContext._jvm
    kafka = jvm.org.apache.kafka
    properties = jvm.java.util.Properties()
    properties.setProperty("bootstrap.servers", broker.address)
    client = kafka.clients.admin.Admin.create(properties)
    try:
        yield client, kafka
    finally:
        client.close()


def remove(spark: SparkSession, broker: Broker, topic: str, partition: int, before: int) -> None:
    """Remove messages, as retention does."""
    context: Any = spark.sparkContext
    jvm, gateway = context._jvm, context._gateway
    with admin(spark, broker) as (client, kafka):
        # Py4J does not find a static method beside another one of its name
        loader = client.getClass().getClassLoader()
        types, values = gateway.new_array(jvm.Class, 1), gateway.new_array(jvm.Object, 1)
        types[0], values[0] = jvm.Long.TYPE, jvm.Long.valueOf(before)
        until = (
            loader.loadClass("org.apache.kafka.clients.admin.RecordsToDelete")
            .getMethod("beforeOffset", types)
            .invoke(None, values)
        )
        client.deleteRecords({kafka.common.TopicPartition(topic, partition): until}).all().get()


def abort(spark: SparkSession, broker: Broker, topic: str, count: int) -> None:
    """Send messages to partition 0 in a transaction that is aborted: `count` + 1 offsets."""
    jvm: Any = spark.sparkContext._jvm
    kafka = jvm.org.apache.kafka
    properties = jvm.java.util.Properties()
    properties.setProperty("bootstrap.servers", broker.address)
    properties.setProperty("transactional.id", topic)
    text = kafka.common.serialization.StringSerializer
    producer = kafka.clients.producer.KafkaProducer(properties, text(), text())
    try:
        producer.initTransactions()
        producer.beginTransaction()
        for number in range(count):
            message = kafka.clients.producer.ProducerRecord(topic, 0, f"{number}", "aborted")
            producer.send(message).get()
        producer.abortTransaction()
    finally:
        producer.close()


@pytest.fixture(scope="module")
def project(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> DbtProject:
    folder = tmp_path_factory.mktemp("landing")
    write_project(folder, {"raw_kafka": {}}, {})
    return make_dbt_project(folder, schema=SCHEMA)


def land(project: DbtProject, broker: Broker, **request: Any) -> None:
    project("run-operation", "land_kafka", "--args", arguments(broker.address, **request))


def landed(spark: SparkSession, topic: str) -> list[tuple[Any, ...]]:
    """Counts: rows, places, offsets that would be there without a gap, batches."""
    [row] = spark.sql(
        "select count(*), count(distinct topic, partition, offset), "
        "(select sum(last + 1) from (select max(offset) as last from raw_kafka.messages "
        f"where topic = '{topic}' group by partition) as ends), count(distinct landing_batch) "
        f"from raw_kafka.messages where topic = '{topic}'"
    ).collect()
    return [tuple(row)]


def numbers(spark: SparkSession, topic: str) -> list[int]:
    """The numbers of the messages of a topic that were landed."""
    rows = spark.sql(
        "select cast(cast(key as string) as int) from raw_kafka.messages "
        f"where topic = '{topic}' order by 1"
    ).collect()
    return [row[0] for row in rows]


def test_each_message_is_landed_once_as_it_is(
    project: DbtProject, spark: SparkSession, broker: Broker
) -> None:
    produce(spark, broker, "shop.visits", 0, 900)
    produce(spark, broker, "shop.clicks", 0, 3)
    land(project, broker, topics=["shop.visits"])
    assert landed(spark, "shop.visits") == [(900, 900, 900, 1)]
    rows = spark.sql(
        "select partition, offset, cast(key as string), cast(value as string), "
        "transform(headers, h -> concat(h.key, '=', cast(h.value as string))), "
        "timestamp is not null, landing_batch = date_format(landed_at, "
        "\"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\") from raw_kafka.messages where cast(key as string) "
        "in ('5', '6', '7') order by key"
    ).collect()
    assert [tuple(row) for row in rows] == [
        (2, 1, "5", "value 5", None, True, True),
        (0, 2, "6", "value 6", ["table=carts"], True, True),
        (1, 2, "7", None, None, True, True),
    ]

    # nothing new: nothing is written
    count = f"select count(*) from {SCHEMA}.afterimage_progress"
    before = spark.sql(count).collect()
    land(project, broker, topics=["shop.visits"])
    assert landed(spark, "shop.visits") == [(900, 900, 900, 1)]
    assert spark.sql(count).collect() == before

    # up to 100 messages; then the rest, and another topic
    produce(spark, broker, "shop.visits", 900, 300)
    land(project, broker, topics=["shop.visits"], max_messages=100)
    [(rows_so_far, *_)] = landed(spark, "shop.visits")
    assert 900 < rows_so_far <= 1000
    land(project, broker, pattern=r"shop\..*")
    assert landed(spark, "shop.visits")[0][:3] == (1200, 1200, 1200)
    assert landed(spark, "shop.clicks") == [(3, 3, 3, 1)]


@pytest.mark.nightly
def test_a_topic_with_few_messages_is_landed_first(
    project: DbtProject, spark: SparkSession, broker: Broker
) -> None:
    """Data in parts, and the metadata that it cannot be read without."""
    produce(spark, broker, "shop.bills", 0, 900)
    produce(spark, broker, "shop.bills_metadata", 0, 12)
    both = ["shop.bills", "shop.bills_metadata"]
    land(project, broker, topics=both, max_messages=90)
    assert landed(spark, "shop.bills_metadata") == [(12, 12, 12, 1)]
    [(rows, *_)] = landed(spark, "shop.bills")
    assert 60 < rows <= 78
    land(project, broker, topics=both)
    assert landed(spark, "shop.bills")[0][:3] == (900, 900, 900)


@pytest.mark.nightly
def test_a_batch_without_progress_is_not_landed_twice(
    project: DbtProject, spark: SparkSession, broker: Broker
) -> None:
    """A run that was killed between its append and its note."""
    produce(spark, broker, "shop.returns", 0, 30)
    land(project, broker, topics=["shop.returns"])
    progress = f"{SCHEMA}.afterimage_progress"
    spark.sql(f"delete from {progress} where arrival like '%shop.returns%'")
    land(project, broker, topics=["shop.returns"])
    assert landed(spark, "shop.returns") == [(30, 30, 30, 1)]


@pytest.mark.nightly
def test_latest_is_decided_once(project: DbtProject, spark: SparkSession, broker: Broker) -> None:
    """At the first landing that sees the topic, although it lands nothing of it."""
    topic = "shop.reviews"
    produce(spark, broker, topic, 0, 30)
    land(project, broker, topics=[topic], starting="latest")
    assert landed(spark, topic) == [(0, 0, None, 0)]
    produce(spark, broker, topic, 30, 6)
    land(project, broker, topics=[topic], starting="latest")
    assert numbers(spark, topic) == [30, 31, 32, 33, 34, 35]

    # a partition more: all of it came later than the decision
    with admin(spark, broker) as (client, kafka):
        more = {topic: kafka.clients.admin.NewPartitions.increaseTo(4)}
        client.createPartitions(more).all().get()
    produce(spark, broker, topic, 36, 3, partition="3")
    land(project, broker, topics=[topic], starting="latest")
    assert numbers(spark, topic) == [30, 31, 32, 33, 34, 35, 36, 37, 38]


@pytest.mark.nightly
def test_an_accepted_gap_is_accepted_once(
    project: DbtProject, spark: SparkSession, broker: Broker
) -> None:
    """Nothing comes in the emptied partition."""
    topic = "shop.refunds"
    produce(spark, broker, topic, 0, 30)
    land(project, broker, topics=[topic])
    produce(spark, broker, topic, 30, 30)
    remove(spark, broker, topic, partition=2, before=20)
    given = arguments(broker.address, topics=[topic])
    message = project.error_of("run-operation", "land_kafka", "--args", given)
    assert f"{topic}-2 up to offset 9" in message and "begins at 20" in message
    land(project, broker, topics=[topic], accept_gap=True)
    land(project, broker, topics=[topic])
    wanted = [number for number in range(60) if number < 30 or number % 3 != 2]
    assert numbers(spark, topic) == wanted
    produce(spark, broker, topic, 60, 3)
    land(project, broker, topics=[topic])
    assert numbers(spark, topic) == [*wanted, 60, 61, 62]


@pytest.mark.nightly
def test_offsets_without_messages_are_read_once(
    project: DbtProject, spark: SparkSession, broker: Broker
) -> None:
    """Aborted transactions: a range of them is empty, and the last offset has no message."""
    topic = "shop.drafts"
    committed = {"topics": [topic], "options": {"isolation.level": "read_committed"}}
    abort(spark, broker, topic, 6)
    produce(spark, broker, topic, 0, 3, partition="0")
    abort(spark, broker, topic, 2)
    # offsets 0 to 6 are aborted, 7 to 9 are messages, 10 to 12 are aborted
    land(project, broker, max_messages=2, **committed)
    assert numbers(spark, topic) == [0]
    land(project, broker, **committed)
    assert numbers(spark, topic) == [0, 1, 2]
    # Kafka removes all of them: no message is lost
    remove(spark, broker, topic, partition=0, before=-1)
    produce(spark, broker, topic, 3, 1, partition="0")
    land(project, broker, **committed)
    assert numbers(spark, topic) == [0, 1, 2, 3]


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_the_python_client_reads_what_kafkas_own_client_reads(
    spark: SparkSession, broker: Broker, level: str
) -> None:
    """Offsets and ids of topics: a landing may go on over Spark Connect."""
    topic = f"hall.{level}"
    abort(spark, broker, topic, 2)
    produce(spark, broker, topic, 0, 9)
    remove(spark, broker, topic, partition=1, before=2)
    request = Request(broker.address, pattern=rf"hall\.{level}", options={"isolation.level": level})
    found = python_ends.ends(request)
    assert found == java_ends.ends(spark, request)
    assert found.earliest == {(topic, 0): 0, (topic, 1): 2, (topic, 2): 0}
    assert [name for name, _ in found.topics] == [topic]


def test_a_topic_that_was_recreated_is_refused(
    project: DbtProject, spark: SparkSession, broker: Broker
) -> None:
    produce(spark, broker, "shop.wishes", 0, 6)
    land(project, broker, topics=["shop.wishes"])
    spark.sql("update raw_kafka.messages set offset = 1000 + offset where topic = 'shop.wishes'")
    progress = f"{SCHEMA}.afterimage_progress"
    spark.sql(f"delete from {progress} where arrival like '%shop.wishes%'")
    given = arguments(broker.address, topics=["shop.wishes"])
    message = project.error_of("run-operation", "land_kafka", "--args", given)
    assert "shop.wishes-0 up to offset 1001, and Kafka's last one is 1" in message
    assert "Fix: land it into another table" in message
    spark.sql("delete from raw_kafka.messages where topic = 'shop.wishes'")


def test_a_topic_that_was_recreated_is_recognized_by_its_id(
    project: DbtProject, spark: SparkSession, broker: Broker
) -> None:
    """It has more messages than were landed of the former one."""
    topic = "shop.stocks"
    produce(spark, broker, topic, 0, 6)
    land(project, broker, topics=[topic])
    with admin(spark, broker) as (client, _):
        client.deleteTopics([topic]).all().get()
    produce(spark, broker, topic, 100, 30)
    given = arguments(broker.address, topics=[topic])
    message = project.error_of("run-operation", "land_kafka", "--args", given)
    assert f"the topic {topic} is not the one" in message and "up to offset 1" in message
    assert numbers(spark, topic) == [0, 1, 2, 3, 4, 5]
    # as a mirror with the same offsets would be
    land(project, broker, topics=[topic], accept_gap=True)
    assert numbers(spark, topic) == [0, 1, 2, 3, 4, 5, *range(106, 130)]
    land(project, broker, topics=[topic])


def test_a_topic_that_is_not_there_is_named(project: DbtProject, broker: Broker) -> None:
    given = arguments(broker.address, pattern="none.*")
    message = project.error_of("run-operation", "land_kafka", "--args", given)
    assert "no topic of" in message and "'none.*'" in message
    message = project.error_of(
        "run-operation", "land_kafka", "--args", arguments(broker.address, topics=["none"])
    )
    assert f"{broker.address} has no topic 'none' that this client may read" in message
    request = Request(broker.address, topics=["none"])
    with pytest.raises(KafkaLandingError, match="has no topic 'none' that this client may read"):
        python_ends.ends(request)


@pytest.mark.nightly
def test_a_killed_landing_is_repeated(
    project: DbtProject,
    spark: SparkSession,
    broker: Broker,
    runs: Runs,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """By hand: --landing-kills 20, during 200,000 messages."""
    kills = request.config.getoption("--landing-kills")
    count = 10_000 * kills
    produce(spark, broker, "shop.orders", 0, count)
    moments = random.Random(7)
    for number in range(kills + 1):
        scratch, most = tmp_path / f"run_{number}", count // (6 * kills)
        given = [project.path, runs.profiles, runs.table_format, scratch, broker.address]
        process = runs.spawn(
            "tests.functional.killed_landing", *map(str, given), "shop.orders", str(most)
        )
        if number < kills:
            runs.kill_after(process, moments.uniform(1, 7))
        else:
            runs.wait_until_started(process)
            runs.finish(process)
    assert landed_offsets(runs, tmp_path) == (count, count, count)


def landed_offsets(runs: Runs, folder: Path) -> tuple[int, int, int]:
    """Rows, places, and offsets up to the last one, without Spark: it is another warehouse."""
    import pyarrow.compute as pc
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{runs.warehouse}/catalog.db", warehouse=str(folder)
    )
    table = catalog.load_table("raw_kafka.messages").scan().to_arrow()
    places = {
        (partition, offset)
        for partition, offset in zip(
            table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True
        )
    }
    ends = [
        pc.max(table.filter(pc.equal(table["partition"], partition))["offset"]).as_py() + 1
        for partition in range(3)
    ]
    return table.num_rows, len(places), sum(ends)
