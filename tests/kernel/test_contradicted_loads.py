"""Which inserts show that a frozen base was ahead of its load (R8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dbt_afterimage.history.affected_keys import FEW_KEYS
from dbt_afterimage.history.replay import contradicted_loads
from dbt_afterimage.history.replay.contradicted_loads import (
    IS_LOADED,
    OPENED_SEQ,
    keys_contradicting_their_load,
)
from dbt_afterimage.history.table import HistoryTable
from dbt_afterimage.log_rows.profile import BatchProfile
from dbt_afterimage.storage.local_relation import local_rows
from tests.log_lines import COLUMNS, SCHEMA, change

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = HistoryTable(columns=tuple(COLUMNS), key=("id",), tracked=("name", "city"), base="frozen")
VERSIONS = "id int, valid_from_seq string, valid_to_seq string, opened_by string"


@pytest.mark.parametrize("few_keys", [FEW_KEYS, 0])
@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        pytest.param("20 I 1 Ann Rome", {1: ""}, id="an insert over a loaded row"),
        pytest.param("20 I 2 Bea Rome", {2: "12"}, id="over a row that a load may have left open"),
        pytest.param("20 I 3 Cid Rome", {}, id="where no row is open"),
        pytest.param("20 I 9 Dan Rome", {}, id="of a new key"),
        pytest.param("20 D 1\n21 I 1 Ann Rome", {}, id="after a delete"),
        pytest.param("20 U 8 Ann Rome <- 1 Ann Rome\n21 I 1 Eve Rome", {}, id="after a key change"),
        pytest.param(
            "20 I 1 Ann Rome\n21 I 9 Dan Rome\n22 U 2 Bea Oslo", {1: ""}, id="among others"
        ),
        pytest.param("20 T\n21 I 1 Ann Rome", {}, id="after a truncate"),
        pytest.param("20 I 1 Ann Rome\n21 T", {1: ""}, id="before a truncate"),
        pytest.param("20 U 1 Ann Oslo", {}, id="no insert"),
    ],
)
def test_an_insert_contradicts_a_load_that_has_its_row(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    batch: str,
    expected: dict[int, str],
    few_keys: int,
) -> None:
    """Or may have; whether its keys are joined first, as if there were few, or not."""
    monkeypatch.setattr(contradicted_loads, "FEW_KEYS", few_keys)
    versions = [
        (1, "10", None, "L"),
        (2, "10", "12", "L"),
        (2, "12", None, "U"),
        (3, "10", "12", "L"),
    ]
    changes = [change(line) for line in batch.splitlines()]
    profile = BatchProfile(
        changes=len(changes),
        inserts=sum(line.split()[1] == "I" for line in batch.splitlines()),
        truncates=sum(line.split()[1] == "T" for line in batch.splitlines()),
        key_changes=batch.count("<-"),
    )
    found = keys_contradicting_their_load(
        local_rows(spark, changes, SCHEMA), local_rows(spark, versions, VERSIONS), TABLE, profile
    )
    rows = found.collect()
    assert {row["id"]: "" if row[IS_LOADED] else row[OPENED_SEQ] for row in rows} == expected
