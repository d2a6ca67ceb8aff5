"""What is read from a landed SYS_LOG and its catalogue, on small tables in memory, without dbt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from afterimage_demo.soliddb.encoding import frame_engine
from afterimage_demo.soliddb.log import SysLog, columns_snapshot, tables_snapshot
from afterimage_demo.soliddb.tables import CLIENTS, LOYALTY_TIER, TELLER_SHIFTS, BankTable, Row
from dbt_afterimage.change_log.deciding.gaps import GapError
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.settings import parse_settings
from dbt_afterimage.soliddb import build_log
from dbt_afterimage.sources.soliddb.catalogue import read_catalogue, relations_by_name
from dbt_afterimage.sources.soliddb.framing import UnknownFramingError
from dbt_afterimage.sources.soliddb.log_gaps import check_log_gap
from dbt_afterimage.sources.soliddb.raw import (
    RawLogError,
    check_records,
    is_at,
    is_newer,
    normal_log,
)
from dbt_afterimage.sources.soliddb.transactions import in_frames
from dbt_afterimage.sources.soliddb.value_columns import Column
from dbt_afterimage.storage.local_relation import local_rows
from tests.run_contexts import run_context
from tests.soliddb_columns import SYS_COLUMNS, SYS_LOG, SYS_TABLES

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

AT = datetime(2026, 3, 2, 9)
# an address as the manual shows it
FIRST = "0000000000000001FFFFFFFF0000029500000295"
LATER = CLIENTS.with_column(LOYALTY_TIER)


def client(number: int) -> Row:
    return {
        "CLIENT_ID": number,
        "FULL_NAME": "Ann",
        "EMAIL": None,
        "BORN_ON": None,
        "RISK_SCORE": None,
    }


def landed(spark: SparkSession, log: SysLog) -> DataFrame:
    return local_rows(spark, log.rows, SYS_LOG)


def records(spark: SparkSession, log: SysLog) -> DataFrame:
    return normal_log(landed(spark, log), "raw.sys_log", is_decoded=False)


def check(spark: SparkSession, log: SysLog, last: str | None = None) -> Any:
    return check_records(records(spark, log), "raw.sys_log", last)


def small_log(**form: Any) -> SysLog:
    log = SysLog(**form)
    log.begin(AT)
    log.insert(CLIENTS, client(1))
    log.commit()
    return log


def test_binary_and_hex_text_are_read_alike(spark: SparkSession) -> None:
    log = small_log()
    binary = landed(spark, log)
    text = binary.selectExpr(
        "recid",
        "trxid",
        "stmttrxid",
        "relid",
        "flags",
        "lower(hex(logaddr)) as logaddr",
        "concat(' ', hex(data)) as data",
        "landed_at",
    )
    wanted = ["record_id", "log_address", "data"]
    of_text = normal_log(text, "raw.sys_log", is_decoded=False).select(*wanted)
    assert of_text.collect() == records(spark, log).select(*wanted).collect()


def test_records_without_data_are_left_out(spark: SparkSession) -> None:
    log = SysLog()
    log.heartbeat()
    log.shutdown()
    log.begin(AT, capture_off=True)
    log.commit()
    assert [row["flags"] for row in records(spark, log).collect()] == [65, 1]


@pytest.mark.parametrize("length", [20, 28])
def test_addresses_of_both_lengths_are_read(spark: SparkSession, length: int) -> None:
    log = small_log(address_length=length)
    found = check(spark, log)
    assert found.records == 3
    assert found.last_commit == log.address.hex().upper()
    assert len(found.last_commit) == 2 * length


def test_addresses_of_two_lengths_are_refused(spark: SparkSession) -> None:
    log = small_log(address_length=28)
    with pytest.raises(RawLogError, match=r"raw\.sys_log: log addresses of 20 and 28 bytes"):
        check(spark, log, last=FIRST)
    log.rows += small_log().rows
    with pytest.raises(RawLogError, match="of 20 and 28 bytes"):
        check(spark, log)


def test_an_unknown_record_id_is_refused_by_name(spark: SparkSession) -> None:
    log = small_log()
    log.rows[1]["recid"] = 2
    with pytest.raises(RawLogError) as caught:
        check(spark, log)
    message = str(caught.value)
    assert "Source table raw.sys_log: RECID 2 at LOGADDR 0000000000000001FFFFFFFF" in message
    assert "Known: 0 no data, 1 insert, 3 after image, 4 delete" in message
    assert "Nothing was written. Fix:" in message


@pytest.mark.parametrize("address", [None, b"", b"\1" * 19])
def test_a_record_without_a_usable_address_is_refused(
    spark: SparkSession, address: bytes | None
) -> None:
    log = small_log()
    log.rows[1]["logaddr"] = address
    with pytest.raises(RawLogError, match=r"1 records have no usable LOGADDR.*RECID 1"):
        check(spark, log)


def test_a_log_without_landed_at_is_refused(spark: SparkSession) -> None:
    with pytest.raises(RawLogError, match=r"raw\.sys_log lacks the column `landed_at`"):
        normal_log(landed(spark, small_log()).drop("landed_at"), "raw.sys_log", is_decoded=False)


def test_decoded_rows_are_a_map_or_json(spark: SparkSession) -> None:
    log = landed(spark, small_log()).drop("data")
    as_json = log.selectExpr("*", '\'{"CLIENT_ID": 1, "EMAIL": null}\' as data')
    as_map = log.selectExpr("*", "map('CLIENT_ID', '1', 'EMAIL', null) as data")
    for given in (as_json, as_map):
        row = normal_log(given, "raw.sys_log", is_decoded=True).first()
        assert row is not None
        assert row["data"] == {"CLIENT_ID": "1", "EMAIL": None}
    with pytest.raises(RawLogError, match="set `framing: decoded`"):
        normal_log(as_map, "raw.sys_log", is_decoded=False)


class Dbt:
    """What `build_log` needs of the object that dbt gives a model: its config."""

    def __init__(self, **settings: Any) -> None:
        given = {"system": "soliddb", **settings}
        self.config = {
            "afterimage": {
                "model": "stg_soliddb__log",
                "settings": parse_settings(
                    {"source_name": "raw", "name": "sys_log", "meta": {"afterimage": given}}
                ),
                "log": "no_such_schema.stg_soliddb__log",
                "progress": "no_such_schema.afterimage_progress",
                "file_format": "iceberg",
                "rebuild_changes": False,
                "accept_gap": False,
            }
        }


def decoded(
    spark: SparkSession, log: DataFrame, tables: Sequence[BankTable], **settings: Any
) -> list[tuple[Any, ...]]:
    """Record id, table, values, DDL and reason of all rows that a first run decodes."""
    catalogue = {
        SYS_TABLES: tables_snapshot(tables, None),
        SYS_COLUMNS: columns_snapshot(tables, None),
    }
    of_tables, of_columns = (local_rows(spark, rows, kind) for kind, rows in catalogue.items())
    batch = build_log(Dbt(**settings), spark, log, of_tables, of_columns)
    wanted = ("record_id", "relation_id", "image", "ddl_kind", "sql_text", "reject_reason")
    return [tuple(row) for row in batch.rows.orderBy("log_address").select(*wanted).collect()]


@pytest.mark.parametrize("framing", ["engine", f"{__name__}.own_framing"])
def test_the_setting_names_the_framing(spark: SparkSession, framing: str) -> None:
    frame = frame_engine if framing == "engine" else own_frame
    log = small_log(frame=frame)
    image = {
        "CLIENT_ID": "1",
        "FULL_NAME": "Ann",
        "EMAIL": None,
        "BORN_ON": None,
        "RISK_SCORE": None,
    }
    assert decoded(spark, landed(spark, log), [CLIENTS], framing=framing) == [
        (1, 10_001, image, None, None, None)
    ]


def own_frame(values: Iterable[bytes | None]) -> bytes:
    """Values as hex with commas between them; NULL is a minus."""
    return ",".join("-" if value is None else value.hex() for value in values).encode()


def own_framing(data: bytes, columns: Sequence[Column]) -> list[bytes | None]:
    parts = data.decode("ascii").split(",")
    return [None if part == "-" else bytes.fromhex(part) for part in parts]


def test_rows_that_are_decoded_already_need_no_framing_and_no_columns(spark: SparkSession) -> None:
    log = small_log()
    log.begin(AT)
    log.ddl(73, "CLIENTS", None, sql="TRUNCATE TABLE CLIENTS")
    log.commit()
    json = """
        case recid
            when 1 then '{"CLIENT_ID": 1, "EMAIL": null}'
            when 6 then '{"SQL": "TRUNCATE TABLE CLIENTS"}'
            when 13 then '{"LOGRECID": 73, "INFO": "CLIENTS"}'
        end as data
    """
    given = landed(spark, log).drop("data").selectExpr("*", json)
    nobody = BankTable("CLIENTS", 10_001, "CLIENT_ID", CLIENTS.columns[:1])
    truncate = "TRUNCATE TABLE CLIENTS"
    assert decoded(spark, given, [nobody], framing="decoded") == [
        (1, 10_001, {"CLIENT_ID": "1", "EMAIL": None}, None, None, None),
        (6, None, None, None, truncate, None),
        (13, 10_001, None, "truncate table", truncate, None),
    ]


@pytest.mark.parametrize(
    "data",
    ['{"logrecid": 73, "INFO": "CLIENTS"}', '{"LOGRECID": "truncate", "INFO": "CLIENTS"}'],
)
def test_ddl_without_a_code_is_rejected(spark: SparkSession, data: str) -> None:
    log = SysLog()
    log.begin(AT)
    log.ddl(73, "CLIENTS", None)
    log.commit()
    given = landed(spark, log).drop("data").selectExpr("*", f"'{data}' as data")
    assert decoded(spark, given, [CLIENTS], framing="decoded") == [
        (13, 10_001, None, "unknown", None, "malformed_message")
    ]


def test_a_transaction_without_commit_before_the_last_one_is_rejected(spark: SparkSession) -> None:
    log = SysLog()
    log.begin(AT)
    log.insert(CLIENTS, client(1))
    log.begin(AT)
    log.insert(CLIENTS, client(2))
    log.commit()
    rows = decoded(spark, landed(spark, log), [CLIENTS])
    assert [(image["CLIENT_ID"], reason) for _, _, image, _, _, reason in rows] == [
        ("1", "unsupported_record"),
        ("2", None),
    ]


def test_a_framing_that_does_not_exist_stops_the_run(spark: SparkSession) -> None:
    with pytest.raises(UnknownFramingError, match=r"`framing` is 'our\.framing'"):
        decoded(spark, landed(spark, small_log()), [CLIENTS], framing="our.framing")


def gap_context(**changed: Any) -> RunContext:
    settings = {"source_table": "raw.sys_log", "on_gap": "fail"}
    return run_context(model="the_log", settings=settings, **changed)


def test_a_log_that_lacks_the_commit_it_was_read_to_stops(spark: SparkSession) -> None:
    log = small_log()
    raw = landed(spark, log)
    check_log_gap(gap_context(), raw, log.address.hex().upper())
    with pytest.raises(GapError) as caught:
        check_log_gap(gap_context(), raw, FIRST)
    message = str(caught.value)
    assert "the_log: the raw table raw.sys_log seems to have been purged" in message
    assert f"It was read up to LOGADDR {FIRST}, which is gone." in message
    assert "Nothing was written. Fix: land the missing records again" in message
    check_log_gap(gap_context(accept_gap=True), raw, FIRST)


def test_only_what_is_newer_is_read(spark: SparkSession) -> None:
    log = small_log()
    first = log.address.hex().upper()
    log.begin(AT)
    log.commit()
    for raw in (landed(spark, log), landed(spark, log).withColumn("logaddr", hex_of("logaddr"))):
        newer = normal_log(raw, "raw.sys_log", is_decoded=False, last=first).collect()
        assert [row["record_id"] for row in newer] == [7, 12]


@pytest.mark.parametrize(
    "form",
    [
        "logaddr",
        "lower(logaddr)",
        "concat('  ', logaddr)",
        "concat(logaddr, '  ')",
        "concat(' ', lower(logaddr), ' ')",
        "concat(left(logaddr, 39), lower(right(logaddr, 1)), ' ')",
    ],
)
def test_hex_text_is_compared_in_any_form(spark: SparkSession, form: str) -> None:
    texts = ["0" * 36 + end for end in ("00A9", "00AA", "00AB", "00AC", "00B0", "0100")]
    rows = [(text,) for text in texts]
    log = local_rows(spark, rows, "logaddr string").selectExpr(f"{form} as logaddr")

    def found(condition: SparkColumn) -> list[str]:
        return sorted(row["logaddr"].strip().upper() for row in log.filter(condition).collect())

    assert found(is_newer(log, texts[2])) == texts[3:]
    assert found(is_at(log, texts[2])) == [texts[2]]


def hex_of(column: str) -> Any:
    from pyspark.sql import functions as F

    return F.lower(F.hex(column))


def frames(spark: SparkSession, log: SysLog) -> list[tuple[Any, ...]]:
    rows = in_frames(records(spark, log)).orderBy("log_address").collect()
    return [
        (row["record_id"], row["commit_address"], row["is_capture_off"], row["transaction_event"])
        for row in rows
    ]


def test_frames(spark: SparkSession) -> None:
    log = SysLog()
    log.begin(AT, capture_off=True)
    log.insert(CLIENTS, client(1))
    log.insert(CLIENTS, client(2))
    log.commit()
    first = log.address.hex().upper()
    log.begin(AT + timedelta(seconds=1))
    log.delete(CLIENTS, client(1))
    log.commit()
    second = log.address.hex().upper()
    log.begin(AT + timedelta(seconds=2))
    log.delete(CLIENTS, client(2))
    # the last transaction is open; the server gives the second one the number of the first
    for row in log.rows[4:7]:
        row["trxid"] = log.rows[0]["trxid"]
    # landed again by a reader that restarted
    log.rows += log.rows[:2]
    assert frames(spark, log) == [
        (7, first, True, 0),
        (7, first, True, 0),
        (1, first, True, 1),
        (1, first, True, 1),
        (1, first, True, 2),
        (12, first, True, 3),
        (7, second, False, 0),
        (4, second, False, 1),
        (12, second, False, 2),
        (7, None, False, 0),
        (4, None, False, 1),
    ]


def test_a_before_image_goes_to_the_next_after_image_of_its_table(spark: SparkSession) -> None:
    log = SysLog()
    log.begin(AT)
    other = BankTable("OTHER", 7, "CLIENT_ID", CLIENTS.columns)
    log.update(CLIENTS, client(1), client(1))
    log.raw(5, other, log.encoded(other, client(1)))
    log.update(CLIENTS, client(2), client(2))
    log.raw(3, other, log.encoded(other, client(1)))
    log.commit()
    rows = in_frames(records(spark, log)).orderBy("log_address").collect()
    pairs = [
        (row["log_address"][-2:], row["pair_address"][-2:]) for row in rows if row["record_id"] == 5
    ]
    addresses = [row["logaddr"].hex().upper()[-2:] for row in log.rows]
    assert pairs == [
        (addresses[1], addresses[2]),
        (addresses[3], addresses[6]),
        (addresses[4], addresses[5]),
    ]


def place(number: int) -> bytes:
    return bytes(16) + number.to_bytes(4, "big")


def catalogue_of(
    spark: SparkSession,
    snapshots: Sequence[tuple[BankTable, int | None]],
    *ddl_at: int,
    landed_to: int = 0x99,
) -> tuple[list[tuple[int, int | None, int]], str | None]:
    """(valid from, valid to, number of columns) of the table's validities, and the newest."""
    rows = [
        row
        for table, taken_at in snapshots
        for row in columns_snapshot([table], None if taken_at is None else place(taken_at))
    ]
    found = read_catalogue(
        local_rows(spark, rows, SYS_COLUMNS),
        {CLIENTS.relation_id: [place(at).hex().upper() for at in ddl_at]},
        "raw.sys_columns",
        place(landed_to).hex().upper(),
    )
    validities = [
        (
            int(validity.valid_from or "0", 16),
            None if validity.valid_to is None else int(validity.valid_to, 16),
            len(validity.columns),
        )
        for validity in found.validities
    ]
    return validities, found.newest and found.newest.lstrip("0")


