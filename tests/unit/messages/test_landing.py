"""Where a landing begins, and the options of Kafka's client."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dbt_afterimage.ingest.kafka.batches import in_order, shares
from dbt_afterimage.ingest.kafka.client_options import OptionError, client_options
from dbt_afterimage.ingest.kafka.land import check_topics, initial_offsets, starting_offsets
from dbt_afterimage.ingest.kafka.landed import Landed
from dbt_afterimage.ingest.kafka.python_ends import ends
from dbt_afterimage.ingest.kafka.request import Ends, KafkaLandingError, Request

REQUEST = Request("localhost:9092", ["carts"], None, "earliest", {}, None, False)
ENDS = Ends({("carts", 0): 100, ("carts", 1): 0}, {("carts", 0): 200, ("carts", 1): 50})


def test_a_partition_begins_behind_what_was_landed() -> None:
    landed = {("carts", 0): 149}
    assert starting_offsets(REQUEST, ENDS, landed, "raw.messages") == {
        ("carts", 0): 150,
        ("carts", 1): -2,
    }


def test_latest_is_the_end_that_a_new_topic_has_now() -> None:
    latest = replace(REQUEST, starting="latest")
    assert starting_offsets(latest, ENDS, {("visits", 0): 5}, "raw.messages") == {
        ("carts", 0): 200,
        ("carts", 1): 50,
    }


def test_a_partition_that_a_topic_gains_begins_at_its_first_message() -> None:
    """All of its messages came later than the decision where its topic begins."""
    latest = replace(REQUEST, starting="latest")
    start = starting_offsets(latest, ENDS, {("carts", 0): 149}, "raw.messages")
    assert start[("carts", 1)] == -2


def test_a_partition_that_was_empty_is_recorded_too() -> None:
    """What comes to it and is removed before the next landing is noticed then."""
    ends = Ends({("carts", 0): 100, ("carts", 1): 0}, {("carts", 0): 200, ("carts", 1): 0})
    start = starting_offsets(REQUEST, ends, {}, "raw.messages")
    recorded = initial_offsets(ends, start)
    assert recorded == {("carts", 0): 99, ("carts", 1): -1}
    later = Ends({("carts", 0): 100, ("carts", 1): 40}, {("carts", 0): 200, ("carts", 1): 50})
    with pytest.raises(KafkaLandingError, match="it has removed 40 messages"):
        starting_offsets(REQUEST, later, recorded, "raw.messages")


def test_messages_that_kafka_has_removed_stop_the_landing() -> None:
    landed = {("carts", 0): 89}
    with pytest.raises(KafkaLandingError) as refused:
        starting_offsets(REQUEST, ENDS, landed, "raw.messages")
    assert "removed 10 messages that were not landed" in str(refused.value)
    assert "--accept-gap" in str(refused.value)
    accepted = replace(REQUEST, accept_gap=True)
    assert starting_offsets(accepted, ENDS, landed, "raw.messages")[("carts", 0)] == 100


def test_a_topic_that_was_recreated_is_refused() -> None:
    with pytest.raises(KafkaLandingError, match="The topic was recreated"):
        starting_offsets(REQUEST, ENDS, {("carts", 0): 200}, "raw.messages")


def test_a_topic_with_another_id_is_refused() -> None:
    """Recreated it may have more messages than were landed."""
    ends = replace(ENDS, topics=frozenset({("carts", "new"), ("visits", "v")}))
    landed = Landed({("carts", 0): 149}, frozenset({("carts", "old")}))
    with pytest.raises(KafkaLandingError) as refused:
        check_topics(REQUEST, ends, landed, "raw.messages")
    assert "the topic carts is not the one that raw.messages has up to offset 149" in str(
        refused.value
    )
    check_topics(replace(REQUEST, accept_gap=True), ends, landed, "raw.messages")
    # an accepted id is kept with the former one; what was landed before ids were recorded has none
    both = replace(landed, topics=landed.topics | ends.topics)
    check_topics(REQUEST, ends, both, "raw.messages")
    check_topics(REQUEST, ends, replace(landed, topics=frozenset()), "raw.messages")


def test_topics_with_few_messages_are_landed_first() -> None:
    """Otherwise each partition has a share of a batch by its size."""
    start = {("data", 0): 7, ("data", 1): -2, ("metadata", 0): 3}
    counts = {("data", 0): 10, ("data", 1): 90, ("metadata", 0): 30}
    # each topic may have half of a batch
    assert in_order(start, counts, 60) == [
        {("metadata", 0): 3},
        {("data", 0): 7, ("data", 1): -2},
    ]
    assert in_order(start, counts, 59) == [start]
    # a topic without messages takes no share
    idle = {("idle", 0): 5}
    assert in_order({**start, **idle}, {**counts, ("idle", 0): 0}, 60) == [
        {("metadata", 0): 3},
        {("data", 0): 7, ("data", 1): -2, **idle},
    ]
    # one batch holds them all
    assert in_order(start, counts, 130) == [start]
    assert in_order(start, counts, 129) == in_order(start, counts, 60)


def test_each_partition_has_its_share_of_a_batch() -> None:
    counts = {("data", 0): 10, ("data", 1): 90, ("data", 2): 0}
    assert shares(counts, 20) == {("data", 0): 2, ("data", 1): 18}
    assert shares(counts, 100) == {("data", 0): 10, ("data", 1): 90}
    assert shares(counts, 0) == {}
    # a batch smaller than the number of partitions comes further, too
    even = {("data", number): 4 for number in range(3)}
    assert shares(even, 1) == {("data", 0): 1}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 1000])
def test_batches_land_each_offset_once(size: int) -> None:
    left = {("data", 0): 1, ("data", 1): 83, ("data", 2): 0, ("metadata", 0): 12}
    total, batches = sum(left.values()), 0
    while share := shares(left, size):
        assert sum(share.values()) == min(size, sum(left.values()))
        left = {key: count - share.get(key, 0) for key, count in left.items()}
        assert min(left.values()) >= 0
        batches += 1
    assert not any(left.values())
    assert batches == -(-total // size)


def test_options_of_the_command_line_go_before_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# of the team\n\nsecurity.protocol = SSL\nssl.truststore.type=PEM\n")
    assert client_options(["security.protocol=SASL_SSL", "a=b=c"], file) == {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "a": "b=c",
    }


def test_an_option_without_a_value_is_refused_and_not_shown() -> None:
    with pytest.raises(OptionError) as refused:
        client_options(["sasl.jaas.config secret"], None)
    assert "name=value" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_pattern_that_is_no_regular_expression() -> None:
    with pytest.raises(KafkaLandingError, match=r"'\*\.orders' is not a regular.*Fix: correct the"):
        ends(replace(REQUEST, topics=[], pattern="*.orders"))


def test_an_end_before_what_was_landed_may_be_an_open_transaction() -> None:
    landed = {("carts", 0): 250}
    committed = replace(REQUEST, options={"isolation.level": "read_committed"})
    for request, is_named in ((REQUEST, False), (committed, True)):
        with pytest.raises(KafkaLandingError, match="The topic was recreated") as refused:
            starting_offsets(request, ENDS, landed, "raw.messages")
        assert ("until their transaction ends" in str(refused.value)) is is_named
