"""One random stream of changes, as a solidDB log and as a Qlik change table: the same versions.

Both are held against the oracle too. The solidDB log is cut in the middle of a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from afterimage_demo.soliddb.encoding import frame_engine
from afterimage_demo.soliddb.log import SysLog, columns_snapshot, tables_snapshot
from afterimage_demo.soliddb.tables import BankColumn, BankTable
from tests.functional.dbt_project import DbtProject
from tests.functional.soliddb_project import SolidDbProject, write_project
from tests.log_reader import read_rows
from tests.oracle.database import Database
from tests.oracle.history import Key, LogRow, build_history
from tests.oracle.streams import OPERATIONS, OPTIONS, Writer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

START = datetime(2026, 3, 2, 9)


class Statements(Database):
    """Remembers which changes of keys one statement made."""

    def __init__(self) -> None:
        super().__init__(OPTIONS.key, OPTIONS.columns)
        self.of_statement: list[range] = []

    def change_keys(self, moves: Mapping[Key, Key]) -> None:
        before = len(self.log)
        super().change_keys(moves)
        self.of_statement.append(range(before, len(self.log)))


STREAMS = BankTable(
    "STREAMS", 700, "ID", tuple(BankColumn(name, 1, "INTEGER") for name in ("ID", "A", "B", "C"))
)
TRANSACTIONS = 250


@dataclass(frozen=True)
class Stream:
    """The same random changes as a solidDB log, as a Qlik change table, and for the oracle."""

    log: list[LogRow]
    soliddb: list[dict[str, Any]]
    qlik: list[dict[str, Any]]

    def first_of_transaction(self, number: int) -> int:
        """Place in the Qlik records where a transaction begins."""
        transactions = [row["header__transaction_id"] for row in self.qlik]
        return transactions.index(f"t{number}")


def make_stream(seed: int) -> Stream:
    """One table, eight keys, 250 transactions; the changes of a transaction share a time."""
    writer = Writer(seed)
    writer.database = database = Statements()
    for number in range(TRANSACTIONS):
        first = len(database.log)
        writer.transaction("insert", *OPERATIONS, "truncate")
        for place in range(first, len(database.log)):
            row = database.log[place]
            database.log[place] = LogRow(
                **{**vars(row), "changed_at": START + timedelta(seconds=number)}
            )
    return Stream(database.log, _as_soliddb(database), [*_as_qlik(database.log)])


def _as_soliddb(database: Statements) -> list[dict[str, Any]]:
    # the engine's framing and the longer addresses; test_soliddb.py has the others
    log = SysLog(frame=frame_engine, address_length=28)
    moved = {place: statement for statement in database.of_statement for place in statement}
    transaction = None
    for place, row in enumerate(database.log):
        if row.transaction_id != transaction:
            if transaction is not None:
                log.commit()
            transaction = row.transaction_id
            assert row.changed_at is not None
            # the log has no time: a record counts as landed two seconds after its commit
            log.begin(row.changed_at - timedelta(seconds=2))
        after = {name.upper(): value for name, value in (row.data or {}).items()}
        before = {name.upper(): value for name, value in (row.before or {}).items()}
        if row.change_oper == "I":
            log.insert(STREAMS, after)
        elif row.change_oper == "D":
            log.delete(STREAMS, after)
        elif row.change_oper == "T":
            log.ddl(73, "STREAMS", 700)
        elif place not in moved:
            log.update(STREAMS, before, after)
        elif place == moved[place].start:
            # one statement takes all its rows away before it puts them back under their new keys
            for other in moved[place]:
                gone = database.log[other].before or {}
                log.delete(STREAMS, {name.upper(): value for name, value in gone.items()})
            for other in moved[place]:
                come = database.log[other].data or {}
                log.insert(STREAMS, {name.upper(): value for name, value in come.items()})
    log.commit()
    return log.rows


def _as_qlik(log: list[LogRow]) -> Iterator[dict[str, Any]]:
    for row in log:
        headers = {
            "header__change_seq": f"{row.changed_at:%Y%m%d%H%M%S}00{int(row.change_seq):019d}",
            "header__change_oper": row.change_oper,
            "header__operation": "TRUNCATE" if row.change_oper == "T" else "",
            "header__transaction_id": row.transaction_id,
        }
        if row.change_oper == "U":
            yield {**headers, "header__change_oper": "B", **(row.before or {})}
        yield {**headers, **(row.data or dict.fromkeys(OPTIONS.columns))}


QLIK_KIND = (
    "header__change_seq string, header__change_oper string, header__operation string, "
    "header__transaction_id string, id int, a int, b int, c int"
)


@pytest.fixture(scope="module")
def stream() -> Stream:
    return make_stream(seed=12)


@pytest.fixture(scope="module")
def histories(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path_factory: pytest.TempPathFactory,
    stream: Stream,
) -> dict[str, list[dict[str, Any]]]:
    """The history of each system, built from two deliveries."""
    folder = tmp_path_factory.mktemp("soliddb_streams")
    write_project(folder)
    dbt = make_dbt_project(folder, schema="soliddb_streams")
    project = SolidDbProject(dbt, spark, table_format)
    project.land_catalogue(
        "raw_streams", tables_snapshot([STREAMS], None), columns_snapshot([STREAMS], None)
    )
    # in the middle of a transaction, whose first part waits; Qlik's is cut between two of them
    half = len(stream.soliddb) // 2
    assert stream.soliddb[half - 1]["trxid"] == stream.soliddb[half]["trxid"]
    cut = stream.first_of_transaction(TRANSACTIONS // 2)
    for soliddb, qlik in (
        (stream.soliddb[:half], stream.qlik[:cut]),
        (stream.soliddb[half:], stream.qlik[cut:]),
    ):
        project.land_log("raw_streams", soliddb)
        project.land("raw_qlik", "streams__ct", QLIK_KIND, qlik)
        dbt("run", "--select", "stg_soliddb__log_of_streams+", "stg_qlik__streams+")
    return {
        system: read_rows(spark.table(f"soliddb_streams.{table}_history"))
        for system, table in (("soliddb", "streams"), ("qlik", "qlik_streams"))
    }


def versions(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Key, data and order of versions, without what names positions or ways of closing."""
    own = ("id", "a", "b", "c", "valid_from", "valid_to", "is_current")
    ordered = sorted(rows, key=lambda row: (row["id"], row["valid_from_seq"]))
    return [tuple(row[name] for name in own) for row in ordered]


def test_one_stream_gives_the_same_versions_by_both_systems(
    histories: dict[str, list[dict[str, Any]]], stream: Stream
) -> None:
    oracle = [version.as_row() for version in build_history(stream.log, OPTIONS)]
    assert versions(histories["soliddb"]) == versions(histories["qlik"]) == versions(oracle)


def test_the_stream_has_all_that_there_is(histories: dict[str, list[dict[str, Any]]]) -> None:
    closed_by = {system: {row["closed_by"] for row in rows} for system, rows in histories.items()}
    # a changed key is a delete and an insert in solidDB's log
    assert closed_by == {
        "qlik": {"U", "D", "T", "K", None},
        "soliddb": {"U", "D", "T", None},
    }
    assert all(len(rows) > TRANSACTIONS for rows in histories.values())
