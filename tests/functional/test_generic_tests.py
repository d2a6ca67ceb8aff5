"""Every generic test of macros/generic_tests finds the known faults of a table, and nothing else.

A small dbt project with this project's macros holds one source, and models with the names of a log
and its marts. The tables are written here; dbt only compiles the tests, whose SQL is then run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_afterimage.storage.local_relation import local_rows
from tests.functional.dbt_project import DbtProject
from tests.functional.project_files import write_files, write_settings

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

ROOT = Path(__file__).parents[2]
SCHEMA = "generic_tests"

MODELS = {
    "stg_things": "-- depends_on: {{ source('raw_things', 'things__ct') }}\nselect 1",
    "things_changes": "-- depends_on: {{ ref('stg_things') }}\nselect 1",
    "things_history": "-- depends_on: {{ ref('things_changes') }}\nselect 1",
    "things_current": "-- depends_on: {{ ref('things_history') }}\nselect 1",
    # tables without before images: the settings of one of them say so
    "stg_imageless": "-- depends_on: {{ source('raw_things', 'imageless__ct') }}\nselect 1",
    "imageless_changes": "-- depends_on: {{ ref('stg_imageless') }}\nselect 1",
    "stg_plain": "-- depends_on: {{ source('raw_things', 'plain__ct') }}\nselect 1",
    "plain_changes": "-- depends_on: {{ ref('stg_plain') }}\nselect 1",
    # a table that keeps deleted rows
    "stg_kept": "-- depends_on: {{ source('raw_things', 'kept__ct') }}\nselect 1",
    "kept_history": "-- depends_on: {{ ref('stg_kept') }}\nselect 1",
    "kept_current": "-- depends_on: {{ ref('kept_history') }}\nselect 1",
}
SETTINGS = {
    "things__ct": {"system": "qlik_change_table", "key": ["thing_id"], "ignore": ["noted"]},
    "imageless__ct": {"system": "qlik_change_table", "key": ["thing_id"]},
    "plain__ct": {"system": "qlik_change_table", "key": ["thing_id"], "before_images": False},
    "kept__ct": {"system": "qlik_change_table", "key": ["thing_id"], "keep_deleted": True},
}
SOURCES = {
    "sources": [
        {
            "name": "raw_things",
            "schema": SCHEMA,
            "tables": [
                {"name": name, "config": {"meta": {"afterimage": settings}}}
                for name, settings in SETTINGS.items()
            ],
        }
    ]
}
DATA_TESTS: dict[str, list[Any]] = {
    "things_changes": [
        {"conserved": {"arguments": {"staging": "ref('stg_things')"}}},
        {
            "conserved": {
                "name": "conserved_while_landing",
                "arguments": {"staging": "ref('stg_things')", "while_landing": True},
            }
        },
        "no_unresolved_rejects",
        {"before_images_arrive": {"name": "arrive_as_a_rule"}},
        {
            "before_images_arrive": {
                "name": "arrive_without_exception",
                "arguments": {"minimum_share": 1},
            }
        },
    ],
    "imageless_changes": [
        {"before_images_arrive": {"name": "hardly_any_arrive"}},
        {
            "before_images_arrive": {
                "name": "hardly_any_are_expected",
                "arguments": {"minimum_share": 0.05},
            }
        },
    ],
    "plain_changes": [{"before_images_arrive": {"name": "none_are_expected"}}],
    "things_history": ["consistent_versions"],
    "things_current": [
        {"current_equals_open": {"arguments": {"history": "ref('things_history')"}}}
    ],
    "kept_current": [{"current_equals_open": {"arguments": {"history": "ref('kept_history')"}}}],
}

HISTORY = """
    things_history_id string, thing_id bigint, valid_from timestamp, valid_to timestamp,
    valid_from_seq string, valid_to_seq string, is_current boolean, opened_by string,
    closed_by string, recorded_at timestamp, transaction_id string, changed_columns array<string>,
    unknown_columns array<string>, name string, noted string
"""
LOG = """
    change_seq string, change_oper string, load_id string, load_rows bigint, record_hash bigint,
    before_record_hash bigint
