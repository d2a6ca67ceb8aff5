"""Offsets as text, in Kafka's own notation."""

from __future__ import annotations

from dbt_afterimage.sources.qlik_messages import offsets


def test_text_and_back() -> None:
    read = {("shop.carts", 10): 7, ("shop.carts", 2): 41, ("shop.visits", 0): 0}
    text = '{"shop.carts": {"2": 41, "10": 7}, "shop.visits": {"0": 0}}'
    assert offsets.to_text(read) == text
    assert offsets.from_text(text) == read
    assert offsets.from_text(None) == {}


def test_the_greatest_of_each_partition_counts() -> None:
    assert offsets.merged({("a", 0): 5, ("a", 1): 2}, {("a", 0): 3, ("b", 0): 1}) == {
        ("a", 0): 5,
        ("a", 1): 2,
        ("b", 0): 1,
    }
