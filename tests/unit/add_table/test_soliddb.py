"""What is proposed for tables in a solidDB log, from the catalogue."""

from __future__ import annotations

from dataclasses import replace

from dbt_afterimage.cli.commands.add_table.keys import Sample
from dbt_afterimage.cli.commands.add_table.soliddb import (
    Landed,
    LoggedTable,
    is_users,
    landed_tables,
    propose,
)
from dbt_afterimage.cli.support.raw_schema.schema import Column, RawSchema, RawTable


def raw(name: str, columns: str) -> RawTable:
    return RawTable(name, tuple(Column(column, "string") for column in columns.split()))


LOG = raw("sys_log", "RECID RECNAME TRXID STMTTRXID RELID FLAGS LOGADDR DATA TEXTDATA landed_at")
TABLES = raw("sys_tables", "ID TABLE_NAME TABLE_TYPE TABLE_SCHEMA snapshot_logaddr")
COLUMNS = raw(
    "sys_columns",
    "REL_ID COLUMN_NAME COLUMN_NUMBER DATA_TYPE DATA_TYPE_NUMBER ATTR_TYPE snapshot_logaddr",
)
SCHEMA = RawSchema.of("landed", [LOG, TABLES, COLUMNS])
LANDED = Landed(LOG, TABLES, COLUMNS)


LOANS = LoggedTable(
    LANDED,
    "LOANS",
    "BRANCH",
    ("loan_number", "state"),
    is_one_of_many=False,
)


def test_the_log_and_the_catalogue_are_known_by_their_columns() -> None:
    assert landed_tables(SCHEMA) == LANDED
    assert landed_tables(RawSchema.of("landed", [LOG, TABLES])) is None
    assert is_users("LOANS", "BRANCH")
    assert not is_users("SYS_KEYS", "_SYSTEM")


def test_framing_and_key_are_left_to_the_user() -> None:
    found = propose(LOANS, SCHEMA, "branch", Sample())
    assert not found.key.is_sure
    assert found.source_settings == {}
    assert [note.partition(":")[0] for note in found.notes] == ["framing"]
    assert found.entry.settings == {}
    assert found.staging_call == [
        "stage_soliddb_table",
        "'branch'",
        "'loans'",
        "log=ref('stg_branch__log')",
    ]
    assert found.shared_model is not None
    assert found.shared_model.arguments == (
        'log=dbt.source("branch", "sys_log")',
        'tables=dbt.source("branch", "sys_tables")',
        'columns=dbt.source("branch", "sys_columns")',
    )


def test_values_in_a_map_are_decoded_already() -> None:
    columns = [
        replace(column, data_type="map<string,string>") if column.name == "DATA" else column
        for column in LOG.columns
    ]
    landed = replace(LANDED, log=replace(LOG, columns=tuple(columns)))
    found = propose(replace(LOANS, landed=landed), SCHEMA, "branch", Sample())
    assert (found.source_settings["framing"], found.notes) == ("decoded", [])


def test_a_full_load_has_the_name_of_the_table() -> None:
    base = raw("loans_at_start", "loan_number state")
    schema = RawSchema.of("landed", [LOG, TABLES, COLUMNS, base])
    found = propose(LOANS, schema, "branch", Sample(unique=[("loan_number",)]))
    assert found.key.reason == "unique in the full load"
    assert found.staging_call[-1] == "base='loans_at_start'"


def test_a_table_of_one_of_several_schemas() -> None:
    found = propose(replace(LOANS, is_one_of_many=True), SCHEMA, "branch", Sample())
    assert found.entry.settings == {"table_schema": "BRANCH"}
