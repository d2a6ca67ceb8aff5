"""R1 to R10 on random streams: the project's SQL makes of a log what the oracle makes of it.

Late changes do not matter here, the log is whole; test_batches.py builds it in batches, by dbt.
`--streams 600` is the whole suite, of more than 10,000 streams. The test prints how many streams
exercised each rule and each pair of rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.functional.properties.comparison import assert_equal, by_stream
from tests.functional.properties.rule_counts import RuleCounts, rules_of
from tests.functional.properties.stream_tables import StreamTable
from tests.functional.properties.whole_log import history_of_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNTS = RuleCounts()


def test_history_of_random_streams(spark: SparkSession, stream_table: StreamTable) -> None:
    expected = []
    for stream in stream_table.streams:
        history = stream_table.history_of(stream)
        COUNTS.add(stream, rules_of(stream_table, stream, history))
        assert not stream_table.differing_state(stream, history)
        expected += stream_table.rows_of(stream, history)
    assert_equal(stream_table, by_stream(history_of_all(spark, stream_table)), by_stream(expected))


def test_every_rule_and_pair_of_rules_was_exercised(capsys: pytest.CaptureFixture[str]) -> None:
    """Runs after the streams above. Two rules meet in one stream in at least one of 200."""
    with capsys.disabled():
        print("\n" + COUNTS.table())
    assert not COUNTS.too_rare(single=0.05, pair=0.005)
