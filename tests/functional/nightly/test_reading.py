"""What analysts read beside history: current state with deleted rows, activity, and any moment.

A small dbt project with this project's macros. The change log is written here, in three batches
with a run after each; what the tables then hold is computed by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_afterimage.change_log.contract import LOG_COLUMNS, REJECTED_COLUMNS
from dbt_afterimage.storage.local_relation import local_rows
from tests.functional.dbt_project import DbtProject
from tests.functional.project_files import write_files, write_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
SCHEMA = "reading"
DAY = "2026-03-02"

SETTINGS = {"system": "qlik_change_table", "key": ["thing_id"], "keep_deleted": True}
SOURCES = [
    {
        "name": "raw_things",
        "schema": SCHEMA,
        "tables": [{"name": "things__ct", "config": {"meta": {"afterimage": SETTINGS}}}],
    }
]
MODELS = {
    "stg_things": "-- depends_on: {{ source('raw_things', 'things__ct') }}\nselect 1",
    "things_changes": "-- depends_on: {{ ref('stg_things') }}\nselect 1",
    "things_history": "{{ history(ref('things_changes')) }}",
    "things_current": "{{ current(ref('things_history')) }}",
    "change_activity": "{{ change_activity(['things']) }}",
}


def seq(number: int) -> str:
    return str(number).zfill(35)


MOMENTS = {
    "at_a_boundary": f"{DAY} 10:00:30",
    "with_a_version_of_no_time": f"{DAY}T11:00:50Z",
    "in_another_zone": f"{DAY} 13:00:00+02:00",
    "before_everything": DAY,
    "at_a_position": seq(800),
    "just_before_a_position": seq(849),
    "at_the_next_position": seq(850),
    "by_an_expression": f"timestamp '{DAY} 11:00:00' + interval 50 seconds",
}

# change_seq, operation, time, id, name, and (id, name) before
BATCHES: dict[str, list[tuple[Any, ...]]] = {
    "10:05:00": [
        (100, "I", "10:00:10", 1, "Ann", None),
        (200, "I", "10:00:20", 2, "Bob", None),
        (300, "U", "10:00:30", 3, "Bob", (2, "Bob")),
        (400, "D", "10:00:40", 1, None, None),
        (450, "I", "10:00:45", 4, "Cid", None),
        (460, "I", "10:00:46", 9, "Fay", None),
        (470, "D", "10:00:47", 9, None, None),
        (480, "I", "10:00:48", 9, "Gil", None),
        (490, "D", "10:00:49", 9, None, None),
    ],
    "11:10:00": [
        (495, "T", "10:59:00", None, None, None),
        (500, "I", "11:00:00", 1, "Ann2", None),
        (600, "I", "11:00:10", 3, "Bo", None),
        (610, "D", "11:00:20", 3, None, None),
        (700, "I", "11:00:30", 5, "Dan", None),
        (750, "U", "11:00:40", 6, "Dan", (5, "Dan")),
        (800, "I", "11:00:50", 7, "Eve", None),
        (850, "U", "11:00:50", 7, "Eva", (7, "Eve")),
    ],
    "12:30:00": [
        # late: an older version of 9, whose last one is closed; of 1, whose last one is open
        (465, "U", "10:00:46", 9, "Fey", (9, "Fay")),
        (150, "U", "10:00:15", 1, "Anna", (1, "Ann")),
        # late: a new last version of 3, which was deleted
        (605, "U", "11:00:15", 3, "Boo", (3, "Bo")),
        # on time: 6 becomes 4, which was truncated
        (900, "U", "12:00:00", 4, "Dan", (6, "Dan")),
    ],
}
REJECTS = {"10:05:00": 1, "11:10:00": 2, "12:30:00": 0}


def append(spark: SparkSession, recorded_at: str) -> None:
    """One batch, as a change-log model appends it."""
    rows = [
        {
            "change_seq": seq(number),
            "change_oper": oper,
            "changed_at": f"{DAY} {time}",
            "recorded_at": f"{DAY} {recorded_at}",
            "thing_id": thing_id,
            "name": name,
            "before": before,
        }
        for number, oper, time, thing_id, name, before in BATCHES[recorded_at]
    ]
    given = local_rows(
        spark,
        rows,
        "change_seq string, change_oper string, changed_at string, recorded_at string, "
        "thing_id bigint, name string, before struct<thing_id: bigint, name: string>",
    )
    values = [
        f"cast({name if name in given.columns else 'null'} as {kind}) as {name}"
        for name, kind in LOG_COLUMNS.items()
    ]
    log = given.selectExpr(*values, "thing_id", "name", "before")
    log.writeTo(f"{SCHEMA}.things_changes").append()
    rejects = spark.range(REJECTS[recorded_at]).selectExpr(
        *[
            f"timestamp'{DAY} {recorded_at}' as recorded_at"
            if name == "recorded_at"
            else f"cast(null as {kind}) as {name}"
            for name, kind in REJECTED_COLUMNS.items()
        ]
    )
    rejects.writeTo(f"{SCHEMA}.things_changes_rejected").append()


@pytest.fixture(scope="module")
def project(
    make_dbt_project: Callable[..., DbtProject],
    tmp_path_factory: pytest.TempPathFactory,
    spark: SparkSession,
    table_format: str,
) -> DbtProject:
    folder = tmp_path_factory.mktemp("reading")
    write_settings(folder)
    moments = {
        f"moment_{name}": "select thing_id, name from {{ as_of(ref('things_history'), "
        f'"{at}") }}}} order by thing_id'
        for name, at in MOMENTS.items()
    }
    files: dict[str, Any] = {f"{name}.sql": code for name, code in {**MODELS, **moments}.items()}
    files["sources.yml"] = {"version": 2, "sources": SOURCES}
    write_files(folder / "models", files)
    spark.sql(f"create schema if not exists {SCHEMA}")
    columns = ", ".join(f"{name} {kind}" for name, kind in LOG_COLUMNS.items())
    spark.sql(
        f"create table {SCHEMA}.things_changes ({columns}, thing_id bigint, name string, "
        f"before struct<thing_id: bigint, name: string>) using {table_format}"
    )
    columns = ", ".join(f"{name} {kind}" for name, kind in REJECTED_COLUMNS.items())
    spark.sql(f"create table {SCHEMA}.things_changes_rejected ({columns}) using {table_format}")
    return make_dbt_project(folder, schema=SCHEMA)


@pytest.fixture(scope="module")
def states(project: DbtProject, spark: SparkSession) -> dict[str, list[tuple[Any, ...]]]:
    """The current table after each batch, by the batch."""
    found = {}
    for recorded_at in BATCHES:
        append(spark, recorded_at)
        if recorded_at == "12:30:00":
            # as if the run before had been killed before it recorded its progress
            spark.sql(
                f"delete from {SCHEMA}.afterimage_progress where model = 'change_activity' "
                f"or model = 'things_current' and recorded_at > timestamp'{DAY} 10:05:00'"
            )
        project("run", "--select", "things_history+", "change_activity", "--exclude", "moment_*")
        found[recorded_at] = [
            tuple(row)
            for row in spark.sql(
                "select thing_id, name, is_deleted, date_format(deleted_at, 'HH:mm:ss'), "
                f"cast(valid_from_seq as int) from {SCHEMA}.things_current order by thing_id"
            ).collect()
        ]
    return found


def test_keep_deleted_on_a_first_run(states: dict[str, list[tuple[Any, ...]]]) -> None:
    assert states["10:05:00"] == [
        (1, "Ann", True, "10:00:40", 100),
        (3, "Bob", False, None, 300),
        (4, "Cid", False, None, 450),
        (9, "Gil", True, "10:00:49", 480),
    ]


def test_keep_deleted_after_deletes_and_a_truncate(
    states: dict[str, list[tuple[Any, ...]]],
) -> None:
    assert states["11:10:00"] == [
        (1, "Ann2", False, None, 500),
        (3, "Bo", True, "11:00:20", 600),
        (4, "Cid", True, "10:59:00", 450),
        (6, "Dan", False, None, 750),
        (7, "Eva", False, None, 850),
        (9, "Gil", True, "10:00:49", 480),
    ]


def test_keep_deleted_after_late_changes(states: dict[str, list[tuple[Any, ...]]]) -> None:
    assert states["12:30:00"] == [
        (1, "Ann2", False, None, 500),
        (3, "Boo", True, "11:00:20", 605),
        (4, "Dan", False, None, 900),
        (7, "Eva", False, None, 850),
        (9, "Gil", True, "10:00:49", 480),
    ]


def test_change_activity(states: dict[str, Any], spark: SparkSession) -> None:
    rows = spark.sql(
        "select date_format(activity_hour, 'HH:mm'), changes, inserts, updates, key_changes, "
        "deletes, truncates, late_changes, rejected, cast(first_change_seq as int), "
        "cast(last_change_seq as int), total_lag_seconds, max_lag_seconds, average_lag_seconds, "
        "date_format(recorded_at, 'HH:mm'), date_format(rejects_recorded_at, 'HH:mm') "
        f"from {SCHEMA}.change_activity where table_name = 'things' order by activity_hour"
    ).collect()
    # the lags: 9 * 300 - 335 and 660, then 8954 and 8985; 7 * 600 - 200, then 5385
    first = ("10:00", 12, 5, 3, 1, 3, 1, 2, 1, 100, 495, 20964, 8985, 1747.0, "12:30", "10:05")
    second = ("11:00", 8, 4, 3, 1, 1, 0, 1, 2, 500, 850, 9385, 5385, 1173.125, "12:30", "11:10")
    third = ("12:00", 1, 0, 1, 1, 0, 0, 0, 0, 900, 900, 1800, 1800, 1800.0, "12:30", None)
    assert [tuple(row) for row in rows] == [first, second, third]


def test_as_of(states: dict[str, Any], project: DbtProject, spark: SparkSession) -> None:
    compiled = project("compile", "--select", "moment_*")
    found = {
        result.node.name.removeprefix("moment_"): [
            tuple(row) for row in spark.sql(result.node.compiled_code).collect()
        ]
        for result in compiled.results
    }
    eve, eva = ([(1, "Ann2"), (6, "Dan"), (7, name)] for name in ("Eve", "Eva"))
    assert found == {
        "at_a_boundary": [(1, "Anna"), (3, "Bob")],
        "with_a_version_of_no_time": eva,
        "in_another_zone": [(1, "Ann2")],
        "before_everything": [],
        "at_a_position": eve,
        "just_before_a_position": eve,
        "at_the_next_position": eva,
        "by_an_expression": eva,
    }