def test_a_snapshot_holds_between_two_ddl_records(spark: SparkSession) -> None:
    snapshots = [(CLIENTS, None), (LATER, 0x30), (LATER, 0x35)]
    assert catalogue_of(spark, snapshots, 0x20) == (
        [(0, 0x20, 5), (0x20, None, 6)],
        "35",
    )


def test_a_stretch_without_snapshot_has_no_columns(spark: SparkSession) -> None:
    """Two ALTERs between two snapshots: what was written between them cannot be decoded."""
    snapshots = [(CLIENTS, 0x10), (LATER, 0x50)]
    assert catalogue_of(spark, snapshots, 0x20, 0x30)[0] == [(0, 0x20, 5), (0x30, None, 6)]


def test_a_snapshot_taken_late_holds_from_the_beginning(spark: SparkSession) -> None:
    assert catalogue_of(spark, [(CLIENTS, 0x90)])[0] == [(0, None, 5)]


def test_a_snapshot_counts_once_the_log_is_landed_up_to_it(spark: SparkSession) -> None:
    """An ALTER may be between the last landed COMMIT and the snapshot."""
    snapshots = [(CLIENTS, None), (LATER, 0x30)]
    assert catalogue_of(spark, snapshots, landed_to=0x29) == ([(0, None, 5)], "")
    assert catalogue_of(spark, snapshots, 0x20, landed_to=0x29) == ([(0, 0x20, 5)], "")
    assert catalogue_of(spark, snapshots, 0x20, landed_to=0x30)[0] == [
        (0, 0x20, 5),
        (0x20, None, 6),
    ]


