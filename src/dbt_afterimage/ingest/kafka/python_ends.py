"""Partitions, offsets and topic ids of a cluster by a Python client, for Spark Connect.

A Connect session has no JVM in this process, so Kafka's own client is out of reach here.
"""

from __future__ import annotations

import base64
import re
from uuid import UUID

from dbt_afterimage.ingest.kafka.python_options import python_options
from dbt_afterimage.ingest.kafka.request import (
    Ends,
    KafkaLandingError,
    Request,
    invalid_pattern,
    no_such_topic,
    no_topic_matches,
    unreachable,
)

_NO_ID = UUID(int=0)


def ends(request: Request) -> Ends:
    """Query the cluster for the partitions and their offsets.

    Raises:
        KafkaLandingError: the client is not installed, an option has no counterpart in it, a topic
            does not exist, or the cluster does not answer.
    """
    try:
        from kafka.admin import KafkaAdminClient
        from kafka.errors import KafkaError
        from kafka.protocol.consumer.offsets import IsolationLevel, OffsetSpec
        from kafka.structs import TopicPartition
    except ImportError as error:
        raise KafkaLandingError(
            "`land kafka`: over Spark Connect (`spark.remote`) the offsets of the cluster are read "
            f"by the package kafka-python, which is missing: {error}. Nothing was landed. Fix: "
            "pip install 'dbt-afterimage[kafka]'"
        ) from error
    options = python_options(request.options)
    try:
        matches = re.compile(request.pattern or "").fullmatch
    except re.error as error:
        raise invalid_pattern(request, str(error)) from error
    try:
        admin = KafkaAdminClient(bootstrap_servers=request.brokers.split(","), **options)
        try:
            topics = list(request.topics)
            if request.pattern is not None:
                topics = sorted(name for name in admin.list_topics() if matches(name))
            if not topics:
                raise no_topic_matches(request)
            described = admin.describe_topics(topics)
            if request.pattern is not None:
                # Kafka's own client lists none of its internal topics
                described = [topic for topic in described if not topic.get("is_internal")]
                if not described:
                    raise no_topic_matches(request)
            for topic in described:
                if topic["error_code"]:
                    why = f"Kafka's error code {topic['error_code']}"
                    raise no_such_topic(request, topic["name"], why)
            partitions = [
                TopicPartition(topic["name"], partition["partition_index"])
                for topic in described
                for partition in topic["partitions"]
            ]
            level = IsolationLevel(1 if request.reads_committed else 0)

            def offsets_at(spec: int) -> dict[tuple[str, int], int]:
                found = admin.list_partition_offsets(dict.fromkeys(partitions, spec), level)
                return {(key.topic, key.partition): at.offset for key, at in found.items()}

            earliest, latest = offsets_at(OffsetSpec.EARLIEST), offsets_at(OffsetSpec.LATEST)
        finally:
            admin.close()
    except KafkaError as error:
        raise unreachable(request, str(error)) from error
    ids = {topic["name"]: UUID(str(topic.get("topic_id") or _NO_ID)) for topic in described}
    known = frozenset((name, topic_id(number)) for name, number in ids.items() if number != _NO_ID)
    return Ends(earliest, latest, known)


def topic_id(number: UUID) -> str:
    """An id of a topic as Kafka's own client writes it: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(number.bytes).decode().rstrip("=")
