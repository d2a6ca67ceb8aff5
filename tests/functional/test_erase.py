"""`afterimage erase`: the data is gone from every table and file, and does not come back.

The raw tables keep it: they are what a later run would bring it back from.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from dbt_afterimage.cli import app
from dbt_afterimage.erasure import run as erasure_run
from dbt_afterimage.storage.formats import format_named, iceberg
from dbt_afterimage.storage.local_relation import local_rows
from tests.functional.dbt_project import DbtProject
from tests.functional.merge_on_read import make_table
from tests.functional.people import HEADERS, seq
from tests.functional.project_files import (
    changes_model,
    other_marts,
    write_files,
    write_settings,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {**HEADERS, "id": "int", "name": "string", "city": "string", "score": "int"}
BASE = [(1, "Ann-load", "Oslo", 1), (2, "Bob-load", "Rome", 1)]
RECORDS = [
    # one person, whose name alone differs between two versions
    (seq(1), "B", 1, "Ann-load", "Oslo", 1),
    (seq(1), "U", 1, "Ann-first", "Oslo", 1),
    (seq(2), "B", 1, "Ann-first", "Oslo", 1),
    (seq(2), "U", 1, "Ann-second", "Oslo", 1),
    (seq(3), "B", 1, "Ann-second", "Oslo", 1),
    (seq(3), "U", 1, "Ann-second", "Bergen", 2),
    (seq(4), "I", 3, "Cid-first", "Lyon", 1),
    # a row that changes its key
    (seq(5), "B", 3, "Cid-first", "Lyon", 1),
    (seq(5), "U", 4, "Cid-second", "Lyon", 1),
    (seq(6), "I", 5, "Dan-first", "Kiel", 1),
    (seq(8), "D", 5, "Dan-first", "Kiel", 1),
    # rejected: the same place and operation with other content, and a record without a place
    (seq(3), "U", 1, "Ann-rejected", "Bergen", 2),
    ("no place", "I", 1, "Ann-malformed", "Bergen", 2),
]
NAMES = """\
{{ config(materialized='table', file_format='FORMAT') }}
select name from {{ ref('people_current') }}
"""
TESTS = {
    "people_history": ["consistent_versions"],
    "people_current": [
        {"current_equals_open": {"arguments": {"history": "ref('people_history')"}}}
    ],
}


class Erased:
    """A project of one table, and the command."""

    def __init__(
        self, dbt: DbtProject, spark: SparkSession, table_format: str, warehouse: Path
    ) -> None:
        self.dbt, self.spark, self.table_format = dbt, spark, table_format
        self.warehouse = warehouse
        self.raw = f"{dbt.schema}_raw"
        self.erasures = f"{dbt.schema}.afterimage_erasures"

    def prepare(self) -> None:
        base = {"kind": "frozen", "loaded_at": "2026-03-01 07:00:00"}
        meta = {"system": "qlik_change_table", "key": ["id"], "base": base, "keep_deleted": True}
        table = {"name": "people__ct", "config": {"meta": {"afterimage": meta}}}
        raw = {"name": "raw", "schema": self.raw, "tables": [table, {"name": "people"}]}
        stage = "{{ stage_qlik_change_table('raw', 'people__ct', base='people') }}\n"
        tested = [{"name": name, "data_tests": tests} for name, tests in TESTS.items()]
        write_settings(self.dbt.path)
        write_files(
            self.dbt.path / "models",
            {
                "sources.yml": {"version": 2, "sources": [raw]},
                "staging/stg_people.sql": stage,
                "tests.yml": {"version": 2, "models": tested},
                "names.sql": NAMES.replace("FORMAT", self.table_format),
                **changes_model("people", "stg_people"),
                "people_history.sql": "{{ history(ref('people_changes'), feed=true) }}\n",
                **other_marts("people"),
            },
        )
        self.spark.sql(f"create schema if not exists {self.raw}")
        for name, columns in (("people__ct", COLUMNS), ("people", dict(list(COLUMNS.items())[2:]))):
            kinds = ", ".join(f"{column} {kind}" for column, kind in columns.items())
            self.spark.sql(f"create table {self.raw}.{name} ({kinds}) using {self.table_format}")
        self.land(BASE, "people")
        # in two batches, so that there are old states
        self.land(RECORDS[:4])
        self.dbt("run")
        self.land(RECORDS[4:])
        self.dbt("run")

    def land(self, rows: list[tuple[Any, ...]], table: str = "people__ct") -> None:
        names = list(COLUMNS)[0 if table == "people__ct" else 2 :]
        kinds = ", ".join(f"{name} {COLUMNS[name]}" for name in names)
        local_rows(self.spark, rows, kinds).writeTo(f"{self.raw}.{table}").append()

    def build(self, *arguments: str) -> None:
        """With all data tests."""
        self.dbt("build", "--exclude", "names", *arguments)

    def __call__(self, *arguments: str) -> Result:
        with self.dbt.environment():
            result = CliRunner().invoke(app, ["erase", "people", *arguments])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def rows(self, table: str, columns: str, order: str) -> list[tuple[Any, ...]]:
        name = f"{self.dbt.schema}.people_{table}"
        relation, _, _ = name.partition(" ")
        self.spark.sql(f"refresh table {relation}")
        found = self.spark.sql(f"select {columns} from {name} order by {order}")
        return [tuple(row) for row in found.collect()]

    def versions(self, key: int) -> list[tuple[Any, ...]]:
        return self.rows(f"history where id = {key}", "name, city, is_current", "valid_from_seq")

    def files_with(self, text: str) -> list[str]:
        """Files of our tables that hold a text: data and manifests, of whichever state.

        docs/guarantees.md says what the transaction log of Delta keeps.
        """
        found = []
        for file in self.warehouse.rglob("*"):
            where = file.relative_to(self.warehouse).as_posix()
            if self.raw in where or "_delta_log" in where or "/names/" in where:
                continue
            if self.dbt.schema not in where or not file.is_file():
                continue
            if text.encode() in decoded_bytes(file):
                found.append(where)
        return found


def decoded_bytes(file: Path) -> bytes:
    """A file's bytes, followed by what they hold once they are decompressed."""
    stored = file.read_bytes()
    if file.suffix == ".parquet":
        return stored + repr(pq.read_table(file).to_pylist()).encode()
    if file.suffix == ".avro":
        return stored + b"".join(avro_blocks(stored))
    if file.name.endswith(".gz.metadata.json"):
        return gzip.decompress(stored)
    return stored


