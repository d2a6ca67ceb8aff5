"""Topics to land from a Kafka cluster, and their offsets in the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dbt_afterimage.sources.qlik_messages.offsets import Offsets

PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13"
"""Spark's data source for Kafka; its version is Spark's."""

Topics = frozenset[tuple[str, str]]
"""(topic, its id): the cluster gives a topic that is recreated another id."""


class KafkaLandingError(ValueError):
    """Messages cannot be landed as requested; the text is meant for the user."""


@dataclass(frozen=True)
class Request:
    """A request to land topics.

    Attributes:
        brokers: `bootstrap.servers`, such as `localhost:9092`.
        topics: names of topics; empty where `pattern` is given.
        pattern: a regular expression for the whole name of a topic; None with `topics`.
        starting: `earliest` or `latest`: where to begin in a topic that was never landed.
        options: further options of the client, by Kafka's own names.
        max_messages: land up to this many; None for all messages that are there.
        accept_gap: continue where Kafka has removed messages that were not landed, or where a topic
            has another id.
    """

    brokers: str
    topics: Sequence[str] = ()
    pattern: str | None = None
    starting: str = "earliest"
    options: Mapping[str, str] = field(default_factory=dict)
    max_messages: int | None = None
    accept_gap: bool = False

    @property
    def reads_committed(self) -> bool:
        """Whether only messages of committed transactions are read; Kafka's default is all."""
        return self.options.get("isolation.level", "").lower() == "read_committed"


@dataclass(frozen=True)
class Ends:
    """The offsets of the cluster.

    Attributes:
        earliest: the first offset of each partition.
        latest: the offset after the last one that can be read.
        topics: names and ids; empty where the cluster is so old that it gives none.
    """

    earliest: Offsets
    latest: Offsets
    topics: Topics = frozenset()


def no_such_topic(request: Request, topic: str, why: str) -> KafkaLandingError:
    """The error for a topic that the cluster does not show to this client."""
    return KafkaLandingError(
        f"`land kafka`: {request.brokers} has no topic {topic!r} that this client may read "
        f"({why}). Nothing was landed. Fix: correct the name, or grant DESCRIBE and READ on the "
        "topic."
    )


def unreachable(request: Request, why: str) -> KafkaLandingError:
    """The error for a cluster that does not answer as it should."""
    return KafkaLandingError(
        f"`land kafka`: {request.brokers} cannot be read from this machine: {why}. Nothing was "
        "landed. Fix: correct --brokers and the client options; on a cluster and over Spark "
        "Connect, this machine and the executors must both reach the brokers."
    )


def invalid_pattern(request: Request, why: str) -> KafkaLandingError:
    """The error for a pattern that is not a regular expression."""
    return KafkaLandingError(
        f"`land kafka`: the pattern {request.pattern!r} is not a regular expression: {why}. "
        "Nothing was landed. Fix: correct the pattern, such as 'shop[.].*' for all topics that "
        "begin with `shop.`."
    )


def no_topic_matches(request: Request) -> KafkaLandingError:
    """The error for a pattern without topics."""
    return KafkaLandingError(
        f"`land kafka`: no topic of {request.brokers} matches the pattern "
        f"{request.pattern!r}. Nothing was landed. Fix: correct the pattern."
    )