"""
STAGING = (
    "change_seq string, change_oper string, load_id string, record_hash bigint, arrival string"
)
PROGRESS = "model string, arrival string"
REJECTED = """
    change_seq string, change_oper string, reject_reason string, record_hash bigint,
    raw_record string, recorded_at timestamp, resolved_at timestamp
"""


def seq(minute: int) -> str:
    """A change_seq at a minute after 10:00."""
    return f"202603021{minute // 60}{minute % 60:02d}".ljust(35, "0")


def version(
    thing_id: int,
    begins: int,
    ends: int | None,
    name: str | None = "a",
    *,
    closed_by: str | None = None,
    changed: list[str] | None = None,
    noted: str = "x",
    **others: Any,
) -> dict[str, Any]:
    """A history row whose parts agree, except for what `others` overwrites."""
    row = {
        "things_history_id": f"{thing_id}:{begins}",
        "thing_id": thing_id,
        "valid_from": at(begins),
        "valid_to": None if ends is None else at(ends),
        "valid_from_seq": seq(begins),
        "valid_to_seq": None if ends is None else seq(ends),
        "is_current": ends is None,
        "opened_by": "U" if changed else "I",
        "closed_by": closed_by,
        "recorded_at": "2026-03-02 12:00:00",
        "transaction_id": f"t{begins}",
        "changed_columns": changed,
        "unknown_columns": None,
        "name": name,
        "noted": noted,
    }
    return {**row, **others}


def at(minute: int) -> str:
    return f"2026-03-02 1{minute // 60}:{minute % 60:02d}:00"


# One key per fault; key 1, and every key above 90, is in order.
VERSIONS = [
    version(1, 10, 20, closed_by="U"),
    version(1, 20, None, "b", changed=["name"]),
    # faults of a chain
    version(2, 10, 30, closed_by="D"),
    version(2, 20, None),
    version(3, 10, None),
    version(3, 20, None),
    version(4, 20, 20, closed_by="D"),
    version(5, 20, 30, closed_by="D", valid_from=at(40), valid_to=at(50)),
    version(5, 60, None, valid_from=at(30)),
    version(6, 10, None, is_current=False),
    version(7, 10, None, is_current=None),
    version(8, 10, 20, closed_by="D", valid_from=at(30)),
    version(9, 10, 20, closed_by="D", valid_to=at(40)),
    version(9, 30, None),
    version(10, 10, 20, closed_by="D", valid_to=None),
    version(11, 10, None, valid_from=None),
    # faults of uniqueness
    version(20, 10, 20, closed_by="D", things_history_id="first"),
    version(20, 10, 20, closed_by="D", things_history_id="second"),
    version(21, 10, 20, closed_by="D", things_history_id="shared"),
    version(22, 10, 20, closed_by="D", things_history_id="shared"),
    version(23, 10, 20, closed_by="D", things_history_id=None),
    # faults of neighbours
    version(30, 10, 20, closed_by="U"),
    version(30, 20, None, changed=["name"]),
    version(31, 10, 20, closed_by="U"),
    version(31, 20, None, "b", changed=[]),
    version(32, 10, 20, closed_by="U"),
    version(33, 10, 20, closed_by="U"),
    version(33, 20, None, noted="y", changed=["noted"]),
    version(34, 10, 20, closed_by="U"),
    version(34, 20, None, "b"),
    # equal neighbours that something separates; intervals of no time, but of some length
    version(91, 10, 20, closed_by="D"),
    version(91, 30, None),
    version(92, 10, 20, closed_by="K"),
    version(92, 20, None, opened_by="K"),
    version(93, 10, 20, closed_by="U", valid_to=at(10)),
    version(93, 20, None, None, changed=["name"], valid_from=at(10)),
]

# alive; deleted; left by a key change; deleted twice; missing from a load
KEPT = [
    version(1, 10, 20, closed_by="U"),
    version(1, 20, None, "b", changed=["name"]),
    version(2, 10, 20, closed_by="D"),
    version(3, 10, 20, closed_by="K"),
    version(4, 10, 20, closed_by="D"),
    version(4, 30, 40, "b", closed_by="T"),
    version(5, 10, 20, closed_by="R"),
]
KEPT_CURRENT = "thing_id bigint, name string, is_deleted boolean, deleted_at timestamp"
KEPT_DELETED_ROWS = [
    (1, "b", False, None),
    # the row of 2 is missing, that of 3 is one too many
    (3, "a", True, at(20)),
    (4, "b", True, at(20)),  # not when it was deleted last
    (5, "a", True, at(20)),
]

LAST = 100
# change_seq, change_oper, load_id, record_hash, and for some the mark of arrival
STAGED = [
    (seq(10), "I", None, 1),
    (seq(20), "U", None, 2),
    (seq(20), "B", None, 3),
    (seq(LAST), "D", None, 4),
    (seq(LAST), "D", None, 4),  # a duplicate
    (None, None, None, 5),  # rejected
    (seq(30), "N", None, 6),
    (seq(LAST - 5), "U", None, 7),  # pending
    (seq(LAST + 5), "B", None, 8),  # pending
    (None, "L", "initial", 9),  # in a base table that has changed since
    (None, "L", "lost", 10),
    # faults
    (seq(40), "I", None, 40),
    (seq(11), "I", None, 1),  # the content of another record
    (seq(50), "U", None, 42),  # waited too long
    (seq(LAST - 1), "U", None, 43),  # a pair waits for nothing
    (seq(LAST - 1), "B", None, 44),
    (None, "I", None, 45),
    (seq(LAST - 2), "D", None, 46),
    (seq(LAST + 1), "I", None, 47),
    (seq(41), "I", None, 48, "m1"),
    (seq(42), "I", None, 49, "m2"),
    (seq(43), "I", None, 50, "m3"),
    (seq(60), "I", None, 60),
]
# the greatest counts, of this log
PARTITIONS = [("things_changes", "m2"), ("things_changes", "m1"), ("others_changes", "m3")]
# change_seq, change_oper, load_id, load_rows, record_hash, before_record_hash
LOGGED = [
    (seq(0), "L", "initial", 2, None, None),
    (seq(0), "L", "initial", None, 100, None),
    (seq(0), "L", "initial", None, 101, None),
    (seq(1), "L", "short", 2, None, None),
    (seq(1), "L", "short", None, 102, None),
    (seq(2), "L", "unmarked", None, 103, None),
    (seq(10), "I", None, None, 1, None),
    (seq(20), "U", None, None, 2, 3),
    # the same record twice
    (seq(60), "I", None, None, 60, None),
    (seq(60), "I", None, None, 60, None),
    (seq(LAST), "D", None, None, 4, None),
]
# an insert, and of 20 updates one that has its before image
IMAGELESS = [
    (seq(1), "I", None, None, 1, None),
    *[(seq(2 + n), "U", None, None, 2 + n, 30 if n == 7 else None) for n in range(20)],
]
REJECTS = [
    (None, None, "null_change_seq", 5, "{}", "2026-03-02 12:00:00", None),
    (None, "I", "null_change_seq", 6, "{}", "2026-03-02 12:00:00", "2026-03-02 13:00:00"),
]


class CompiledTests:
    """The compiled generic tests, ready to run on the tables."""

    def __init__(self, spark: SparkSession, compiled: Any) -> None:
        self._spark = spark
        self._statements = {
            result.node.name: result.node.compiled_code
            for result in compiled.results
            if result.node.resource_type == "test"
        }

    def rows(self, name: str) -> list[Row]:
        """What a test finds; its name may be shortened."""
        (statement,) = [code for test, code in self._statements.items() if test.startswith(name)]
        return self._spark.sql(statement).collect()


def write_project(folder: Path, data_tests: dict[str, list[Any]]) -> Path:
    """A dbt project with this project's macros."""
    models = [{"name": name, "data_tests": tests} for name, tests in data_tests.items()]
    files: dict[str, Any] = {f"{name}.sql": code for name, code in MODELS.items()}
    files["models.yml"] = {"version": 2, "models": models, **SOURCES}
    write_settings(folder)
    write_files(folder / "models", files)
    return folder


