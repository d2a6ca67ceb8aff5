"""Key changes that lack values: history takes these from the old key, and frees its checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.functional.comparing import checkpointed_rows
from tests.functional.dbt_project import DbtProject
from tests.functional.small_logs import SmallLog, SmallLogs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCHES = [
    """
    10 I 1 Ann Rome
    20 U 2 Ann ? <- 1 Ann ?
    """,
    "30 U 3 Ann ? <- 2 Ann ?",
    "25 U 2 Eva ?",
]
AFTER_FIRST = ["1 Ann Rome [10, 20) I K", "2 Ann Rome [20, ) K "]
AFTER_SECOND = [
    "1 Ann Rome [10, 20) I K",
    "2 Ann Rome [20, 30) K K",
    "3 Ann Rome [30, ) K ",
]
AFTER_LATE = [
    "1 Ann Rome [10, 20) I K",
    "2 Ann Rome [20, 25) K U",
    "2 Eva Rome [25, 30) U K",
    "3 Ann Rome [30, ) K ",
]


@pytest.fixture
def log(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    table_format: str,
) -> SmallLogs:
    folder = tmp_path_factory.mktemp("incomplete_key_changes")
    dbt = make_dbt_project(folder, schema="incomplete_key_changes")
    logs = SmallLogs(dbt, spark, table_format, {"people": SmallLog(BATCHES)})
    logs.write_project()
    return logs


def test_a_first_build_a_batch_and_a_late_change(log: SmallLogs, spark: SparkSession) -> None:
    held = checkpointed_rows(spark)
    for batch, expected in enumerate((AFTER_FIRST, AFTER_SECOND, AFTER_LATE), start=1):
        log.run(batch)
        assert log.versions("people") == expected
        assert checkpointed_rows(spark) <= held
