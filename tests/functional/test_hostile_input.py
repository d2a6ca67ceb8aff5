"""Names and values that break careless SQL, Jinja and paths come out of the tables as they went in.

So do wide tables, large values, and raw tables that change while they are read. Tables that
contradict their progress are in test_restored_tables.
"""

from __future__ import annotations

import os
import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_afterimage.change_log.reading.read import read
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.storage.formats import format_named
from dbt_afterimage.storage.local_relation import local_rows
from tests.functional.dbt_project import DbtFailedError, DbtProject
from tests.functional.feed_project import write_project
from tests.functional.people import HEADERS, MODELS, PEOPLE, People, record, seq, start
from tests.functional.project_files import changes_model, write_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY = 'it\'s `the` "key"'
NAMES = (
    "a.b",
    "back`tick",
    'quo"te',
    "apo'strophe",
    "two words",
    "back\\slash",
    "{{ var('nothing') }}",
    "{# hidden #}",
    "select",
    "größe",
    "名前",
    "\x1b[2J",
    "tab\there",
    "-- comment",
    "$1 %s",
    "${env:HOME}",
    "l" * 120,
)
TEXTS = (
    "",
    " ",
    "null",
    "it's",
    'quo"te',
    "back\\slash",
    "{{ var('nothing') }}",
    "${env:HOME}",
    "nul\x00inside",
    "\x1b[2J",
    "line\nbreak\r\n",
    "e\u0301",
    "\u00e9",
    "\U0001f600",
    "\u202ereversed",
    "long" * 250_000,
)
TABLES = (
    "it's",
    'quo"te',
    "two words",
    "semi; colon -- comment",
    "größe",
    "${env:HOME}",
    "a.b",
    "back`tick",
    "{{ var('nothing') }}",
    "{# hidden #}",
    "\x1b[2J",
    "tab\there",
    "back\\slash",
)
EDGES = {
    "whole": ("bigint", "-9223372036854775808", "9223372036854775807"),
    "small": ("tinyint", "-128", "127"),
    "exact": ("decimal(38,0)", f"-{'9' * 38}", "9" * 38),
    "fraction": ("decimal(38,38)", f"-0.{'9' * 38}", f"0.{'0' * 37}1"),
    "single": ("float", "-Infinity", "1.4E-45"),
    "real": ("double", "NaN", "1.7976931348623157E308"),
    "day": ("date", "0001-01-01", "9999-12-31"),
    "moment": ("timestamp", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
    "flag": ("boolean", "false", "true"),
    "bytes": ("binary", "", "\x00"),
}


@pytest.fixture
def people(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> People:
    """A project of a schema of its own, in which nothing is landed."""
    schema = f"hostile_{request.node.originalname.removeprefix('test_')[:20]}"
    return start(make_dbt_project(tmp_path, schema=schema), spark, table_format, MODELS)


def as_text(people: People, table: str, names: list[str], condition: str) -> list[tuple[Any, ...]]:
    shown = ", ".join(f"cast({quoted(name)} as string)" for name in names)
    found = people.spark.sql(f"select {shown} from {people.name(table)} where {condition}")
    return sorted(map(tuple, found.collect()), key=repr)


def test_columns_with_names_that_are_code(people: People) -> None:
    columns = {**HEADERS, KEY: "string", **dict.fromkeys(NAMES, "string")}
    first = tuple(f"first of {name}" for name in NAMES)
    second = tuple(f"second of {name}" for name in NAMES)
    people.declare(key=[KEY])
    people.land(columns, [(seq(1), "I", "1", *first), (seq(2), "I", "2", *first)])
    people.dbt("build")
    people.append(columns, [(seq(3), "B", "1", *first), (seq(3), "U", "1", *second)])
    people.dbt("build")
    names = [KEY, *NAMES]
    closed = as_text(people, "history", names, "closed_by = 'U'")
    assert closed == [("1", *first)]
    assert as_text(people, "history", names, "is_current") == [("1", *second), ("2", *first)]
    assert as_text(people, "current", names, "true") == [("1", *second), ("2", *first)]
    fields = people.rows("field_changes", "column_name, old_value, new_value", "1")
    assert sorted(fields) == sorted(zip(NAMES, first, second, strict=True))


def test_values_at_the_edges_of_their_types(people: People) -> None:
    columns = {**HEADERS, "id": "string", **{name: edge[0] for name, edge in EDGES.items()}}
    least = tuple(edge[1] for edge in EDGES.values())
    greatest = tuple(edge[2] for edge in EDGES.values())
    people.land(columns, [(seq(1), "I", "1", *least), (seq(2), "I", "2", *greatest)])
    people.dbt("build")
    people.append(columns, [(seq(3), "B", "1", *least), (seq(3), "U", "1", *greatest)])
    people.dbt("build")
    names = ["id", *EDGES]
    raw = f"{people.dbt.schema}_raw.people__ct"
    shown = ", ".join(f"cast({quoted(name)} as string)" for name in names)
    landed = people.spark.sql(f"select {shown} from {raw} order by header__change_seq, 2")
    by_place = sorted({tuple(row) for row in landed.collect()}, key=repr)
    history = as_text(people, "history", names, "true")
    assert sorted(set(history), key=repr) == by_place
    assert len(history) == 3
    fields = people.rows("field_changes", "column_name", "1")
    assert [row[0] for row in fields] == sorted(EDGES)


def test_texts_as_keys_and_as_values(people: People) -> None:
    columns = {**HEADERS, "id": "string", "name": "string"}
    rows = [(seq(place), "I", text, text) for place, text in enumerate(TEXTS, 1)]
    people.land(columns, rows)
    people.dbt("build")
    last = len(TEXTS)
    for place, text in enumerate(TEXTS, last + 1):
        rows.append((seq(place), "B", text, text))
        rows.append((seq(place), "U", text, f"{text}!"))
    people.append(columns, rows[last:])
    people.dbt("build")
    assert sorted(as_text(people, "current", ["id", "name"], "true")) == sorted(
        (text, f"{text}!") for text in TEXTS
    )
    assert sorted(as_text(people, "history", ["id", "name"], "closed_by = 'U'")) == sorted(
        (text, text) for text in TEXTS
    )
    assert people.rows("changes_rejected", "count(*)", "1") == [(0,)]


def test_a_filter_with_text_that_spark_could_replace(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> None:
    dbt = make_dbt_project(tmp_path, schema="hostile_filter")
    raw = f"{dbt.schema}_raw"
    settings = {
        "sequence": {"place": "number"},
        "operation": "operation",
        "operations": {"I": "I"},
        "filter": "topic = '${env:HOME}'",
    }
    write_project(tmp_path, raw, {"events": (settings, [])})
    spark.sql(f"create schema if not exists {raw}")
    spark.sql(f"drop table if exists {raw}.events")
    columns = "id int, place bigint, operation string, topic string"
    spark.sql(f"create table {raw}.events ({columns}) using {table_format}")
    for number in (0, 2):
        rows = [
            (number, number, "I", "${env:HOME}"),
            (number + 1, number + 1, "I", os.environ["HOME"]),
        ]
        local_rows(spark, rows, columns).writeTo(f"{raw}.events").append()
        dbt("build")
    logged = spark.table(f"{dbt.schema}.events_changes").select("id", "topic").collect()
    assert sorted(map(tuple, logged)) == [(0, "${env:HOME}"), (2, "${env:HOME}")]


@pytest.mark.nightly
def test_raw_tables_with_names_that_are_code(people: People, spark: SparkSession) -> None:
    schema = f"{people.dbt.schema}_raw"
    spark.sql(f"create schema if not exists {schema}")
    meta = {"system": "qlik_change_table", "key": ["id"]}
    tables = []
    for number, name in enumerate(TABLES):
        raw = f"{schema}.{quoted(name)}"
        spark.sql(f"drop table if exists {raw}")
        spark.sql(
            f"create table {raw} using {people.table_format} as select "
            f"'{seq(1)}' as header__change_seq, 'I' as header__change_oper, {number} as id"
        )
        table = {
            "name": f"hostile_{number}",
            # dbt renders Jinja in YAML, and quotes a name without doubling its backticks
            "identifier": f"{{{{ {name.replace('`', '``')!r} }}}}",
            "quoting": {"identifier": True},
        }
        tables.append({**table, "config": {"meta": {"afterimage": meta}}})
        staging = f"{{{{ stage_qlik_change_table('hostile', 'hostile_{number}') }}}}\n"
        files = changes_model(f"hostile_{number}", f"stg_{number}")
        write_files(people.dbt.path / "models", {f"staging/stg_{number}.sql": staging, **files})
    sources = [{"name": "hostile", "schema": schema, "tables": tables}]
    write_files(people.dbt.path, {"models/hostile.yml": {"version": 2, "sources": sources}})
    selected = ("--select", *(f"stg_{number}+" for number in range(len(TABLES))))
    people.dbt("build", *selected)
    people.dbt("build", *selected)
    for number in range(len(TABLES)):
        rows = spark.table(f"{people.dbt.schema}.hostile_{number}_changes").select("id").collect()
        assert [row["id"] for row in rows] == [number]


@pytest.mark.nightly
def test_a_table_of_two_thousand_columns(people: People) -> None:
    names = [f"column_{number}" for number in range(2000)]
    columns = {**HEADERS, "id": "int", **dict.fromkeys(names, "string")}
    values = tuple(f"v{number}" for number in range(1999))
    people.land(columns, [(seq(1), "I", 1, *values, "old")])
    people.dbt("run")
    rows = [(seq(2), "B", 1, *values, "old"), (seq(2), "U", 1, *values, "new")]
    people.append(columns, rows)
    people.dbt("build")
    shown = f"column_0, {names[-1]}, closed_by"
    assert people.rows("history", shown, "valid_from_seq") == [
        ("v0", "old", "U"),
        ("v0", "new", None),
    ]
    fields = people.rows("field_changes", "column_name, old_value, new_value", "1")
    assert fields == [(names[-1], "old", "new")]


@pytest.mark.nightly
def test_values_of_ten_megabytes(people: People) -> None:
    columns = {**HEADERS, "id": "int", "name": "string"}
    first, second = "a" * (10 << 20), "b" * (10 << 20)
    people.land(columns, [(seq(1), "I", 1, first), (seq(2), "I", 2, first)])
    people.dbt("run")
    people.append(columns, [(seq(3), "B", 1, first), (seq(3), "U", 1, second)])
    people.dbt("build")
    shown = "id, length(name), md5(name) = md5(repeat('a', 10485760)), closed_by"
    assert people.rows("history", shown, "id, valid_from_seq") == [
        (1, 10 << 20, True, "U"),
        (1, 10 << 20, False, None),
        (2, 10 << 20, True, None),
    ]


LANDED = [record(1, "I", 1, "Ann"), record(2, "I", 2, "Bob")]
MORE = [record(3, "B", 1, "Ann"), record(3, "U", 1, "Eva"), record(4, "D", 2, "Bob")]


@pytest.mark.nightly
@pytest.mark.both_formats
@pytest.mark.parametrize("what", ["truncated", "replaced", "rolled back"])
def test_a_raw_table_that_changes_while_it_is_read(
    people: People, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The run may fail, or read either state; the next one has every record once."""
    raw = f"{people.dbt.schema}_raw.people__ct"
    people.land(PEOPLE, LANDED)
    people.dbt("run")
    at = format_named(people.table_format).version(spark, raw)
    restore = {
        "iceberg": f"call system.set_current_snapshot('{raw}', {at})",
        "delta": f"restore table {raw} to version as of {at}",
    }
    people.append(PEOPLE, MORE)
    calls: list[str] = []

    def meanwhile(*arguments: Any, **options: Any) -> Any:
        found = read(*arguments, **options)
        if not calls:
            calls.append(what)
            if what == "truncated":
                spark.sql(f"truncate table {raw}")
            elif what == "replaced":
                people.land(PEOPLE, [*LANDED, *MORE])
            else:
                spark.sql(restore[people.table_format])
        return found

    with monkeypatch.context() as patch:
        patch.setattr("dbt_afterimage.change_log.model.read", meanwhile)
        try:
            people.dbt("run")
        except AssertionError:
            assert what != "rolled back"
    assert calls
    people.land(PEOPLE, [*LANDED, *MORE])
    people.dbt("build")
    changes = people.rows("changes", "change_seq, change_oper", "1")
    assert changes == [(seq(1), "I"), (seq(2), "I"), (seq(3), "U"), (seq(4), "D")]
    versions = people.rows("history", "id, name, closed_by", "id, valid_from_seq")
    assert versions == [(1, "Ann", "U"), (1, "Eva", None), (2, "Bob", "D")]


@pytest.mark.nightly
def test_a_catalog_that_stays_locked_stops_the_run(
    people: People, warehouse: Path, spark: SparkSession
) -> None:
    """Another process holds SQLite's lock for longer than `busy_timeout`."""
    people.land(PEOPLE, LANDED)
    people.dbt("run")
    people.append(PEOPLE, MORE)
    lock = sqlite3.connect(warehouse / "catalog.db", isolation_level=None)
    lock.execute("begin immediate")
    try:
        message = people.dbt.error_of("run", "--select", "people_changes+")
    finally:
        lock.execute("rollback")
        lock.close()
    assert "The catalog's SQLite file stayed locked" in message
    people.dbt("build")
    versions = people.rows("history", "id, name, closed_by", "id, valid_from_seq")
    assert versions == [(1, "Ann", "U"), (1, "Eva", None), (2, "Bob", "D")]


@contextmanager
def largest_file(process: int, size: int) -> Iterator[None]:
    """Let the system refuse each byte that a process writes into a file after its first `size`."""
    before = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.prlimit(process, resource.RLIMIT_FSIZE, before)


@pytest.mark.nightly
@pytest.mark.both_formats
def test_runs_that_cannot_write_whole_files_lose_nothing(people: People) -> None:
    """As on a full disk, but without root; each run gets further than the one before."""
    people.land(PEOPLE, LANDED)
    people.dbt("run")
    people.append(PEOPLE, MORE)
    gateway: Any = people.spark.sparkContext._gateway
    messages = []
    for size in (0, *(1 << power for power in range(8, 24))):
        try:
            with largest_file(gateway.proc.pid, size):
                people.dbt("run")
            break
        except DbtFailedError as error:
            messages.append(str(error))
    assert len(messages) > 3
    assert [text for text in messages if "A disk is full" not in text] == []
    people.dbt("build")
    changes = people.rows("changes", "change_seq, change_oper", "1")
    assert changes == [(seq(1), "I"), (seq(2), "I"), (seq(3), "U"), (seq(4), "D")]
    versions = people.rows("history", "id, name, closed_by", "id, valid_from_seq")
    assert versions == [(1, "Ann", "U"), (1, "Eva", None), (2, "Bob", "D")]
