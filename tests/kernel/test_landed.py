"""What the progress table says of a landing from Kafka."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from dbt_afterimage.ingest.kafka.landed import read_landed
from dbt_afterimage.ingest.kafka.request import KafkaLandingError
from dbt_afterimage.storage.local_relation import local_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "model string, at string, arrival string, raw_version string"


def record(spark: SparkSession, rows: Sequence[tuple[str, str, str | None, str]]) -> None:
    """Make these the rows of the progress table."""
    local_rows(spark, rows, COLUMNS).selectExpr(
        "model", "cast(at as timestamp) as recorded_at", "arrival", "raw_version"
    ).createOrReplaceTempView("landed_progress")


def test_what_an_overlapping_run_has_recorded_with_the_batch_before_counts(
    spark: SparkSession,
) -> None:
    rows = [
        ("raw.events", "2026-03-01 10:00:00", {"carts": {"0": 5}}, {"carts": ["a"]}),
        # another run decides where `visits` begins, while the first one lands a batch of `carts`
        (
            "raw.events",
            "2026-03-01 10:00:00",
            {"carts": {"0": 5}, "visits": {"0": 99}},
            {"v": ["b"]},
        ),
        ("raw.events", "2026-03-01 11:00:00", {"carts": {"0": 9}}, {"carts": ["a"]}),
        ("raw.others", "2026-03-01 12:00:00", {"carts": {"0": 77}}, {"carts": ["z"]}),
    ]
    texts = [(model, at, json.dumps(read), json.dumps(ids)) for model, at, read, ids in rows]
    record(spark, texts)
    found = read_landed(spark, "landed_progress", "raw.events")
    assert found.offsets == {("carts", 0): 9, ("visits", 0): 99}
    assert found.topics == {("carts", "a"), ("v", "b")}


@pytest.mark.parametrize(
    ("arrival", "ids"),
    [
        ('{"carts": {"0": ', '{"carts": ["a"]}'),
        ("{}", '{"carts": ["a"]}'),
        (None, '{"carts": ["a"]}'),
        ('{"carts": 5}', '{"carts": ["a"]}'),
        ('{"carts": {"0": 5}}', '{"carts": ["a"'),
        ('{"carts": {"0": 5}}', '{"carts": 1}'),
    ],
)
def test_progress_that_was_cut_off_stops_the_landing(
    spark: SparkSession, arrival: str | None, ids: str
) -> None:
    """Offsets that are lost would be landed again."""
    good = ("raw.events", "2026-03-01 10:00:00", '{"carts": {"0": 3}}', '{"carts": ["a"]}')
    record(spark, [good, ("raw.events", "2026-03-01 11:00:00", arrival, ids)])
    with pytest.raises(KafkaLandingError) as caught:
        read_landed(spark, "landed_progress", "raw.events")
    message = str(caught.value)
    assert "`arrival` or `raw_version` of raw.events (recorded_at 2026-03-01 11:00:00)" in message
    assert (
        "delete from landed_progress where model = 'raw.events' "
        "and recorded_at = timestamp '2026-03-01 11:00:00'"
    ) in message
