"""Qlik messages as JSON, from landed messages to history, by dbt; expected rows are by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from afterimage_demo.kafka.forms import json_envelope
from tests.functional.dbt_project import DbtProject
from tests.functional.messages_project import Message, MessagesProject, write_project
from tests.qlik_messages import change, refresh, seq

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[1] / "data" / "qlik_messages"
WIDE = {f"c{number}": "string" for number in range(1, 118)}
EIGHTEEN = ["id", *[f"col_{number}" for number in range(1, 42)], "__database", "__table"]
PEOPLE = {"id": "int", "name": "string", "fee": "decimal(9,2)", "photo": "binary"}


def example(name: str) -> Any:
    return json.loads((EXAMPLES / name).read_text(encoding="utf-8"))


def person(number: int, name: str | None, fee: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "fee": fee, "photo": None, **more}


class Story:
    """Three deliveries, a build after each, and what is seen in between."""

    def __init__(self, project: MessagesProject) -> None:
        self.project = project
        self.first()
        project.dbt("build")
        self.loads_at_first = self.loads()
        self.updates_at_first = self.updates()
        self.second()
        project.dbt("build")
        self.loads_then = self.loads()
        self.commits = [self.state()]
        project.dbt("run")
        self.commits.append(self.state())
        project.dbt("build", complete_load=["people"])
        self.loads_in_the_end = self.loads()

    def loads(self) -> list[tuple[Any, ...]]:
        """Markers of full loads in the log."""
        rows = self.project.rows(
            "people_changes", "load_id, change_seq, load_rows, load_rows is null", "change_seq"
        )
        return [row[:3] for row in rows if row[0] and not row[3]]

    def updates(self) -> list[tuple[Any, ...]]:
        """Updates in the log: their positions, and whether they lack a before image."""
        updates = "people_changes where change_oper = 'U'"
        return self.project.rows(updates, "change_seq, before is null", "change_seq")

    def state(self) -> list[tuple[Any, ...]]:
        """Row counts of all tables that a run commits to, progress included."""
        tables = ("afterimage_progress", "raw_topics_messages", "people_changes", "people_history")
        return [self.project.rows(table, "count(*)")[0] for table in tables]

    def first(self) -> None:
        wide = {"headers": example("headers_of_a_wide_insert.json"), "data": {}}
        wide["data"] = {name: "x" if number <= 62 else None for number, name in enumerate(WIDE, 1)}
        p = "people"
        self.project.land(
            "raw_topics",
            [
                Message("kit", example("update_of_the_second_column.json")),
                Message("customer", example("update_with_an_unknown_column.json")),
                Message("eighteen", example("row_of_a_full_load_with_a_time.json")),
                Message("wide", wide),
                Message(p, refresh(person(1, "Ann"))),
                Message(p, refresh(person(2, "Bob", "1.50")), partition=1),
                # at least once: the same row again
                Message(p, refresh(person(2, "Bob", "1.50")), partition=1),
                Message(p, json_envelope(change("INSERT", 11, person(3, "Cid", photo="00FF")))),
                Message(p, change("UPDATE", 12, person(1, "Ada"), person(1, "Ann"))),
                Message(p, change("UPDATE", 12, person(1, "Ada"), person(1, "Ann"))),
                Message(p, None),
                Message(p, "{not json"),
                Message(p, b"\xff\xfe\x00"),
                Message(p, "[1]"),
                Message(p, example("form_of_2016.json")),
                Message(p, {"magic": "atMSG", "type": "XX", "message": {}}),
                Message(p, {"magic": "other", "type": "DT", "message": {}}),
                Message(p, {"magic": "atMSG", "type": "DT", "message": {"data": {"id": 1}}}),
                Message(p, {"data": {"id": 1}}),
                Message(p, change("MERGE", 13, person(1, "Ada"))),
                Message(p, change("INSERT", 14, person(9, "Ida"), changeSequence="")),
                Message(p, change("INSERT", 15, person(9, "Ida"), changeSequence="15")),
                Message(p, change("INSERT", 16, person(9, "Ida"), changeMask="0G")),
                Message(p, change("INSERT", 17, person(9, "Ida"), columnMask="100F")),
                Message(p, change("INSERT", 18, person(9, "Ida", "1.555"))),
                # without its before image
                Message(p, change("UPDATE", 13, person(2, "Rob", "1.50"))),
            ],
        )

    def second(self) -> None:
        p = "people"
        self.project.land(
            "raw_topics",
            [
                # the other partition was behind: its load ends here
                Message(p, change("DELETE", 19, None, person(2, "Rob", "1.50")), partition=1),
                # a delete in `data`, and a key change, with a mask that says nothing
                Message(p, change("DELETE", 21, person(3, "Cid"))),
                Message(
                    p,
                    change(
                        "UPDATE",
                        20,
                        person(7, "Ada"),
                        person(1, "Ada"),
                        changeMask="0x01",
                        columnMask="",
                    ),
                ),
                # unknown, not NULL: by the column mask, and left out
                Message(
                    p,
                    change(
                        "UPDATE",
                        22,
                        person(7, None, "2.00"),
                        person(7, None),
                        changeMask="04",
                        columnMask="0D",
                    ),
                ),
                Message(p, change("INSERT", 23, {"id": 8, "name": "Eve"})),
                # a reload: 7 has another name, 8 is gone; nothing comes behind it in partition 0
                Message(p, refresh(person(7, "Amy", "2.00"))),
                Message(p, refresh(person(6, "Fay"))),
            ],
        )


@pytest.fixture(scope="module")
def story(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    table_format: str,
) -> Story:
    folder = tmp_path_factory.mktemp("messages")
    texts = {
        "kit": ("ID", "NAME", "tableName"),
        "customer": ("CUSTOMER_ID", "FIRST_NAME", "LAST_NAME"),
        "eighteen": tuple(EIGHTEEN),
        "wide": tuple(WIDE),
    }
    write_project(
        folder,
        {"raw_topics": {}},
        {
            "people": ("raw_topics", {"key": ["id"]}, PEOPLE),
            **{
                name: ("raw_topics", {}, dict.fromkeys(columns, "string"))
                for name, columns in texts.items()
            },
        },
        staged_only=texts,
    )
    project = make_dbt_project(folder, schema="messages")
    return Story(MessagesProject(project, spark, table_format))


def test_an_update_names_the_column_that_it_changed(story: Story) -> None:
    """The change mask counts data columns only: 02 is the second one."""
    columns = "change_oper, change_seq, NAME, declared_changed_columns, known_columns, changed_at"
    place = "20230911032325000000000000000000005"
    at = datetime(2023, 9, 11, 3, 23, 25)
    assert story.project.rows("stg_kit", f"{columns}, transaction_event", "change_oper") == [
        ("B", place, "ok", None, None, at, 1),
        ("U", place, "test Kafka", ["NAME"], None, at, 1),
    ]


def test_a_column_that_was_not_read_is_unknown(story: Story) -> None:
    """Column mask 05: the first and the third column are there. Nothing changed, mask 00."""
    columns = "change_oper, known_columns, declared_changed_columns, transaction_id"
    known = ["CUSTOMER_ID", "LAST_NAME"]
    transaction = "00000000000000000000000000120001"
    assert story.project.rows("stg_customer", columns) == [
        ("B", known, None, transaction),
        ("U", known, [], transaction),
    ]


def test_a_wide_mask_has_117_bits(story: Story) -> None:
    [(declared, known, reason, number)] = story.project.rows(
        "stg_wide", "declared_changed_columns, known_columns, reject_reason, transaction_event"
    )
    mask = 0x1F903C3000003FFFFFFFFFFFFFFFFF
    assert reason is None and number == 1
    assert declared == [f"c{bit + 1}" for bit in range(117) if mask >> bit & 1]
    # a column whose bit is clear has no value, so it is not known
    assert known == declared


def test_rows_of_a_load_wait_until_it_is_whole(story: Story) -> None:
    """Of this load one row has come, and no change behind it."""
    assert story.project.rows("stg_eighteen", "count(*)") == [(0,)]
    records = story.project.rows(
        "raw_topics_messages where table_name = 'eighteen'",
        "kind, message_count, ended_by, `offset`",
    )
    assert records == [("load_part", 1, None, 0)]


def test_loads_are_kept_apart(story: Story) -> None:
    first = ("people-0-0", "0" * 35, 2)
    assert story.loads_at_first == []
    assert story.loads_then == [first]
    # nothing comes behind the second one: the user says that it is whole
    assert story.loads_in_the_end == [first, ("people-0-24", seq(24), 2)]


def test_an_update_without_before_data_waits_for_nothing(story: Story) -> None:
    """It is the newest change, so the look-back has not passed it."""
    assert story.updates_at_first == [(seq(12), False), (seq(13), True)]


def test_history_follows_messages(story: Story) -> None:
    rows = story.project.rows(
        "people_history",
        "id, name, cast(fee as string), valid_from_seq, valid_to_seq, opened_by, closed_by, "
        "unknown_columns",
        "id, valid_from_seq",
    )
    start = "0" * 35
    assert rows == [
        (1, "Ann", None, start, seq(12), "L", "U", None),
        (1, "Ada", None, seq(12), seq(20), "U", "K", None),
        (2, "Bob", "1.50", start, seq(13), "L", "U", None),
        (2, "Rob", "1.50", seq(13), seq(19), "U", "D", None),
        (3, "Cid", None, seq(11), seq(21), "I", "D", None),
        (6, "Fay", None, seq(24), None, "L", None, None),
        (7, "Ada", None, seq(20), seq(22), "K", "U", None),
        (7, "Ada", "2.00", seq(22), seq(24), "U", "U", None),
        (7, "Amy", "2.00", seq(24), None, "L", None, None),
        (8, "Eve", None, seq(23), seq(24), "I", "R", ["fee", "photo"]),
    ]


def test_what_is_wrong_is_rejected_with_a_reason(story: Story) -> None:
    rows = story.project.rows(
        "people_changes_rejected", "reject_reason, raw_record, resolved_at is null", "recorded_at"
    )
    found = {json.loads(raw)["offset"]: (reason, json.loads(raw)) for reason, raw, _ in rows}
    assert {offset: reason for offset, (reason, _) in found.items()} == {
        5: "malformed_message",
        6: "malformed_message",
        7: "malformed_message",
        8: "malformed_message",
        9: "malformed_message",
        10: "malformed_message",
        11: "malformed_message",
        12: "malformed_message",
        13: "unknown_operation",
        14: "null_change_seq",
        15: "malformed_change_seq",
        16: "malformed_mask",
        17: "mask_too_wide",
        18: "uncastable_value:fee",
    }
    details = {offset: record["reject_detail"] for offset, (_, record) in found.items()}
    assert details[5] == "no JSON object of a message"
    assert details[6] == "not JSON: no UTF-8 text"
    assert details[8] is not None and details[8].startswith("the form of 2016 (task_name, op")
    assert details[9] == "`type` is neither DT nor MD"
    assert details[10] == "`magic` is not atMSG"
    assert details[11] == "`headers` are missing"
    assert details[12] == "neither `magic` nor `headers.operation`"
    assert found[5][1]["undecoded_value"] == "{not json"
    assert found[6][1]["undecoded_value"] == "FFFE00"


def test_tombstones_are_counted(story: Story) -> None:
    condition = "count_if(change_oper = 'N'), count_if(change_oper = 'N' and reject_reason is null)"
    assert story.project.rows("stg_people", condition) == [(1, 1)]


def test_a_query_of_marks_of_arrival_reads_no_images(story: Story) -> None:
    """Each run with new messages scans all decoded messages for them."""
    staged = story.project.spark.table(f"{story.project.dbt.schema}.stg_people")
    changes = staged.filter("change_oper not in ('L', 'N') or change_oper is null")
    marks = changes.select("arrival").distinct()
    leaves = marks._jdf.queryExecution().optimizedPlan().collectLeaves()  # no other way to ask
    (scan,) = [leaves.apply(number) for number in range(leaves.size())]
    columns = {scan.output().apply(number).name() for number in range(scan.output().size())}
    assert "arrival" in columns
    assert not columns & {"image", "before"}


def test_a_run_without_news_commits_nothing(story: Story) -> None:
    before, after = story.commits
    assert before == after


def test_complete_load_names_a_table(story: Story) -> None:
    message = story.project.dbt.error_of(
        "run", "--select", "raw_topics_messages", complete_load=["persons"]
    )
    assert "raw_topics_messages: the var `complete_load` names 'persons'. Allowed: " in message


@pytest.fixture
def holes(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> MessagesProject:
    """A table whose messages another tool lands, in any order."""
    dbt = make_dbt_project(tmp_path, schema="message_holes")
    columns = {"id": "int", "name": "string"}
    settings = {"key": ["id"], "before_images": False}
    write_project(
        tmp_path,
        {"raw_holes": {"on_gap": "ignore"}},
        {"thing": ("raw_holes", settings, columns)},
    )
    return MessagesProject(dbt, spark, table_format)


def _land_at(project: MessagesProject, offset: int, *messages: Any) -> None:
    project.next_offset["raw_holes", "thing", 0] = offset
    project.land("raw_holes", [Message("thing", message) for message in messages])


def _things(*numbers: int) -> list[Any]:
    return [change("INSERT", 10 + n, {"id": n, "name": f"thing {n}"}) for n in numbers]


@pytest.mark.both_formats
def test_messages_that_fill_a_hole_later_are_read(holes: MessagesProject) -> None:
    _land_at(holes, 0, *_things(0, 1))
    _land_at(holes, 4, *_things(4, 5))
    holes.dbt("build")
    _land_at(holes, 2, *_things(2))
    _land_at(holes, 3, refresh({"id": 3, "name": "loaded"}))
    # before a run has read them
    failed = holes.dbt.error_of("test", "--select", "thing_changes")
    assert "conserved" in failed
    holes.dbt("build")
    # a run that was killed before it recorded its progress reads them again
    at = holes.rows("raw_holes_messages", "cast(max(recorded_at) as string)")[0][0]
    holes.spark.sql(
        f"delete from {holes.dbt.schema}.afterimage_progress "
        f"where model like '%raw_holes_messages' and recorded_at = timestamp '{at}'"
    )
    commits = [holes.rows("afterimage_progress", "count(*)")]
    holes.dbt("build")
    commits.append(holes.rows("afterimage_progress", "count(*)"))
    holes.dbt("run")
    commits.append(holes.rows("afterimage_progress", "count(*)"))
    assert commits[0] != commits[1] == commits[2]
    _land_at(holes, 6, *_things(6))
    holes.dbt("build")
    assert holes.rows("thing_changes", "id") == [(number,) for number in (0, 1, 2, 4, 5, 6)]
    decoded = holes.rows(
        "raw_holes_messages where kind in ('change', 'rejected') group by 1, 2",
        "`offset`, kind, count(*)",
    )
    assert decoded == [(n, "rejected" if n == 3 else "change", 1) for n in range(7)]
    # a row of a load that was read without it belongs to no load any more
    assert holes.rows("thing_changes_rejected", "reject_reason") == [("unsupported_record",)]


@pytest.mark.nightly
@pytest.mark.both_formats
def test_offsets_that_were_cut_off_or_lost_stop_the_run(holes: MessagesProject) -> None:
    """Without them a run would append all messages again."""
    _land_at(holes, 0, *_things(0, 1))
    holes.land("raw_holes", [Message("thing", _things(4)[0], partition=1)])
    holes.dbt("build")
    progress = f"{holes.dbt.schema}.afterimage_progress"
    written = holes.rows("raw_holes_messages", "`offset`, kind")
    _land_at(holes, 2, *_things(2))
    # the last one lacks a partition
    objects = """'{"thing": 1}'""", """'{"thing": {"1": 0}}'"""
    for text in ("substr(arrival, 1, 9)", "null", "'{}'", "'[1]'", *objects):
        holes.spark.sql(
            f"update {progress} set arrival = {text} where model = 'raw_holes_messages'"
        )
        message = holes.dbt.error_of("run")
        assert "`arrival` of the model raw_holes_messages (recorded_at 2" in message
        assert "was cut off or changed" in message
        assert "Fix: rebuild the log: dbt run --select raw_holes_messages+ --vars" in message
        assert holes.rows("raw_holes_messages", "`offset`, kind") == written
    holes.dbt("run", rebuild_changes=True)
    _land_at(holes, 3, *_things(3))
    holes.dbt("build")
    assert holes.rows("thing_changes", "id") == [(number,) for number in range(5)]
    changes = "raw_holes_messages where kind = 'change'"
    assert holes.rows(changes, "`partition`, `offset`", "1, 2") == [
        (0, 0),
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 0),
    ]
