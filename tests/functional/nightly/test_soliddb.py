"""The log of a solidDB server, from landed records to history, by dbt.

Records and expected rows are written by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from afterimage_demo.soliddb.encoding import Value, encode_value, frame_length_prefixed
from afterimage_demo.soliddb.log import SysLog, columns_snapshot, tables_snapshot
from afterimage_demo.soliddb.tables import BankColumn, BankTable
from tests.functional.dbt_project import DbtProject
from tests.functional.soliddb_project import SolidDbProject, write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2026, 3, 2, 9)
LOG = "stg_soliddb__log_of_people"
PEOPLE = BankTable(
    "PEOPLE",
    500,
    "ID",
    (
        BankColumn("ID", 1, "INTEGER"),
        BankColumn("NAME", 7, "WVARCHAR"),
        BankColumn("SEEN_AT", 4, "TIMESTAMP"),
        BankColumn("FEE", 5, "DECIMAL", 9, 2),
    ),
)
WITH_CITY = PEOPLE.with_column(BankColumn("CITY", 0, "VARCHAR"))
RECREATED = BankTable("PEOPLE", 501, "ID", PEOPLE.columns[:2])


def person(
    number: int, name: str | None, fee: str | None = None, **more: Value
) -> dict[str, Value]:
    return {"ID": number, "NAME": name, "SEEN_AT": START, "FEE": fee, **more}


class PeopleLog:
    """Hand-written records in three deliveries; after each comes a run."""

    def __init__(self) -> None:
        log = self.log = SysLog()
        self.deliveries: list[list[dict[str, Any]]] = []
        self.rejected: dict[str, str] = {}
        self.history_while_pending: list[tuple[Any, ...]] = []
        log.heartbeat()
        self.first_transaction()
        log.begin(START + timedelta(minutes=2), capture_off=True)
        log.delete(PEOPLE, person(2, "Bob"))
        log.insert(PEOPLE, person(9, "Ida"))
        log.commit()
        self.malformed_records()
        log.begin(START + timedelta(minutes=4))
        log.ddl(22, "BRANCH.PEOPLE", None, sql="ALTER TABLE PEOPLE ADD COLUMN CITY VARCHAR")
        log.insert(WITH_CITY, person(4, "Dan", CITY="Rome"))
        log.ddl(16, "PEOPLE_BY_NAME", 500)
        log.ddl(99, "SOMETHING", None)
        log.commit()
        self.altered_at = log.address
        log.heartbeat()
        log.shutdown()
        log.begin(START + timedelta(minutes=5))
        log.insert(WITH_CITY, person(30, "Eve", CITY=None))
        self.deliver()

        log.commit()
        log.begin(START + timedelta(minutes=6))
        log.ddl(73, "PEOPLE", 500)
        log.insert(WITH_CITY, person(5, "Fay", CITY="Oslo"))
        log.commit()
        log.begin(START + timedelta(minutes=7))
        log.update(WITH_CITY, person(5, "Fay", CITY="Oslo"), person(6, "Fay", CITY="Oslo"))
        log.commit()
        log.begin(START + timedelta(minutes=8))
        log.ddl(17, "PEOPLE", 500, sql="DROP TABLE PEOPLE")
        log.commit()
        log.begin(START + timedelta(minutes=9))
        log.ddl(45, "BRANCH.PEOPLE", 501)
        log.insert(RECREATED, {"ID": 6, "NAME": "Gus"})
        log.commit()
        self.created_at = log.address
        self.deliver()

        log.begin(START + timedelta(minutes=10))
        log.insert(RECREATED, {"ID": 8, "NAME": "Hal"})
        log.commit()
        self.deliver()

    def first_transaction(self) -> None:
        log = self.log
        log.begin(START)
        log.insert(PEOPLE, person(1, "Ann", "1.50"))
        log.insert(PEOPLE, person(2, "Bob"))
        log.insert(PEOPLE, person(3, "Cid 🚚", "-0.01"))
        log.commit()
        log.begin(START + timedelta(minutes=1))
        log.update(PEOPLE, person(1, "Ann", "1.50"), person(1, "Āda", "1234567.89"))
        log.delete(PEOPLE, person(3, "Cid 🚚", "-0.01"))
        log.commit()

    def malformed_records(self) -> None:
        log = self.log
        log.begin(START + timedelta(minutes=3))
        good = log.encoded(PEOPLE, person(20, "Bad"))

        def spoilt(values: list[bytes | None]) -> bytes:
            return frame_length_prefixed(values)

        number = encode_value(21, 1)
        name = encode_value("Bad", 7)
        for what, data in {
            "malformed_message: 2 bytes left over at byte 38, a length has 4": good + b"\0\0",
            "malformed_message: 2 values for 4 columns": spoilt([number, name]),
            "malformed_message: DATA is NULL": None,
            "uncastable_value:SEEN_AT: SEEN_AT: there is no date 2026-2-30": spoilt(
                [number, name, bytes.fromhex("87ea021e00000000000000"), None]
            ),
            "uncastable_value:seen_at": spoilt(
                [number, name, bytes.fromhex("87ea0301000000") + b"\0\0\0\1", None]
            ),
            "uncastable_value:fee": spoilt([number, name, None, encode_value("0.005", 5)]),
            "null_key": spoilt([None, name, None, None]),
        }.items():
            self.rejected[log.raw(1, PEOPLE, data).hex().upper()] = what
        log.raw(1, BankTable("GONE", 999, "ID", ()), b"")
        log.commit()

    def deliver(self) -> None:
        self.deliveries.append(self.log.rows)
        self.log.rows = []


@pytest.fixture(scope="module")
def people() -> PeopleLog:
    return PeopleLog()


@pytest.fixture(scope="module")
def project(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path_factory: pytest.TempPathFactory,
    people: PeopleLog,
) -> SolidDbProject:
    """Three deliveries, a run after each; the catalogue comes late for the second one."""
    folder = tmp_path_factory.mktemp("soliddb")
    write_project(folder)
    project = SolidDbProject(make_dbt_project(folder, schema="soliddb"), spark, table_format)
    snapshots: list[tuple[list[BankTable], bytes | None]] = [
        ([PEOPLE], None),
        ([WITH_CITY], people.altered_at),
        ([RECREATED], people.created_at),
    ]
    for number, delivery in enumerate(people.deliveries):
        project.land_log("raw_people", delivery)
        # the first two snapshots before the first run, the third one before the last
        for tables, address in snapshots[2:] if number == 2 else snapshots[:2] * (number == 0):
            project.land_catalogue(
                "raw_people", tables_snapshot(tables, address), columns_snapshot(tables, address)
            )
        project.dbt("run", "--select", LOG + "+")
        if number == 1:
            people.history_while_pending = project.rows("people_history", "id, name")
    return project


def test_history_is_what_the_records_say(project: SolidDbProject) -> None:
    rows = project.rows(
        "people_history",
        "id, name, cast(fee as string), city, opened_by, closed_by",
        "1, valid_from_seq",
    )
    assert rows == [
        (1, "Ann", "1.50", None, "I", "U"),
        (1, "Āda", "1234567.89", None, "U", "T"),
        # the transaction with his delete, and the insert of Ida, should not be propagated
        (2, "Bob", None, None, "I", "T"),
        (3, "Cid 🚚", "-0.01", None, "I", "D"),
        (4, "Dan", None, "Rome", "I", "T"),
        # a changed key is a delete and an insert
        (5, "Fay", None, "Oslo", "I", "D"),
        (6, "Fay", None, "Oslo", "I", "T"),
        (6, "Gus", None, None, "I", None),
        (8, "Hal", None, None, "I", None),
        (30, "Eve", None, None, "I", "T"),
    ]


def test_values_have_the_types_of_the_catalogue(project: SolidDbProject) -> None:
    types = dict(project.spark.table("soliddb.people_history").dtypes)
    wanted = {name: types[name] for name in ("id", "name", "seen_at", "fee", "city")}
    assert wanted == {
        "id": "int",
        "name": "string",
        "seen_at": "timestamp",
        "fee": "decimal(9,2)",
        "city": "string",
    }
    assert project.rows("people_history where id = 1", "distinct seen_at") == [(START,)]


def test_a_column_is_unknown_before_and_after_it_is_there(project: SolidDbProject) -> None:
    known = dict(project.rows("people_changes where change_oper = 'I'", "name, known_columns"))
    assert known["Ann"] == ["id", "name", "seen_at", "fee"]
    assert known["Dan"] is None
    assert known["Gus"] == ["id", "name"]


def test_an_update_carries_its_before_image(project: SolidDbProject) -> None:
    rows = project.rows("people_changes where change_oper = 'U'", "id, before.name, name")
    assert rows == [(1, "Ann", "Āda")]


def test_changed_at_is_when_the_commit_was_landed(project: SolidDbProject) -> None:
    (found,) = project.rows("people_changes where change_oper = 'U'", "changed_at")
    assert found == (START + timedelta(minutes=1, seconds=2),)


def test_what_cannot_be_decoded_is_rejected_with_a_reason(
    project: SolidDbProject, people: PeopleLog
) -> None:
    rows = project.rows(
        "people_changes_rejected",
        "change_seq, reject_reason, get_json_object(raw_record, '$.reject_detail'), "
        "get_json_object(raw_record, '$.undecoded_data')",
    )
    found = {seq: f"{reason}: {detail}" if detail else reason for seq, reason, detail, _ in rows}
    assert found == people.rejected
    sent = {
        row["logaddr"].hex().upper(): row["data"] for row in people.deliveries[0] if row["data"]
    }
    for seq, _, detail, data in rows:
        if detail and data:
            assert bytes.fromhex(data) == sent[seq]


def test_records_of_a_table_without_catalogue_are_kept_undecoded(project: SolidDbProject) -> None:
    rows = project.rows(
        "stg_soliddb__log_of_people where relation_id = 999", "reject_reason, undecoded_data"
    )
    assert rows == [("unknown_schema", "")]


def test_an_open_tail_and_a_table_without_catalogue_wait(
    project: SolidDbProject, people: PeopleLog
) -> None:
    # of the second delivery: the transactions before the one that writes to the new table
    assert (6, "Fay") in people.history_while_pending
    assert (6, "Gus") not in people.history_while_pending
    assert len(project.rows("stg_soliddb__log_of_people where relation_id = 501", "1")) == 3


def test_ddl_events(project: SolidDbProject) -> None:
    rows = project.rows(
        "soliddb_ddl_events", "relation_id, table_name, ddl_kind, ddl_name, sql_text", "log_address"
    )
    assert rows == [
        (
            500,
            "PEOPLE",
            "alter table",
            "BRANCH.PEOPLE",
            "ALTER TABLE PEOPLE ADD COLUMN CITY VARCHAR",
        ),
        (500, "PEOPLE", "create index", "PEOPLE_BY_NAME", None),
        (None, None, "unknown", "SOMETHING", None),
        (500, "PEOPLE", "truncate table", "PEOPLE", None),
        (500, "PEOPLE", "drop table", "PEOPLE", "DROP TABLE PEOPLE"),
        (501, "PEOPLE", "create table", "BRANCH.PEOPLE", None),
    ]


def test_the_log_shows_when_the_server_shut_down(
    project: SolidDbProject, people: PeopleLog
) -> None:
    records = [row for delivery in people.deliveries for row in delivery]

    def count(hour: int, is_counted: Callable[[dict[str, Any]], bool]) -> int:
        return sum(row["landed_at"].hour == hour and is_counted(row) for row in records)

    project.dbt("run", "--select", "soliddb_log_activity")
    rows = project.rows(
        "soliddb_log_activity",
        "activity_hour, records, committed_transactions, capture_off_transactions, heartbeats, "
        "shutdowns, last_shutdown_at",
    )
    hours = sorted({row["landed_at"].hour for row in records})
    assert hours == [0, 9]
    assert [row[:6] for row in rows] == [
        (
            START.replace(hour=hour),
            count(hour, lambda row: row["recid"] is not None),
            count(hour, lambda row: row["recid"] == 12),
            {0: 0, 9: 1}[hour],
            count(hour, lambda row: row["flags"] == 0),
            {0: 0, 9: 1}[hour],
        )
        for hour in hours
    ]
    (notice,) = [row for row in records if row["flags"] == 2]
    assert [row[6] for row in rows] == [None, notice["landed_at"]]


def test_no_record_is_lost(project: SolidDbProject) -> None:
    project.dbt("test", "--select", LOG + "+")


def test_a_run_without_new_records_writes_nothing(project: SolidDbProject) -> None:
    tables = ("stg_soliddb__log_of_people", "people_changes", "afterimage_progress")
    before = [sorted(map(repr, project.rows(table, "*"))) for table in tables]
    project.dbt("run", "--select", "stg_soliddb__log_of_people+")
    assert [sorted(map(repr, project.rows(table, "*"))) for table in tables] == before


def test_a_run_that_did_not_record_its_progress_reads_nothing_twice(
    project: SolidDbProject,
) -> None:
    records = project.rows("stg_soliddb__log_of_people", "log_address")
    project.spark.sql(
        "delete from soliddb.afterimage_progress where model = 'stg_soliddb__log_of_people'"
    )
    project.dbt("run", "--select", "stg_soliddb__log_of_people")
    assert project.rows("stg_soliddb__log_of_people", "log_address") == records


def test_the_log_is_decoded_again_on_request(project: SolidDbProject) -> None:
    columns = "change_seq, record_id, relation_id, image, reject_reason, sql_text, record_hash"
    before = project.rows("stg_soliddb__log_of_people", columns, "log_address")
    project.dbt("run", "--select", "stg_soliddb__log_of_people", rebuild_changes=True)
    assert project.rows("stg_soliddb__log_of_people", columns, "log_address") == before
