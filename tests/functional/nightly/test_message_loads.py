"""Full loads among messages, and messages that are gone: by dbt, expected rows are by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.functional.dbt_project import DbtProject
from tests.functional.messages_project import Message, MessagesProject, write_project
from tests.qlik_messages import change, refresh, seq

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {"id": "int", "name": "string"}
TABLES = ("late", "again", "future", "early", "said")
START = "0" * 35
NEXT_CENTURY = f"21260101{1:027d}"


def row(number: int, name: str) -> dict[str, Any]:
    return {"id": number, "name": name}


class Story:
    """Two deliveries, a build after each."""

    def __init__(self, project: MessagesProject) -> None:
        self.project = project
        first_load = [refresh(row(1, "Ann")), change("INSERT", 11, row(3, "Cid"))]
        in_future = change("INSERT", 0, row(9, "Ida"), changeSequence=NEXT_CENTURY)
        self.land("late", first_load)
        # at least once: equal rows count once
        self.land("again", [first_load[0], *first_load])
        self.land("future", [*first_load, in_future])
        self.land("early", first_load, 1)
        self.land("said", [refresh(row(2, "Bob"))])
        self.land("said", first_load, 1)
        project.dbt("build")
        # nothing but rows of a load is new to the log
        project.dbt("run", "--select", "+said_changes", complete_load=["said"])
        self.loads_at_first = {table: self.loads(table) for table in TABLES}
        # a partition that was not known when the load was recorded
        self.land("late", [refresh(row(2, "Bob")), change("INSERT", 12, row(4, "Dan"))], 1)
        # the producer went back: what comes behind the row is older than what came before it
        self.land("again", [*first_load, change("INSERT", 12, row(4, "Dan"))])
        self.land("future", [refresh(row(1, "Amy")), change("INSERT", 12, row(4, "Dan"))])
        self.land("early", [refresh(row(2, "Bob")), change("INSERT", 12, row(4, "Dan"))])
        self.land("said", [change("INSERT", 12, row(4, "Dan"))], 1)
        project.dbt("build")

    def land(self, topic: str, values: list[dict[str, Any]], partition: int = 0) -> None:
        self.project.land("raw_loads", [Message(topic, value, partition) for value in values])

    def loads(self, table: str) -> list[tuple[Any, ...]]:
        """Markers of full loads in the log: name, position, number of rows."""
        markers = f"{table}_changes where change_oper = 'L' and load_rows is not null"
        return self.project.rows(markers, "load_id, change_seq, load_rows", "change_seq")

    def history(self, table: str) -> list[tuple[Any, ...]]:
        columns = "id, name, valid_from_seq, valid_to_seq, opened_by, closed_by"
        return self.project.rows(f"{table}_history", columns, "id, valid_from_seq")

    def rejected(self, table: str) -> list[tuple[str, int, int]]:
        """Reason, partition and offset."""
        rows = self.project.rows(f"{table}_changes_rejected", "reject_reason, raw_record")
        records = [(reason, json.loads(record)) for reason, record in rows]
        return [(reason, record["partition"], record["offset"]) for reason, record in records]


@pytest.fixture(scope="module")
def story(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    table_format: str,
) -> Story:
    folder = tmp_path_factory.mktemp("loads")
    tables = {name: ("raw_loads", {"key": ["id"]}, COLUMNS) for name in TABLES}
    write_project(folder, {"raw_loads": {"on_gap": "fail"}}, tables)
    project = make_dbt_project(folder, schema="message_loads")
    return Story(MessagesProject(project, spark, table_format))


def test_an_equal_row_counts_once(story: Story) -> None:
    assert story.loads_at_first["again"] == [("again-0-0", START, 1)]


def test_a_row_that_comes_after_its_load_was_recorded_is_rejected(story: Story) -> None:
    first = ("late-0-0", START, 1)
    assert story.loads_at_first["late"] == story.loads("late") == [first]
    assert story.rejected("late") == [("unsupported_record", 1, 0)]
    assert story.history("late") == [
        (1, "Ann", START, None, "L", None),
        (3, "Cid", seq(11), None, "I", None),
        (4, "Dan", seq(12), None, "I", None),
    ]


def test_a_load_that_is_sent_twice_is_one(story: Story) -> None:
    assert story.loads("again") == story.loads_at_first["again"]
    assert story.rejected("again") == []
    assert [version[0] for version in story.history("again")] == [1, 3, 4]


def test_a_position_in_the_future_hides_no_load(story: Story) -> None:
    """It is rejected, so it says nothing about where a later load lies."""
    assert story.rejected("future") == [("future_change_seq", 0, 2)]
    assert story.loads("future") == [("future-0-0", START, 1), ("future-0-3", after(11), 1)]
    assert story.history("future") == [
        (1, "Ann", START, after(11), "L", "U"),
        (1, "Amy", after(11), None, "L", None),
        (3, "Cid", seq(11), after(11), "I", "R"),
        (4, "Dan", seq(12), None, "I", None),
    ]


def after(number: int) -> str:
    return f"{int(seq(number)) + 1:035d}"


def test_a_log_that_ends_with_a_load_has_no_gap(story: Story) -> None:
    """With `on_gap: fail` the second build stopped: the last mark is that of rows of a load."""
    assert story.loads_at_first["said"] == story.loads("said") == [("said-0-0", START, 2)]
    assert [version[0] for version in story.history("said")] == [1, 2, 3, 4]


def test_a_rebuild_takes_in_the_row_that_was_too_late(story: Story) -> None:
    """It knows all messages when it puts loads together; everything else is as it was."""
    others = ("again", "future", "said")

    def found() -> list[Any]:
        logs = "change_seq, change_oper, id, load_id, load_rows"
        return [
            *[story.history(table) for table in others],
            *[story.rejected(table) for table in others],
            *[story.project.rows(f"{table}_changes", logs, "1, 2, 3, 5") for table in others],
        ]

    before, late = found(), story.history("late")
    [(last,)] = story.project.rows("late_changes", "max(recorded_at)")
    story.project.dbt("run", rebuild_changes=True)
    assert found() == before
    assert story.loads("late") == [("late-0-0", START, 2)]
    assert story.history("late") == [late[0], (2, "Bob", START, None, "L", None), *late[1:]]
    # under the name that it was recorded by, which the log knows, though another one is first now
    assert story.loads_at_first["early"] == [("early-1-0", START, 1)]
    assert story.loads("early") == [("early-1-0", START, 2)]
    assert [version[:2] for version in story.history("early")] == [
        (1, "Ann"),
        (2, "Bob"),
        (3, "Cid"),
        (4, "Dan"),
    ]
    [(resolved,)] = story.project.rows("late_changes_rejected", "resolved_at is not null")
    assert resolved
    for table in ("raw_loads_messages", "late_changes", "late_history"):
        assert story.project.rows(table, "min(recorded_at)")[0][0] > last


def test_messages_that_were_purged_unread_stop_the_run(story: Story) -> None:
    """And a rebuild refuses what the raw table does not hold any more."""
    story.land("late", [change("INSERT", number, row(number, "Eve")) for number in (20, 21)])
    gone = "delete from raw_loads.messages where topic = 'late' and partition = 0 and offset"
    story.project.spark.sql(f"{gone} = 2")
    only = ("run", "--select", "raw_loads_messages+")
    message = story.project.dbt.error_of(*only)
    for part in ("late-0 from 2 to 2", "`on_gap` is 'fail'", "Nothing was written", "Fix: "):
        assert part in message
    before = [version[0] for version in story.history("late")]
    assert 21 not in before
    story.project.dbt(*only, accept_gap=True)
    assert [version[0] for version in story.history("late")] == [*before, 21]

    story.project.spark.sql(f"{gone} < 2")
    message = story.project.dbt.error_of(*only, rebuild_changes=True)
    for part in (
        "`rebuild_changes` is set",
        "the first at topic late, partition 0, offset",
        "Nothing was written",
    ):
        assert part in message
    assert [version[0] for version in story.history("late")] == [*before, 21]
