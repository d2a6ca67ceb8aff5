"""Logs that are large in one direction: one key, or one transaction, has most of the changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.history_versions import versions_of
from tests.log_lines import COLUMNS, brief

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.nightly

UPDATES = 1_000_000
MOVES = 500_000
UPDATES_BETWEEN_MOVES = 100_000
_AS_LOGGED = (
    "timestamp_seconds(place) as changed_at",
    "cast(null as array<string>) as known_columns",
    "cast(null as array<string>) as before_known_columns",
    "cast(null as map<string, string>) as truncate_scope",
    "if(change_oper = 'L', 'load', null) as load_id",
    "if(change_oper = 'L' and id is null, 0L, null) as load_rows",
    "lpad(place, 9, '0') as change_seq",
)


def log_of(rows: DataFrame) -> DataFrame:
    """Rows with `place`, `id`, `name`, `change_oper`, `old_id`, `old_name`, `transaction_id`."""
    return rows.selectExpr(
        "cast(id as int) as id",
        "name",
        "'Rome' as city",
        "change_oper",
        "transaction_id",
        *_AS_LOGGED,
        "if(old_id is null, null, struct(cast(old_id as int) as id, old_name as name,"
        " 'Rome' as city)) as before",
    )


def test_a_key_with_a_million_updates(spark: SparkSession) -> None:
    rows = spark.range(1, UPDATES + 1).selectExpr(
        "id as place",
        "1 as id",
        "'name ' || id as name",
        "if(id = 1, 'I', 'U') as change_oper",
        "if(id = 1, null, 1) as old_id",
        "'name ' || (id - 1) as old_name",
        "cast(null as string) as transaction_id",
    )
    found = versions_of(log_of(rows), COLUMNS, ["id"])
    last = f"valid_from_seq = '{UPDATES:09d}'"
    wrong = (
        "name is distinct from 'name ' || cast(valid_from_seq as int)"
        f" or is_current is distinct from ({last})"
        " or cast(valid_to_seq as int) is distinct from"
        f" if({last}, null, cast(valid_from_seq as int) + 1)"
    )
    counts = found.selectExpr("count(*)", f"count_if({wrong})").collect()[0]
    assert tuple(counts) == (UPDATES, 0)


def test_a_transaction_in_which_all_rows_shift_their_keys(spark: SparkSession) -> None:
    """Each row moves to the key of the next one, which moves after it."""
    numbers = spark.range(1, MOVES + 1)
    inserts = numbers.selectExpr(
        "id as place",
        "id",
        "'row ' || id as name",
        "'I' as change_oper",
        "cast(null as bigint) as old_id",
        "cast(null as string) as old_name",
        "'first' as transaction_id",
    )
    moves = numbers.selectExpr(
        f"id + {MOVES} as place",
        "id + 1 as id",
        "'row ' || id as name",
        "'U' as change_oper",
        "id as old_id",
        "'row ' || id as old_name",
        "'shift' as transaction_id",
    )
    log = log_of(inserts.unionByName(moves))
    found = versions_of(log, COLUMNS, ["id"], has_key_changes=True)
    # the row of the key leaves where the one before it comes, except that nothing comes to key 1
    inserted = f"cast(valid_from_seq as int) = id and id <= {MOVES}"
    moved = (
        f"name = 'row ' || (id - 1) and cast(valid_from_seq as int) = {MOVES} + id - 1"
        " and opened_by = 'K' and is_current"
    )
    left = (
        "name = 'row ' || id and opened_by = 'I' and closed_by = 'K'"
        f" and cast(valid_to_seq as int) = {MOVES} + greatest(id - 1, 1)"
    )
    counts = found.selectExpr(
        "count(*)", "count_if(is_current)", f"count_if(not if({inserted}, {left}, {moved}))"
    ).collect()[0]
    assert tuple(counts) == (2 * MOVES, MOVES, 0)


def test_a_row_of_a_live_base_with_many_updates_between_two_key_changes(
    spark: SparkSession,
) -> None:
    """In one transaction; the base, read later, has the row where it went."""
    last = UPDATES_BETWEEN_MOVES
    loaded = spark.createDataFrame(
        [(0, None, None, "L", None, None, None), (0, 2, f"name {last}", "L", None, None, None)],
        "place bigint, id bigint, name string, change_oper string, old_id bigint, old_name string,"
        " transaction_id string",
    )
    changes = spark.range(last + 2).selectExpr(
        "id + 1 as place",
        f"if(id > {last}, 2, 1) as id",
        f"'name ' || least(id, {last}) as name",
        "'U' as change_oper",
        "if(id = 0, 3, 1) as old_id",
        "'name ' || greatest(id - 1, 0) as old_name",
        "'busy' as transaction_id",
    )
    log = log_of(loaded.unionByName(changes))
    found = versions_of(log, COLUMNS, ["id"], base="live", has_key_changes=True)
    busy = (
        "name = 'name ' || (cast(valid_from_seq as int) - 1)"
        " and cast(valid_to_seq as int) = cast(valid_from_seq as int) + 1"
        f" and opened_by = if(name = 'name 0', 'K', 'U')"
        f" and closed_by = if(name = 'name {last}', 'K', 'U')"
    )
    counts = found.selectExpr("count(*)", f"count_if(id = 1 and {busy})").collect()[0]
    assert tuple(counts) == (last + 3, last + 1)
    others = found.where("id <> 1").orderBy("id").collect()
    assert [brief(row.asDict()) for row in others] == [
        f"2 name {last} Rome [{last + 2:09d}, ) K ",
        "3 name 0 Rome [000000000, 000000001) L K",
    ]
