"""Later batches over a stored history give the history of the whole log (R11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dbt_afterimage.history.differences import changed_versions, differing_versions
from dbt_afterimage.history.names import (
    IS_PRIOR,
    IS_UPDATED_IN_PLACE,
    REPLAY_FROM,
    VERSION_ID,
)
from dbt_afterimage.history.versions import versions
from dbt_afterimage.storage.mart_batch import ACTION
from tests.history_batches import Versions, after_write
from tests.log_reader import read_rows
from tests.streams.comparison import assert_equal, by_stream
from tests.streams.history_table import (
    expected_history,
    history_table,
    log_of,
    whole_log_content,
)
from tests.streams.selection import stream_table
from tests.streams.tables import BATCHES
from tests.tiers import nightly

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STREAMS = 40
IN_ORDER = ("truncates_in_order", "no_before_images_in_order", *nightly("unknown_in_order"))


def applied(stored: Versions, differences: DataFrame) -> Versions:
    return after_write(stored, differences.drop(IS_PRIOR, IS_UPDATED_IN_PLACE), VERSION_ID)


@pytest.mark.parametrize("name", IN_ORDER)
def test_incremental_batches(spark: SparkSession, name: str) -> None:
    table = stream_table(name, STREAMS)
    model = history_table(table.shape)
    content = whole_log_content(table.shape)
    first = versions(log_of(spark, table, 1), model, content, checkpoints=[]).drop(IS_PRIOR)
    stored = {row[VERSION_ID]: row for row in read_rows(first)}
    for batch in range(2, BATCHES + 1):
        opened = [row for row in stored.values() if row["is_current"]]
        found = versions(
            log_of(spark, table, batch),
            model,
            content,
            checkpoints=[],
            prior=spark.createDataFrame(opened, first.schema),
        )
        stored = applied(stored, changed_versions(found))
    assert_equal(table, by_stream(stored.values(), VERSION_ID), expected_history(table))


@pytest.mark.parametrize("share", [1, 3])
def test_a_replay_from_anywhere_changes_nothing(spark: SparkSession, share: int) -> None:
    """Every key of every `share`-th stream is replayed from the middle of its changes on."""
    table = stream_table("late_and_plain", STREAMS)
    model = history_table(table.shape)
    content = whole_log_content(table.shape)
    log = log_of(spark, table, *range(1, BATCHES + 1)).cache()
    stored = versions(log, model, content, checkpoints=[]).drop(IS_PRIOR).cache()
    keys = (
        log.where(f"change_oper <> 'T' and stream % {share} = 0")
        .groupBy("stream", "id")
        .agg({"change_seq": "median"})
        .selectExpr("stream", "id", "lpad(cast(`median(change_seq)` as bigint), 8, '0') as start")
        .withColumnRenamed("start", REPLAY_FROM)
    )
    affected = stored.join(keys, ["stream", "id"]).where(
        f"valid_to_seq is null or valid_to_seq >= {REPLAY_FROM}"
    )
    prior = affected.where(f"{REPLAY_FROM} > valid_from_seq")
    replayed = versions(
        log, model, content, checkpoints=[], affected_keys=keys, prior=prior, replays=True
    )
    assert affected.where("not is_current").count() > 0
    assert read_rows(differing_versions(replayed, affected, VERSION_ID)) == []


def test_differences_are_all_that_is_written(spark: SparkSession) -> None:
    """Without late changes a stored history differs from the oracle's; a rebuild makes it equal."""
    table = stream_table("late_and_plain", STREAMS)
    model = history_table(table.shape)
    content = whole_log_content(table.shape)
    before = (
        versions(log_of(spark, table, 1, 2), model, content, checkpoints=[]).drop(IS_PRIOR).cache()
    )
    after = versions(log_of(spark, table, *range(1, BATCHES + 1)), model, content, checkpoints=[])
    stored = {row[VERSION_ID]: row for row in read_rows(before)}
    written = differing_versions(after, before, VERSION_ID)
    assert {row[ACTION] for row in read_rows(written)} == {"insert", "update", "delete"}
    assert_equal(
        table, by_stream(applied(stored, written).values(), VERSION_ID), expected_history(table)
    )