def write_table(spark: SparkSession, table_format: str, name: str, columns: str, rows: Any) -> None:
    """Rows as text where SQL has a cast: timestamps are easier to read that way."""
    texts = columns.replace("timestamp", "string")
    given = local_rows(spark, rows, texts)
    casts = [f"cast({part.split()[0]} as {part.split()[1]})" for part in columns.split(",")]
    frame = given.selectExpr(*casts)
    frame.writeTo(f"{SCHEMA}.{name}").using(table_format).createOrReplace()


@pytest.fixture(scope="module")
def tested(
    spark: SparkSession,
    table_format: str,
    make_dbt_project: Callable[..., DbtProject],
    tmp_path_factory: pytest.TempPathFactory,
) -> CompiledTests:
    spark.sql(f"create schema if not exists {SCHEMA}")
    open_rows = [row for row in VERSIONS if row["is_current"]]
    current = [
        {**open_rows[0], "name": "other"},  # another value
        *open_rows[2:],  # the second one is missing
        open_rows[2],  # twice
        version(99, 10, None),  # not in history
    ]
    history = [name.split()[0] for name in HISTORY.split(",")]
    for name, columns, rows in (
        ("things_history", HISTORY, [tuple(row[name] for name in history) for row in VERSIONS]),
        ("things_current", HISTORY, [tuple(row[name] for name in history) for row in current]),
        ("kept_history", HISTORY, [tuple(row[name] for name in history) for row in KEPT]),
        ("kept_current", KEPT_CURRENT, KEPT_DELETED_ROWS),
        ("things_changes", LOG, LOGGED),
        ("imageless_changes", LOG, IMAGELESS),
        ("plain_changes", LOG, IMAGELESS),
        ("things_changes_rejected", REJECTED, REJECTS),
        ("stg_things", STAGING, [(*row, None)[:5] for row in STAGED]),
        ("afterimage_progress", PROGRESS, PARTITIONS),
    ):
        write_table(spark, table_format, name, columns, rows)
    folder = write_project(tmp_path_factory.mktemp("project") / "generic_tests", DATA_TESTS)
    project = make_dbt_project(folder, schema=SCHEMA)
    return CompiledTests(spark, project("compile", "--select", "test_type:generic"))


