"""What the progress table says of a landing from Kafka."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dbt_afterimage.ingest.kafka.landed import read_landed
from dbt_afterimage.storage.local_relation import local_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "model string, at string, arrival string, raw_version string"


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
    progress = local_rows(spark, texts, COLUMNS)
    progress.selectExpr(
        "model", "cast(at as timestamp) as recorded_at", "arrival", "raw_version"
    ).createOrReplaceTempView("landed_progress")
    found = read_landed(spark, "landed_progress", "raw.events")
    assert found.offsets == {("carts", 0): 9, ("visits", 0): 99}
    assert found.topics == {("carts", "a"), ("v", "b")}
