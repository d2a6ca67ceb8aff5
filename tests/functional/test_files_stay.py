"""A batch leaves the files of a history alone in which it changes no row.

The history has five versions of each row, in 50 files: 25 of closed versions and 25 of open ones,
each for a range of keys. `--versions 1000000` is a table of a size that people have.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_afterimage.change_log.contract import LOG_COLUMNS
from tests.functional.data_files import DataFile, data_files, files_with
from tests.functional.dbt_project import DbtProject
from tests.functional.project_files import history_model, write_files, write_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
SCHEMA = "files_stay"
LOG = f"{SCHEMA}.item_log"
HISTORY = f"{SCHEMA}.items_history"
RANGES = 25

# the tests follow the files of one commit, so none may be merged after the run
SETTINGS = {"system": "qlik_change_table", "key": ["id"], "auto_compact": False}
TABLES = [{"name": "item_log", "config": {"meta": {"afterimage": SETTINGS}}}]
SOURCES = [{"name": "logs", "schema": SCHEMA, "tables": TABLES}]
MODELS = {
    "sources.yml": {"version": 2, "sources": SOURCES},
    "items_changes.sql": "{{ config(materialized='view') }}\n"
    "select * from {{ source('logs', 'item_log') }}\n",
    **history_model("items"),
}

# An item's `amount` is the hour in which it was written, in all but late changes.
BUILT = (
    "select id, hour, if(hour = 10, 'I', 'U') as oper, hour as amount from {keys} "
    "lateral view explode(array(10, 20, 30, 40, 50)) hours as hour"
)
# after all others: one key of 40 is updated, one is deleted and one is new
ON_TIME_KEYS = "id % 40 = 7 and id not between 1000 and 1999"
ON_TIME = (
    "select id, 60 as hour, if(id = 47, 'D', 'U') as oper, if(id = 47, null, 60) as amount "
    f"from {{keys}} where {ON_TIME_KEYS} union all select {{count}}, 60, 'I', 60"
)
# between the second version and the third: a value of its own, the third one's value, a delete
LATE_KEYS = "id between 1000 and 999 + {count} div 200"
LATE = (
    "select id, 25 as hour, if(id % 3 = 0, 'D', 'U') as oper, "
    f"case id % 3 when 1 then 25 when 2 then 30 end as amount from {{keys}} where {LATE_KEYS}"
)


@pytest.fixture(scope="module")
def keys(request: pytest.FixtureRequest) -> int:
    """How many items there are, numbered from 0."""
    return int(request.config.getoption("--versions")) // 5


def write_log(spark: SparkSession, changes: str, keys: int, batch: int) -> None:
    """Append changes (id, hour, oper, amount) to the log, as one batch."""
    values = {
        "change_seq": "concat(hour, lpad(id, 8, '0'))",
        "change_oper": "oper",
        # a day has 86,400,000 milliseconds, and an hour fewer keys than milliseconds
        "changed_at": "timestamp '2026-03-02' + make_dt_interval(0, hour, 0, id / 1000)",
        "recorded_at": f"timestamp '2026-04-0{batch}'",
    }
    columns = [
        f"cast({values.get(name, 'null')} as {kind}) as {name}"
        for name, kind in LOG_COLUMNS.items()
    ]
    rows = spark.sql(changes.format(keys=f"range({keys})", count=keys)).selectExpr(
        *columns,
        "id",
        "amount",
        "if(oper = 'D', null, md5(cast(id as string))) as note",
        "if(oper = 'I', null, struct(id, hour - 10 as amount, md5(cast(id as string)) as note))"
        " as before",
    )
    rows.writeTo(LOG).append()


@pytest.fixture(scope="module")
def project(
    make_dbt_project: Callable[..., DbtProject],
    tmp_path_factory: pytest.TempPathFactory,
    spark: SparkSession,
    table_format: str,
    keys: int,
) -> DbtProject:
    """The history of the built changes, in files of ranges of keys."""
    from pyspark.sql import functions as F

    folder = tmp_path_factory.mktemp("files_stay")
    write_settings(folder)
    write_files(folder / "models", MODELS)
    spark.sql(f"create schema if not exists {SCHEMA}")
    columns = ", ".join(f"{name} {kind}" for name, kind in LOG_COLUMNS.items())
    image = "id bigint, amount int, note string"
    spark.sql(
        f"create table {LOG} ({columns}, {image}, before struct<{image}>) using {table_format}"
    )
    write_log(spark, BUILT, keys, batch=1)
    project = make_dbt_project(folder, schema=SCHEMA)
    project("run")
    by_range = spark.table(HISTORY).repartitionByRange(RANGES, "id").sortWithinPartitions("id")
    # each task writes the files of its own range; Iceberg would bring a partition's rows together
    writer = by_range.writeTo(HISTORY).option("distribution-mode", "none")
    writer.option("fanout-enabled", "true").overwrite(F.col("id").isNotNull())
    return project


def path_taken(spark: SparkSession, batch: int) -> str:
    rows = spark.sql(
        f"select path from {SCHEMA}.afterimage_progress "
        f"where model = 'items_history' and recorded_at = timestamp '2026-04-0{batch}'"
    ).collect()
    assert len(rows) == 1
    return str(rows[0]["path"])


def versions_of(spark: SparkSession, *keys: int) -> dict[int, list[str]]:
    """Versions by key: amount, the hours from and to which it held, how it began and ended."""
    rows = (
        spark.table(HISTORY)
        .where(f"id in {(*keys, -1)}")
        .where("note = md5(cast(id as string)) and is_current = (valid_to_seq is null)")
        .selectExpr(
            "id",
            "concat(amount, ' [', replace(valid_from_seq, lpad(id, 8, '0')), ', ',"
            " coalesce(replace(valid_to_seq, lpad(id, 8, '0')), ''), ') ',"
            " opened_by, ' ', coalesce(closed_by, '')) as text",
        )
        .collect()
    )
    return {key: sorted(row["text"] for row in rows if row["id"] == key) for key in keys}


def contents(spark: SparkSession, others: str) -> tuple[int, tuple[int, int]]:
    """How many versions there are; number and content of those that satisfy a condition."""
    row = spark.sql(
        f"select count(*), count_if({others}), bit_xor(if({others}, xxhash64(*), 0)) from {HISTORY}"
    ).collect()[0]
    return row[0], (row[1], row[2])


def assert_stay(before: dict[str, DataFile], after: dict[str, DataFile]) -> None:
    """Files are where they were, and nothing more is deleted from them."""
    assert before
    assert {name: after.get(name) for name in before} == before


def test_a_batch_without_late_changes_leaves_closed_rows_alone(
    spark: SparkSession, table_format: str, project: DbtProject, keys: int
) -> None:
    others = f"not ({ON_TIME_KEYS}) and id < {keys}"
    versions, untouched = contents(spark, others)
    before = data_files(spark, HISTORY, table_format)
    closed = {name: file for name, file in before.items() if not file.is_current}
    assert len(closed) >= RANGES
    holding = files_with(spark, HISTORY, table_format, f"is_current and ({ON_TIME_KEYS})")

    write_log(spark, ON_TIME, keys, batch=2)
    project("run")

    assert path_taken(spark, batch=2) == "incremental"
    after = data_files(spark, HISTORY, table_format)
    assert_stay(closed, after)
    # nor do open rows move that the batch does not concern
    assert_stay({name: file for name, file in before.items() if name not in holding}, after)
    updated = len([key for key in range(7, keys, 40) if not 1000 <= key <= 1999 and key != 47])
    assert contents(spark, others) == (versions + updated + 1, untouched)
    first = ["10 [10, 20) I U", "20 [20, 30) U U", "30 [30, 40) U U", "40 [40, 50) U U"]
    assert versions_of(spark, 7, 47, keys) == {
        7: [*first, "50 [50, 60) U U", "60 [60, ) U "],
        47: [*first, "50 [50, 60) U D"],
        keys: ["60 [60, ) I "],
    }


@pytest.mark.nightly
@pytest.mark.both_formats
def test_a_late_batch_leaves_files_without_its_keys_alone(
    spark: SparkSession, table_format: str, project: DbtProject, keys: int
) -> None:
    others = f"not ({LATE_KEYS.format(count=keys)})"
    versions, untouched = contents(spark, others)
    before = data_files(spark, HISTORY, table_format)
    assert len(before) >= 2 * RANGES
    holding = files_with(spark, HISTORY, table_format, f"not ({others})")
    # a range that two files share at most, among those of closed rows and among those of open ones
    assert len(holding) <= 4

    write_log(spark, LATE, keys, batch=3)
    # what came before the late changes is not needed: the anchor versions have it
    spark.sql(f"delete from {LOG} where change_seq < '25'")
    project("run")

    assert path_taken(spark, batch=3) == "replay"
    after = data_files(spark, HISTORY, table_format)
    assert_stay({name: file for name, file in before.items() if name not in holding}, after)
    # closed versions were replaced; the open ones are as they were
    replaced = [before[name] for name in holding if after.get(name) != before[name]]
    assert replaced
    assert not any(file.is_current for file in replaced)
    split = len([key for key in range(1000, 1000 + keys // 200) if key % 3 == 1])
    assert contents(spark, others) == (versions + split, untouched)
    last = ["40 [40, 50) U U", "50 [50, ) U "]
    assert versions_of(spark, 1000, 1001, 1002) == {
        1000: [
            *("10 [10, 20) I U", "20 [20, 25) U U", "25 [25, 30) U U", "30 [30, 40) U U"),
            *last,
        ],
        1001: ["10 [10, 20) I U", "20 [20, 25) U U", "30 [25, 40) U U", *last],
        1002: ["10 [10, 20) I U", "20 [20, 25) U D", "30 [30, 40) U U", *last],
    }
