"""Partitions, offsets and topic ids of a cluster by Kafka's own client, in Spark's JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbt_afterimage.ingest.kafka.request import (
    PACKAGE,
    Ends,
    KafkaLandingError,
    Request,
    invalid_pattern,
    no_such_topic,
    no_topic_matches,
    unreachable,
)
from dbt_afterimage.spark.session import java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Kafka's text for the id of a topic that has none.
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"


def ends(session: SparkSession, request: Request) -> Ends:
    """Query the cluster for the partitions and their offsets.

    Raises:
        KafkaLandingError: no topic matches the pattern, a topic does not exist, the cluster does
            not answer, or Kafka's client is missing.
    """
    from py4j.protocol import Py4JJavaError

    try:
        return _ends(session, request)
    except Py4JJavaError as error:
        # the future of a request wraps what went wrong
        cause = error.java_exception.getCause() or error.java_exception
        name, said = cause.getClass().getSimpleName(), cause.getMessage()
        if name in ("UnknownTopicOrPartitionException", "TopicAuthorizationException"):
            listed = ", ".join(request.topics) or str(request.pattern)
            raise no_such_topic(request, listed, said or name) from error
        if name == "PatternSyntaxException":
            raise invalid_pattern(request, str(said).splitlines()[0]) from error
        raise unreachable(request, f"{name}: {said}") from error


def _ends(session: SparkSession, request: Request) -> Ends:
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
            raise no_topic_matches(request)
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
        level = "READ_COMMITTED" if request.reads_committed else "READ_UNCOMMITTED"
        options = kafka.clients.admin.ListOffsetsOptions(kafka.common.IsolationLevel.valueOf(level))
        spec = kafka.clients.admin.OffsetSpec
        ids = {(topic, described.get(topic).topicId().toString()) for topic in topics}
        known = frozenset(pair for pair in ids if pair[1] != _NO_ID)
        return Ends(offsets_at(spec.earliest()), offsets_at(spec.latest()), known)
    finally:
        admin.close()