def avro_blocks(stored: bytes) -> Iterator[bytes]:
    """The blocks of an Avro file without their compression; see the Avro specification."""

    def number() -> int:
        value = shift = 0
        while True:
            (byte,) = file.read(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)

    file = io.BytesIO(stored)
    assert file.read(4) == b"Obj\x01"
    header = {}
    while count := number():
        for _ in range(count):
            name = file.read(number())
            header[name] = file.read(number())
    file.read(16)
    codec = header.get(b"avro.codec", b"null")
    assert codec in (b"null", b"deflate")
    while file.tell() < len(stored):
        number()
        block = file.read(number())
        yield zlib.decompress(block, -15) if codec == b"deflate" else block
        file.read(16)


def make_one_manifest(spark: SparkSession, table: str, table_format: str) -> None:
    """A table whose only manifest has an entry of a removed file, with the name Ann-first."""
    make_table(spark, table, "id int, name string", table_format)
    spark.sql(f"alter table {table} set tblproperties ('commit.manifest.min-count-to-merge' = '2')")
    for number, name in enumerate(["Ann-first", "Bob-load"]):
        rows = local_rows(spark, [(number, name)], "id int, name string")
        rows.coalesce(1).writeTo(table).append()
    spark.sql(f"delete from {table} where id = 0")
    assert spark.table(f"{table}.manifests").count() == 1


def test_a_table_with_one_manifest_keeps_no_value_of_a_removed_file(
    spark: SparkSession, table_format: str, warehouse: Path
) -> None:
    """rewrite_manifests leaves the only manifest of an Iceberg table alone."""
    schema = f"purged_{uuid4().hex}"
    table = f"{schema}.people"
    make_one_manifest(spark, table, table_format)
    deleted_entries = spark.table(f"{table}.entries").filter("status = 2")
    assert deleted_entries.count() == 1

    def files_with(text: str) -> list[Path]:
        files = [each for each in warehouse.rglob("*") if schema in str(each) and each.is_file()]
        return [each for each in files if text.encode() in decoded_bytes(each)]

    assert files_with("Ann-first")
    format_named(table_format).purge(spark, table)
    assert files_with("Ann-first") == []
    assert files_with("Bob-load")
    spark.sql(f"refresh table {table}")
    assert [tuple(row) for row in spark.table(table).collect()] == [(1, "Bob-load")]
    own = spark.sql(f"show tblproperties {table}").filter("key like '%target-size-bytes'")
    assert own.count() == 0