def test_consistent_versions(tested: CompiledTests) -> None:
    found = {(row["thing_id"], row["what_is_wrong"]) for row in tested.rows("consistent_versions")}
    assert found == {
        (2, "overlaps the next version"),
        (3, "open, although another version follows"),
        (4, "ends before it begins"),
        (5, "the next version begins at an earlier time"),
        (6, "is_current and valid_to_seq disagree on whether it is open"),
        (7, "is_current and valid_to_seq disagree on whether it is open"),
        (8, "its time ends before it begins"),
        (9, "its time overlaps the next version"),
        (10, "valid_to and valid_to_seq disagree on whether it is open"),
        (11, "begins nowhere"),
        # a duplicate of a version overlaps it
        (20, "overlaps the next version"),
        (21, "another version has the same surrogate key"),
        (22, "another version has the same surrogate key"),
        (23, "has no surrogate key"),
        (30, "the version that follows has the same tracked values"),
        (31, "the version that follows names no changed column"),
        (32, "closed by an update, but no version follows at valid_to_seq"),
        (33, "the version that follows has the same tracked values"),
        (34, "the version that follows names no changed column"),
    }


def test_current_equals_open(tested: CompiledTests) -> None:
    found = sorted(
        (row["thing_id"], row["name"], row["what_is_wrong"])
        for row in tested.rows("current_equals_open_things")
    )
    missing = "open in history, but not in current"
    surplus = "in current, but not open in history"
    first, second, third = [row for row in VERSIONS if row["is_current"]][:3]
    assert found == sorted(
        [
            (first["thing_id"], "b", missing),
            (first["thing_id"], "other", surplus),
            (second["thing_id"], "a", missing),
            (third["thing_id"], "a", surplus),
            (99, "a", surplus),
        ]
    )