def test_columns_of_indexes_are_no_columns(spark: SparkSession) -> None:
    rows = columns_snapshot([CLIENTS], None)
    assert {row["attr_type"] for row in rows} == {0, 1}
    found = read_catalogue(local_rows(spark, rows, SYS_COLUMNS), {}, "raw.sys_columns", None)
    (validity,) = found.validities
    assert [column.name for column in validity.columns] == [
        column.name for column in CLIENTS.columns
    ]


def test_a_catalogue_without_addresses_is_refused(spark: SparkSession) -> None:
    columns = local_rows(spark, columns_snapshot([CLIENTS], None), SYS_COLUMNS)
    with pytest.raises(RawLogError, match=r"raw\.sys_columns lacks the column `snapshot_logaddr`"):
        read_catalogue(columns.drop("snapshot_logaddr"), {}, "raw.sys_columns", None)


def test_a_name_has_the_ids_that_it_had(spark: SparkSession) -> None:
    recreated = BankTable("TELLER_SHIFTS", 10_009, "SHIFT_ID", TELLER_SHIFTS.columns)
    rows = [
        *tables_snapshot([CLIENTS, TELLER_SHIFTS], None),
        *tables_snapshot([CLIENTS, recreated], place(0x30)),
    ]
    of_tables = local_rows(spark, rows, SYS_TABLES)
    found = relations_by_name(of_tables, "raw.sys_tables", place(0x30).hex().upper())
    names = {
        row["relation_name"]: [
            (relation["first_taken"], relation["id"], relation["gone_at"])
            for relation in row["relations"]
        ]
        for row in found.collect()
    }
    later = place(0x30).hex().upper()
    ids = [("", 10_004, later), (later, 10_009, None)]
    assert names == {
        "CLIENTS": [("", 10_001, None)],
        "BRANCH.CLIENTS": [("", 10_001, None)],
        "TELLER_SHIFTS": ids,
        "BRANCH.TELLER_SHIFTS": ids,
    }
