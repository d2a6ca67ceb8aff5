"""`afterimage add-table` on landed change tables: its files build, and the marts are right."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from afterimage_demo.soliddb.log import SysLog, columns_snapshot, tables_snapshot
from afterimage_demo.soliddb.tables import BankColumn, BankTable, Row
from dbt_afterimage.cli import app
from dbt_afterimage.storage.local_relation import local_rows
from tests.functional.dbt_project import DbtProject
from tests.functional.project_files import write_settings
from tests.qlik_messages import change
from tests.soliddb_columns import SYS_COLUMNS, SYS_LOG, SYS_TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RAW = "add_table_raw"
LOADED_AT = "2026-03-01 07:00:00"
CAPTURED = Path(__file__).parents[1] / "data/feeds/debezium.replica_identity_full.json"


def change_seq(time: str, number: int) -> str:
    return f"20260301{time}00" + "0" * 12 + f"{number:07d}"


def land(spark: SparkSession) -> None:
    """Invoices as in the README; clients with a mask in the order that Qlik does not document.

    The change table of clients has text in all columns, its base table is live and has types, and
    an update of `notes` sets no bit of the mask.
    """
    spark.sql(f"create schema if not exists {RAW}")
    spark.sql(
        f"create table {RAW}.invoices (invoice_id bigint, status string, amount decimal(9,2))"
    )
    spark.sql(f"insert into {RAW}.invoices values (1, 'open', 10.00), (2, 'open', 20.00)")
    spark.sql(
        f"create table {RAW}.invoices__ct (header__change_seq string, header__change_oper string, "
        "header__change_mask string, header__stream_position string, header__operation string, "
        "header__transaction_id string, header__timestamp timestamp, "
        "invoice_id bigint, status string, amount decimal(9,2))"
    )
    # seven header columns: status is bit 8, so an update of it sets 2 to the power of 8
    spark.sql(
        f"""
        insert into {RAW}.invoices__ct values
        ('{change_seq("080000", 1)}', 'B', null, 's', 'BEFOREIMAGE', 'a', null, 1, 'open', 10.00),
        ('{change_seq("080000", 1)}', 'U', '0100', 's', 'UPDATE', 'a', null, 1, 'paid', 10.00),
        ('{change_seq("090000", 2)}', 'D', '0080', 's', 'DELETE', 'b', null, 2, null, null),
        ('{change_seq("100000", 3)}', 'I', '0380', 's', 'INSERT', 'c', null, 3, 'open', 30.00)
        """
    )
    spark.sql(
        f"create table {RAW}.clients (client_id bigint, name string, notes string, "
        "balance decimal(9,2)) tblproperties ('primary-key' = 'client_id')"
    )
    spark.sql(
        f"insert into {RAW}.clients values (1, 'Ann', 'later', 12.50), (2, 'Bob', 'none', 3.00)"
    )
    spark.sql(
        f"create table {RAW}.clients__ct (header__change_seq string, header__change_oper string, "
        "header__change_mask binary, client_id string, name string, notes string, balance string)"
    )
    # three header columns: name is bit 4 of the last byte, balance is bit 6
    spark.sql(
        f"""
        insert into {RAW}.clients__ct values
        ('{change_seq("080000", 1)}', 'B', null, '1', 'Anna', 'first', '12.50'),
        ('{change_seq("080000", 1)}', 'U', unhex('0010'), '1', 'Ann', 'first', '12.50'),
        ('{change_seq("090000", 2)}', 'B', null, '1', 'Ann', 'first', '12.50'),
        ('{change_seq("090000", 2)}', 'U', unhex('0000'), '1', 'Ann', 'later', '12.50'),
        ('{change_seq("100000", 3)}', 'I', unhex('0058'), '2', 'Bob', 'none', '2.00'),
        ('{change_seq("110000", 4)}', 'B', null, '2', 'Bob', 'none', '2.00'),
        ('{change_seq("110000", 4)}', 'U', unhex('0040'), '2', 'Bob', 'none', '3.00')
        """
    )


def land_openedge(spark: SparkSession) -> None:
    """A machine is created and updated at policy level 3; another table has the same sequences."""
    spark.sql(
        f"create table {RAW}.cdc_change_tracking (`_Policy-Id` string, `_Tran-Id` int, "
        "`_Time-Stamp` timestamp, `_Change-Sequence` bigint, `_Operation` int, "
        "`_Change-FieldMap` binary, `_Recid` bigint, `_Source-Table-Number` int, "
        "`_Partition-Id` int, `_Tenant-Id` int, `_User-Name` string)"
    )
    # the second field is bit 1 of the first byte
    spark.sql(
        f"""
        insert into {RAW}.cdc_change_tracking values
        ('p', 1, timestamp '2026-03-01 08:00:00', 1, 1, null, 5, 101, 0, 0, 'ann'),
        ('p', 2, timestamp '2026-03-01 09:00:00', 2, 4, unhex('02'), 5, 101, 0, 0, 'bob'),
        ('q', 3, timestamp '2026-03-01 08:00:01', 1, 1, null, 6, 102, 0, 0, 'ann'),
        ('q', 4, timestamp '2026-03-01 09:00:01', 2, 1, null, 7, 102, 0, 0, 'ann')
        """
    )
    spark.sql(
        f"create table {RAW}.`CDC_Work-Centers` (`_Tran-Id` int, `_Time-Stamp` timestamp, "
        "`_Change-Sequence` bigint, `_Continuation-Position` int, `_ArrayIndex` int, "
        "`_Fragment` int, `_Operation` int, `machine-id` bigint, state string)"
    )
    spark.sql(
        f"""
        insert into {RAW}.`CDC_Work-Centers` values
        (1, timestamp '2026-03-01 08:00:00', 1, 0, 0, 0, 1, 7, 'idle'),
        (2, timestamp '2026-03-01 09:00:00', 2, 0, 0, 0, 3, 7, 'idle'),
        (2, timestamp '2026-03-01 09:00:00', 2, 0, 0, 0, 4, 7, 'running')
        """
    )


def land_messages(spark: SparkSession) -> None:
    """Three orders are inserted, one is updated, and two are deleted by messages with the key."""
    messages = [
        *(
            change("INSERT", number, {"order_id": number, "state": "new", "due": "2026-04-01"})
            for number in (1, 2, 3)
        ),
        change(
            "UPDATE",
            4,
            {"order_id": 1, "state": "paid", "due": "2026-04-01"},
            {"order_id": 1, "state": "new", "due": "2026-04-01"},
        ),
        change("DELETE", 5, {"order_id": 2}),
        change("DELETE", 6, {"order_id": 3}),
    ]
    spark.sql(
        f"create table {RAW}.messages (topic string, partition int, offset bigint, key binary, "
        "value binary, headers array<struct<key:string,value:binary>>, timestamp timestamp, "
        "landed_at timestamp, landing_batch string)"
    )
    noon = "timestamp '2026-03-02 12:00:00'"
    rows = ", ".join(
        f"('shop.orders', 0, {offset}, null, X'{json.dumps(message).encode().hex()}', null, "
        f"{noon}, {noon}, 'first')"
        for offset, message in enumerate(messages)
    )
    spark.sql(f"insert into {RAW}.messages values {rows}")


def land_soliddb(spark: SparkSession) -> None:
    """A loan is inserted and changed, another one inserted and deleted, in two transactions."""
    loans = BankTable(
        "LOANS",
        500,
        "LOAN_NO",
        (BankColumn("LOAN_NO", 1, "INTEGER"), BankColumn("STATE", 7, "NCHAR")),
    )
    first: Row = {"LOAN_NO": 1, "STATE": "open"}
    second: Row = {"LOAN_NO": 2, "STATE": "open"}
    log = SysLog()
    log.begin(datetime(2026, 3, 2, 9))
    log.insert(loans, first)
    log.insert(loans, second)
    log.commit()
    log.begin(datetime(2026, 3, 2, 10))
    log.update(loans, first, {**first, "STATE": "paid"})
    log.delete(loans, second)
    log.commit()
    for name, kind, landed in (
        ("sys_log", SYS_LOG, log.rows),
        ("sys_tables", SYS_TABLES, tables_snapshot([loans], None)),
        ("sys_columns", SYS_COLUMNS, columns_snapshot([loans], None)),
    ):
        local_rows(spark, landed, kind).writeTo(f"{RAW}.{name}").create()


def land_feeds(spark: SparkSession) -> None:
    """Parcels as a change data feed of Delta, prices as two extracts, customers of Debezium."""
    spark.sql(
        f"create table {RAW}.parcels_changes (parcel_id bigint, place string, _change_type string, "
        "_commit_version bigint, _commit_timestamp timestamp)"
    )
    spark.sql(
        f"""
        insert into {RAW}.parcels_changes values
        (1, 'depot', 'insert', 1, timestamp '2026-03-02 08:00:00'),
        (2, 'depot', 'insert', 1, timestamp '2026-03-02 08:00:00'),
        (1, 'depot', 'update_preimage', 2, timestamp '2026-03-02 09:00:00'),
        (1, 'door', 'update_postimage', 2, timestamp '2026-03-02 09:00:00'),
        (2, 'depot', 'delete', 3, timestamp '2026-03-02 10:00:00')
        """
    )
    spark.sql(f"create table {RAW}.prices_extracts (item string, price int, load_date timestamp)")
    spark.sql(
        f"""
        insert into {RAW}.prices_extracts values
        ('pen', 1, timestamp '2026-03-01 00:00:00'), ('ink', 1, timestamp '2026-03-01 00:00:00'),
        ('pen', 2, timestamp '2026-03-02 00:00:00'), ('nib', 2, timestamp '2026-03-02 00:00:00')
        """
    )
    page = json.loads(CAPTURED.read_text(encoding="utf-8"))
    names = list(page["columns"])
    events = [
        (
            "bank.public.customers",
            offset,
            b'{"id":0}',
            event["value"].encode(),
            [(key, value.encode()) for key, value in event["headers"]],
            datetime.fromisoformat(event["landing_batch"]),
            event["landing_batch"],
        )
        for offset, row in enumerate(page["rows"])
        if (event := dict(zip(names, row, strict=True)))["value"] is not None
    ]
    kinds = (
        "topic string, offset bigint, key binary, value binary, "
        "headers array<struct<key:string,value:binary>>, timestamp timestamp, landing_batch string"
    )
    messages = local_rows(spark, events, kinds).selectExpr(
        "topic", "0 as partition", "offset", "key", "value", "headers", "timestamp", "landing_batch"
    )
    messages.writeTo(f"{RAW}.bank_messages").create()


def add_table(project: DbtProject, *arguments: str) -> str:
    """What `afterimage add-table` prints in a project; it must succeed."""
    with project.environment():
        result = CliRunner().invoke(app, ["add-table", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("add_table")
    write_settings(folder)
    return folder


@pytest.fixture(scope="module")
def project(
    make_dbt_project: Callable[..., DbtProject], spark: SparkSession, folder: Path
) -> DbtProject:
    """An empty project to which all tables of the raw schema were added; built."""
    for landed in (land, land_openedge, land_messages, land_soliddb, land_feeds):
        landed(spark)
    project = make_dbt_project(folder, schema="add_table")
    # tables of OpenEdge and of solidDB do not show their keys
    keys = ("--key", "work_centers=machine-id", "--key", "loans=loan_no")
    printed = add_table(project, "--all", RAW, "--loaded-at", LOADED_AT, *keys)
    assert "frozen or live? does anything change the base table after its load" in printed
    assert "`add-table` asks, and only you know" in project.error_of("parse")
    kinds = ("--base-kind", "frozen", "--base-kind", "clients=live", "--overwrite")
    add_table(project, "--all", RAW, "--loaded-at", LOADED_AT, *keys, *kinds)
    set_as_the_test_of_masks_says(project, folder)
    assert "key: client_id (the base table declares it)" in printed
    assert "key: invoice_id (unique in the base table)" in printed
    assert "table_number: 101 (3 of 3 sampled change rows)" in printed
    assert "key: order_id (deletes have these columns only)" in printed
    assert "framing: length_prefixed, unless you set another one on the source" in printed
    assert "key: parcel_id (unique in the inserts)" in printed
    assert "key: id (the key of its messages)" in printed
    # a column load_date alone does not make a feed of a table
    assert "prices_extracts" not in printed
    assert "key: item (unique in each full load)" in add_table(project, f"{RAW}.prices_extracts")
    project("build")
    return project


def set_as_the_test_of_masks_says(project: DbtProject, folder: Path) -> None:
    """The test `change_mask_fits`, which `add-table` writes, fails and says what to set."""
    (yaml,) = (path for path in folder.rglob("*.yml") if "clients__ct" in path.read_text())
    said = project.error_of("build", "--select", "stg_qlik__clients")
    assert "FAIL 1 change_mask_fits_stg_qlik__clients_" in said
    added = r"\1mask_byte_order: msb_first\n\1lob_columns: [notes]\n\1base:"
    yaml.write_text(re.sub(r"(?m)^( +)base:", added, yaml.read_text()))


def rows(spark: SparkSession, query: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in spark.sql(query).collect()]


def test_history_of_a_table_with_default_settings(spark: SparkSession, project: DbtProject) -> None:
    assert rows(
        spark,
        "select invoice_id, status, cast(amount as string), cast(valid_from as string), "
        "cast(valid_to as string), opened_by, closed_by "
        f"from {project.schema}.invoices_history order by invoice_id, valid_from_seq",
    ) == [
        (1, "open", "10.00", "2026-03-01 07:00:00", "2026-03-01 08:00:00", "L", "U"),
        (1, "paid", "10.00", "2026-03-01 08:00:00", None, "U", None),
        (2, "open", "20.00", "2026-03-01 07:00:00", "2026-03-01 09:00:00", "L", "D"),
        (3, "open", "30.00", "2026-03-01 10:00:00", None, "I", None),
    ]
    current = f"select invoice_id, status from {project.schema}.invoices_current order by 1"
    assert rows(spark, current) == [(1, "paid"), (3, "open")]


def test_history_of_a_table_whose_settings_follow_from_its_data(
    spark: SparkSession, project: DbtProject
) -> None:
    """Text becomes numbers, the live base is reconstructed."""
    assert rows(
        spark,
        "select client_id, name, notes, cast(balance as string), cast(valid_from as string), "
        "opened_by, closed_by "
        f"from {project.schema}.clients_history order by client_id, valid_from_seq",
    ) == [
        (1, "Anna", "first", "12.50", "2026-03-01 07:00:00", "L", "U"),
        (1, "Ann", "first", "12.50", "2026-03-01 08:00:00", "U", "U"),
        (1, "Ann", "later", "12.50", "2026-03-01 09:00:00", "U", None),
        (2, "Bob", "none", "2.00", "2026-03-01 10:00:00", "I", "U"),
        (2, "Bob", "none", "3.00", "2026-03-01 11:00:00", "U", None),
    ]
    assert rows(
        spark,
        "select client_id, column_name, old_value, new_value "
        f"from {project.schema}.clients_field_changes order by changed_at, column_name",
    ) == [
        (1, "name", "Anna", "Ann"),
        (1, "notes", "first", "later"),
        (2, "balance", "2.00", "3.00"),
    ]


def test_tables_of_openedge(spark: SparkSession, project: DbtProject) -> None:
    assert rows(
        spark,
        "select `machine-id`, state, cast(valid_from as string), opened_by "
        f"from {project.schema}.work_centers_history order by valid_from_seq",
    ) == [
        (7, "idle", "2026-03-01 08:00:00", "I"),
        (7, "running", "2026-03-01 09:00:00", "U"),
    ]
    assert rows(
        spark,
        "select column_name, old_value, new_value "
        f"from {project.schema}.work_centers_field_changes",
    ) == [("state", "idle", "running")]


def test_tables_of_messages(spark: SparkSession, project: DbtProject) -> None:
    assert rows(
        spark,
        "select order_id, state, cast(due as string), opened_by, closed_by "
        f"from {project.schema}.orders_history order by order_id, valid_from_seq",
    ) == [
        (1, "new", "2026-04-01", "I", "U"),
        (1, "paid", "2026-04-01", "U", None),
        (2, "new", "2026-04-01", "I", "D"),
        (3, "new", "2026-04-01", "I", "D"),
    ]


def test_tables_of_a_soliddb_log(spark: SparkSession, project: DbtProject) -> None:
    assert rows(
        spark,
        "select loan_no, state, opened_by, closed_by "
        f"from {project.schema}.loans_history order by loan_no, valid_from_seq",
    ) == [(1, "open", "I", "U"), (1, "paid", "U", None), (2, "open", "I", "D")]


def test_tables_of_change_feeds(spark: SparkSession, project: DbtProject) -> None:
    assert rows(
        spark,
        "select parcel_id, place, cast(valid_from as string), opened_by, closed_by "
        f"from {project.schema}.parcels_history order by parcel_id, valid_from_seq",
    ) == [
        (1, "depot", "2026-03-02 08:00:00", "I", "U"),
        (1, "door", "2026-03-02 09:00:00", "U", None),
        (2, "depot", "2026-03-02 08:00:00", "I", "D"),
    ]
    assert rows(
        spark, f"select item, price from {project.schema}.prices_current order by item"
    ) == [("nib", 2), ("pen", 2)]
    # the file says: insert 1 and 2, update 1, move 2 to 3, delete 3, truncate
    assert rows(spark, f"select id from {project.schema}.customers_current") == []
    assert rows(
        spark,
        f"select distinct id, name from {project.schema}.customers_history order by 1, 2",
    ) == [(1, "Ann"), (1, "Anna"), (2, "Bob"), (3, "Bob")]


def test_a_second_call_changes_nothing_and_an_edited_file_stays(
    project: DbtProject, folder: Path
) -> None:
    loaded = ("--loaded-at", LOADED_AT, "--base-kind", "frozen")
    before = {path: path.read_text() for path in folder.rglob("models/**/*") if path.is_file()}
    assert "all 8 files are as they should be" in add_table(project, f"{RAW}.invoices", *loaded)
    model = folder / f"models/marts/{RAW}/invoices_current.sql"
    edited = model.read_text() + "-- ours\n"
    model.write_text(edited)
    try:
        with project.environment():
            result = CliRunner().invoke(app, ["add-table", f"{RAW}.invoices", *loaded])
        assert result.exit_code == 1
        assert "--- ours" in result.stderr and "--overwrite" in result.stderr
        assert model.read_text() == edited
    finally:
        model.write_text(before[model])
    assert {path: path.read_text() for path in before} == before


def examined(project: DbtProject) -> tuple[int, dict[str, dict[str, str]]]:
    """The exit code of `afterimage doctor`, and its checks by name."""
    with project.environment():
        result = CliRunner().invoke(app, ["doctor", "--json"], catch_exceptions=False)
    checks = json.loads(result.stdout[result.stdout.index("[") :])
    return result.exit_code, {check["name"]: check for check in checks}


def test_doctor_finds_nothing_and_then_each_fault(
    spark: SparkSession, project: DbtProject, folder: Path
) -> None:
    code, checks = examined(project)
    assert [check for check in checks.values() if check["state"] != "ok"] == []
    assert code == 0
    assert f"raw table {RAW}.invoices__ct" in checks
    assert "can create tables, write to tables, create views" in checks["rights"]["text"]
    (yaml,) = (path for path in folder.rglob("*.yml") if "invoices__ct" in path.read_text())
    before = yaml.read_text()
    wrong = before.replace(
        "- name: invoices__ct", "- name: invoices__ct\n        identifier: bills"
    )
    try:
        yaml.write_text(wrong)
        code, checks = examined(project)
    finally:
        yaml.write_text(before)
    assert code == 1
    missing = checks[f"raw table {RAW}.invoices__ct"]
    assert missing["state"] == "failed"
    assert f"{RAW}.bills does not exist" in missing["text"]