@pytest.mark.parametrize("own", [None, "4194304"])
def test_a_killed_erasure_leaves_its_size_of_manifests_until_the_next_one_or_compact(
    spark: SparkSession, table_format: str, monkeypatch: pytest.MonkeyPatch, own: str | None
) -> None:
    table, name = f"purged_{uuid4().hex}.people", "commit.manifest.target-size-bytes"
    make_one_manifest(spark, table, table_format)
    if own:
        spark.sql(f"alter table {table} set tblproperties ('{name}' = '{own}')")
    kind = format_named(table_format)
    restore = iceberg._restore_manifest_size
    calls = []

    def killed(*given: Any) -> None:
        calls.append(given)
        if len(calls) == 2:
            raise MemoryError("killed")
        restore(*given)

    def sizes() -> list[str]:
        found = spark.sql(f"show tblproperties {table}").filter("lower(key) like '%manifest%size%'")
        return [row["value"] for row in found.collect()]

    with monkeypatch.context() as patch:
        patch.setattr(iceberg, "_restore_manifest_size", killed)
        with pytest.raises(MemoryError):
            kind.purge(spark, table)
    assert len(sizes()) == 2
    if own:
        kind.compact(spark, table, max_files=1000, keep_days=7)
    else:
        kind.purge(spark, table)
    assert sizes() == [own] * bool(own)


@pytest.fixture
def erased(
    request: pytest.FixtureRequest,
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    warehouse: Path,
    tmp_path: Path,
) -> Erased:
    """In a schema of the test's own: Iceberg leaves files of dropped tables behind."""
    schema = f"erased_{request.function.__name__[5:20]}"
    project = Erased(make_dbt_project(tmp_path, schema=schema), spark, table_format, warehouse)
    project.prepare()
    return project


@pytest.mark.delta_nightly
@pytest.mark.both_formats
def test_columns_are_erased(erased: Erased, spark: SparkSession, table_format: str) -> None:
    # a batch that changes no version, which current writes no progress for
    erased.land([(seq(7), "B", 2, *BASE[1][1:]), (seq(7), "U", 2, *BASE[1][1:])])
    erased.dbt("run")
    if table_format == "iceberg":
        # as a history that an earlier version made
        history = f"{erased.dbt.schema}.people_history"
        spark.sql(f"alter table {history} drop column closed_by_transaction_id")
    assert erased.files_with("Ann-")
    assert [row[:2] for row in erased.versions(1)] == [
        ("Ann-load", "Oslo"),
        ("Ann-first", "Oslo"),
        ("Ann-second", "Oslo"),
        ("Ann-second", "Bergen"),
    ]
    result = erased("--key", "1", "--columns", "NAME", "--yes")
    assert result.exit_code == 0, result.output
    assert "people__ct" in result.output
    assert "names; rebuild them" in result.output
    assert erased.files_with("Ann-") == []
    assert erased.files_with("Bob-load")
    # versions that differed only in the name are one
    expected = [(None, "Oslo", False), (None, "Bergen", True)]
    assert erased.versions(1) == expected
    assert erased.rows("field_changes where id = 1", "column_name", "1") == [("city",), ("score",)]
    assert erased.rows("history_feed where id = 1", "distinct name", "1") == [(None,)]
    before = erased.rows("history", "*", "1")
    erased.build()
    assert erased.rows("history", "*", "1") == before
    for more in ("{}", "{backfill_from: '2026-03-01'}", "{rebuild_changes: true}"):
        erased.build("--full-refresh", "--vars", more)
        assert erased.versions(1) == expected
        assert erased.versions(2) == [("Bob-load", "Rome", True)]
    assert erased.files_with("Ann-first") == []
    assert erased.files_with("Ann-load") == []


