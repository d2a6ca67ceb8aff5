"""What is proposed for tables in a solidDB log, from the catalogue and sampled records.

The demo's encoder writes the records; it shares no code with the decoder.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from afterimage_demo.soliddb.encoding import (
    encode_value,
    frame_engine,
    frame_length_prefixed,
)
from dbt_afterimage.cli.commands.add_table.proposal import unanswered_base
from dbt_afterimage.cli.commands.add_table.soliddb import (
    Landed,
    LoggedTable,
    Record,
    framing_of,
    is_users,
    landed_tables,
    propose,
)
from dbt_afterimage.cli.support.raw_schema.tables import Column, RawSchema, RawTable

INSERT, UPDATE, BEFORE = 1, 3, 5


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


def record(kind: int, *values: int | str | None, frame: object = frame_length_prefixed) -> Record:
    encoded = [encode_value(value, 1 if isinstance(value, int) else 0) for value in values]
    assert callable(frame)
    return Record(kind, 7, frame(encoded))


LOANS = LoggedTable(
    LANDED,
    "LOANS",
    "BRANCH",
    ("LOAN_NUMBER", "STATE"),
    is_one_of_many=False,
    framing="length_prefixed",
)


def test_the_log_and_the_catalogue_are_known_by_their_columns() -> None:
    assert landed_tables(SCHEMA) == LANDED
    assert landed_tables(RawSchema.of("landed", [LOG, TABLES])) is None
    assert is_users("LOANS", "BRANCH")
    assert not is_users("SYS_KEYS", "_SYSTEM")


@pytest.mark.parametrize(
    ("frame", "expected"), [(frame_length_prefixed, "length_prefixed"), (frame_engine, "engine")]
)
def test_the_framing_is_the_one_that_fits(frame: object, expected: str) -> None:
    records = [record(INSERT, number, f"state {number}", frame=frame) for number in range(20)]
    assert framing_of(records, {7: {2}}) == expected
    assert framing_of(records, {7: {3}}) is None
    assert framing_of(records, {8: {2}}) is None


def test_a_key_that_is_unique_in_sampled_inserts() -> None:
    found = propose(
        replace(
            LOANS,
            records=(
                record(INSERT, 1, "open"),
                record(INSERT, 2, "open"),
                record(BEFORE, 1, "open"),
            ),
        ),
        SCHEMA,
        "branch",
    )
    assert (found.key.columns, found.key.is_sure) == (("loan_number",), True)
    assert found.key.reason == "unique in 2 sampled inserts"
    assert found.source_settings == {"system": "soliddb", "framing": "length_prefixed"}
    assert found.tables[0].settings == {}
    assert found.staging_arguments == ("'branch'", "'loans'", "log=ref('stg_branch__log')")
    assert found.shared_model is not None
    assert found.shared_model.arguments == (
        'log=dbt.source("branch", "sys_log")',
        'tables=dbt.source("branch", "sys_tables")',
        'columns=dbt.source("branch", "sys_columns")',
    )


def test_one_insert_proves_no_key() -> None:
    loans = replace(LOANS, records=(record(INSERT, 1, "open"),))
    assert not propose(loans, SCHEMA, "branch").key.is_sure


def test_a_full_load_has_the_name_of_the_table() -> None:
    base = raw("loans_at_start", "loan_number state")
    schema = RawSchema.of("landed", [LOG, TABLES, COLUMNS, base])
    found = propose(replace(LOANS, unique=(("loan_number",),)), schema, "branch")
    assert found.key.reason == "unique in the full load"
    assert found.tables[0].settings == {"base": unanswered_base()}
    assert found.staging_arguments[-1] == "base='loans_at_start'"


def test_what_the_log_does_not_show_is_reported() -> None:
    update = record(UPDATE, 1, "open")
    loans = replace(LOANS, records=(update,), framing=None, is_one_of_many=True)
    found = propose(loans, SCHEMA, "branch")
    assert found.source_settings == {"system": "soliddb"}
    assert found.tables[0].settings == {"table_schema": "BRANCH", "before_images": False}
    assert any(note.startswith("framing: no built-in one fits") for note in found.notes)