def test_current_equals_open_with_deleted_rows(tested: CompiledTests) -> None:
    found = {
        (row["thing_id"], row["is_deleted"], str(row["deleted_at"]), row["what_is_wrong"])
        for row in tested.rows("current_equals_open_kept")
    }
    missing = "last in history, but not in current"
    surplus = "in current, but not last in history"
    assert found == {
        (2, True, at(20), missing),
        (3, True, at(20), surplus),
        (4, True, at(40), missing),
        (4, True, at(20), surplus),
    }


LOST_LOADS = {
    ("the log has no row of this load", "lost"),
    ("the log has 1 rows of this load, its marker says 2", "short"),
    ("the log has 0 markers of this load", "unmarked"),
}
LOST_RECORDS = {
    (seq(40), "I", 40),
    (seq(11), "I", 1),
    (seq(50), "U", 42),
    (seq(LAST - 1), "U", 43),
    (seq(LAST - 1), "B", 44),
    (None, "I", 45),
    (seq(LAST - 2), "D", 46),
    (seq(LAST + 1), "I", 47),
    (seq(41), "I", 48),
    (seq(42), "I", 49),
    (seq(43), "I", 50),
    (seq(60), "I", 60),
}


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("conserved_things", set()),
        # beyond the log's last change, and of the last mark that it has read on
        (
            "conserved_while_landing",
            {(seq(LAST + 1), "I", 47), (seq(42), "I", 49), (seq(43), "I", 50)},
        ),
    ],
)
def test_conserved(tested: CompiledTests, name: str, left_out: set[Any]) -> None:
    rows = tested.rows(name)
    loads = {(row["what_is_wrong"], row["load_id"]) for row in rows if row["load_id"]}
    records = [
        (row["change_seq"], row["change_oper"], row["record_hash"])
        for row in rows
        if not row["load_id"]
    ]
    assert loads == LOST_LOADS
    assert len(records) == len(set(records))
    assert set(records) == LOST_RECORDS - left_out


def test_before_images_arrive(tested: CompiledTests) -> None:
    for name in ("arrive_as_a_rule", "arrive_without_exception", "hardly_any_are_expected"):
        assert tested.rows(name) == []
    # the settings say that there are none
    assert tested.rows("none_are_expected") == []
    (found,) = tested.rows("hardly_any_arrive")
    assert (found["updates"], found["with_before_image"]) == (20, 1)
    assert "raw_things.imageless__ct" in found["what_is_wrong"]
    assert "Fix: set `before_images: false`" in found["what_is_wrong"]


def test_no_unresolved_rejects(tested: CompiledTests) -> None:
    assert [row["raw_record"] for row in tested.rows("no_unresolved_rejects")] == ["{}"]


@pytest.mark.parametrize(
    ("model", "data_test", "parts"),
    [
        (
            "things_changes",
            {"before_images_arrive": {"arguments": {"minimum_share": 90}}},
            ["`before_images_arrive` on things_changes", "`minimum_share`", "got 90", "0 to 1"],
        ),
        (
            "things_current",
            {"current_equals_open": {"arguments": {"history": "things_history"}}},
            ["`current_equals_open` on things_current", "`history`", "ref("],
        ),
        (
            "things_history",
            {"consistent_versions": {"arguments": {"key": "thing_id"}}},
            ["`consistent_versions` on things_history", "`key`", "got thing_id", "key: ["],
        ),
        (
            "things_changes",
            {
                "conserved": {
                    "arguments": {"staging": "ref('stg_things')"},
                    "config": {"where": "change_seq > '2026'"},
                }
            },
            ["`conserved` on things_changes", "`where`"],
        ),
    ],
)
def test_wrong_arguments(
    tested: CompiledTests,  # the tables are there
    make_dbt_project: Callable[..., DbtProject],
    tmp_path: Path,
    model: str,
    data_test: dict[str, Any],
    parts: list[str],
) -> None:
    folder = write_project(tmp_path / "generic_tests", {model: [data_test]})
    error = make_dbt_project(folder, schema=SCHEMA).error_of("compile")
    assert [part for part in parts if part not in error] == []