@pytest.mark.nightly
@pytest.mark.both_formats
def test_records_are_erased_and_later_ones_are_kept(erased: Erased, spark: SparkSession) -> None:
    refused = erased("--key", "3", "--key", "1", "--rows", "--yes")
    assert refused.exit_code == 1
    assert "had other keys, before or later: id=4." in refused.output
    asked = ("--key", "3", "--key", "id=1", "--rows", "--follow-key-changes")
    shown = erased(*asked, "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert "id=4  (from a key change)" in shown.output
    assert not spark.catalog.tableExists(erased.erasures)
    assert erased.files_with("Ann-")

    assert erased(*asked).exit_code == 2
    result = erased(*asked, "--yes")
    assert result.exit_code == 0, result.output
    assert erased.files_with("Ann-") == erased.files_with("Cid-") == []
    for table in ("changes", "history", "history_feed", "current", "field_changes"):
        assert erased.rows(f"{table} where id in (1, 3, 4)", "id", "1") == []
    assert erased.rows("changes_rejected", "record_key, raw_record", "1") == [(None, None)] * 2
    assert erased.rows("changes where load_rows is not null", "load_rows", "1") == [(1,)]
    erased.build()

    # one comes too late, and is of the time before the erasure
    erased.land(
        [
            (seq(4), "I", 1, "Ann-late", "Oslo", 1),
            (seq(20), "I", 1, "Ann-later", "Paris", 1),
            (seq(21), "B", 1, "Ann-later", "Paris", 1),
            (seq(21), "U", 1, "Ann-latest", "Paris", 1),
        ]
    )
    erased.build()
    expected = [("Ann-later", "Paris", False), ("Ann-latest", "Paris", True)]
    assert erased.versions(1) == expected
    for more in ("{}", "{backfill_from: '2026-03-01'}", "{rebuild_changes: true}"):
        erased.build("--full-refresh", "--vars", more)
        assert erased.versions(1) == expected
        assert erased.rows("changes where id in (3, 4)", "id", "1") == []
    assert erased.files_with("Ann-l") != []
    assert erased.files_with("Ann-first") == erased.files_with("Cid-") == []
    assert erased("--key", "1", "--rows", "--yes").exit_code == 0
    assert erased.versions(1) == []
    assert erased.files_with("Ann-") == []


def erase_killed(
    erased: Erased, monkeypatch: pytest.MonkeyPatch, step: str, *arguments: str
) -> None:
    """Call the command; it is killed where it comes to a step."""

    def killed(*given: Any) -> None:
        raise MemoryError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(erasure_run, step, killed)
        with pytest.raises(MemoryError):
            erased(*arguments)


@pytest.mark.nightly
def test_an_erasure_that_was_killed_is_repeated(
    erased: Erased, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("--key", "1", "--columns", "name,city", "--yes")
    for name in ("erase_from_log", "rebuild_mart_rows", "complete_erasures"):
        erase_killed(erased, monkeypatch, name, *asked)
        # whatever was done, a run can go on
        erased.dbt("run")
    completed = f"select count(*), count(completed_at) from {erased.erasures}"
    assert tuple(spark.sql(completed).collect()[0]) == (3, 0)
    result = erased(*asked)
    assert result.exit_code == 0, result.output
    spark.sql(f"refresh table {erased.erasures}")
    assert tuple(spark.sql(completed).collect()[0]) == (4, 4)
    assert erased.files_with("Ann-") == erased.files_with("Bergen") == []
    erased.build()
    assert erased.versions(1) == [(None, None, False), (None, None, True)]
    record = spark.table(erased.erasures).drop("erased_by").collect()
    assert "Ann" not in repr(record)


@pytest.mark.nightly
def test_a_killed_erasure_that_followed_key_changes_is_repeated(
    erased: Erased, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has lost the key change, and another key's killed erasure stays open."""
    asked = ("--key", "3", "--rows", "--follow-key-changes", "--yes")
    erase_killed(erased, monkeypatch, "erase_from_rejected", "--key", "1", "--rows", "--yes")
    erase_killed(erased, monkeypatch, "rebuild_mart_rows", *asked)
    assert erased.rows("history where id in (3, 4)", "id", "1")
    result = erased(*asked)
    assert result.exit_code == 0, result.output
    for table in ("changes", "history", "history_feed", "current", "field_changes"):
        assert erased.rows(f"{table} where id in (3, 4)", "id", "1") == []
    assert erased.files_with("Cid-") == []
    spark.sql(f"refresh table {erased.erasures}")
    open_ = spark.table(erased.erasures).where("completed_at is null").collect()
    assert len(open_) == 1
    assert erased("--key", "1", "--rows", "--yes").exit_code == 0
    spark.sql(f"refresh table {erased.erasures}")
    assert spark.table(erased.erasures).where("completed_at is null").count() == 0


@pytest.mark.delta_nightly
@pytest.mark.both_formats
def test_erasures_that_were_restored_or_deleted_stop_the_run(
    erased: Erased, spark: SparkSession, table_format: str
) -> None:
    """A run would bring the erased records back from the raw tables."""
    assert erased("--key", "5", "--rows", "--yes").exit_code == 0
    first = format_named(table_format).version(spark, erased.erasures)
    assert erased("--key", "1", "--rows", "--yes").exit_code == 0
    before = erased.rows("changes", "id, name", "1, 2")
    restored = {
        "iceberg": f"call system.set_current_snapshot('{erased.erasures}', {first})",
        "delta": f"restore table {erased.erasures} to version as of {first}",
    }
    # late, of the time before the erasure, so that an erased record would be read again
    erased.land([(seq(2), "I", 1, "Ann-late", "Oslo", 1)])
    for lost, left in (
        (f"delete from {erased.erasures}", 0),
        (restored[table_format], 1),
    ):
        spark.sql(lost)
        message = erased.dbt.error_of("run", "--select", "people_changes")
        assert f"{erased.erasures} has {left} of the 2 rows that it had" in message
        assert erased.rows("changes", "id, name", "1, 2") == before
        fix = re.search(r'Fix: restore the last version: afterimage spark-sql -e "(.*?)"', message)
        assert fix, message
        if left:
            refused = erased("--key", "2", "--rows", "--yes")
            assert refused.exit_code == 1
            assert "of the 2 rows that it had" in refused.output
        spark.sql(fix[1])
    erased.dbt("run")
    assert erased.rows("changes", "id, name", "1, 2") == before
    assert erased.versions(1) == []
    spark.sql(f"drop table {erased.erasures}")
    erased.land([(seq(20), "I", 9, "Eve", "Pisa", 1)])
    message = erased.dbt.error_of("run", "--select", "people_changes")
    assert f"{erased.erasures} has 0 of the 2 rows that it had" in message
    forget = re.search(r'if it is gone, run afterimage spark-sql -e "(.*?)" and dbt build', message)
    assert forget, message
    spark.sql(forget[1])
    erased.dbt("run", "--select", "people_changes")
    assert erased.rows("changes where id = 9", "name", "1") == [("Eve",)]


@pytest.mark.nightly
def test_what_cannot_be_erased_is_refused(
    erased: Erased, spark: SparkSession, table_format: str
) -> None:
    def refusal_of(*arguments: str) -> str:
        result = erased(*arguments, "--yes")
        assert result.exit_code == 1
        assert "Nothing was erased" in result.output
        assert "Fix:" in result.output
        return result.output

    assert "names `id`, a key column" in refusal_of("--key", "1", "--columns", "id")
    assert "Did you mean `city`?" in refusal_of("--key", "1", "--columns", "citi")
    assert "has 'x' for `id`" in refusal_of("--key", "x", "--rows")
    assert "no table of" in refusal_of("--key", "77", "--rows")
    if table_format == "iceberg":
        spark.sql(f"alter table {erased.dbt.schema}.people_history create tag audit")
        assert "has the tag audit" in refusal_of("--key", "1", "--rows")
        spark.sql(f"alter table {erased.dbt.schema}.people_history drop tag audit")
    erased.land([(seq(20), "I", 6, "Eve", "Pisa", 1)])
    erased.dbt("run", "--select", "people_changes")
    assert f"has not applied all of {erased.dbt.schema}.people_changes" in refusal_of(
        "--key", "1", "--rows"
    )
    assert not spark.catalog.tableExists(erased.erasures)
