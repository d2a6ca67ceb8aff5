"""Late records of any age are found if the raw table shows which rows were added."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING
from urllib.parse import urlparse

import pytest

from dbt_afterimage.change_log.reading import new_rows
from dbt_afterimage.change_log.reading.new_rows import NewRows
from dbt_afterimage.change_log.reading.raw_version import Version, raw_tables
from dbt_afterimage.change_log.writing import write
from dbt_afterimage.storage.append import append_once
from dbt_afterimage.storage.formats import format_named
from tests.functional.dbt_project import DbtProject
from tests.functional.feed_project import write_project
from tests.functional.people import HEADERS, PEOPLE, seq, start
from tests.functional.project_files import changes_model
from tests.run_contexts import run_context

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.both_formats

SCHEMA = "late_records"
FLOOR = "5"


class Raw:
    """A raw table with positions of one digit, and its staging view."""

    def __init__(self, spark: SparkSession, table_format: str, name: str) -> None:
        self.name, self.view, self.log = (f"{SCHEMA}.{name}{end}" for end in ("", "_stg", "_log"))
        self._spark, self._format = spark, table_format
        spark.sql(f"create schema if not exists {SCHEMA}")
        spark.sql(f"create table {self.log} (change_seq string) using {table_format}")

    def create(self, partitioned: bool = False, properties: str = "") -> None:
        by = " partitioned by (part)" if partitioned else ""
        self._spark.sql(
            f"create table {self.name} (seq string, part string) using {self._format}{by}"
            + (f" tblproperties ({properties})" if properties else "")
        )
        self._spark.sql(
            f"create or replace view {self.view} comment 'a\nAS b'"
            " tblproperties ('afterimage.definition' = 'text') as\n"
            f"with\nsource as (\nselect * from {self.name}\n)\n"
            "select seq as change_seq, 'I' as change_oper, part as arrival from source"
        )

    def land(self, *positions: str, part: str = "one") -> None:
        rows = ", ".join(f"('{seq}', '{part}')" for seq in positions)
        self._spark.sql(f"insert into {self.name} values {rows}")

    def record(self, *positions: str) -> None:
        rows = ", ".join(f"('{seq}')" for seq in positions)
        self._spark.sql(f"insert into {self.log} values {rows}")

    def versions(self) -> dict[str, Version]:
        found = raw_tables(
            self._spark, run_context(upstream=[self.view, self.name], file_format=self._format)
        )
        assert found is not None
        return found

    def new(self, read: dict[str, Version] | None) -> NewRows:
        found = new_rows.new_rows(
            self._spark, read, self.versions(), self._spark.table(self.log), FLOOR
        )
        assert found is not None
        return found

    def late(self, read: dict[str, Version] | None) -> list[str]:
        """Positions of all records that a run reads besides those behind the floor."""
        condition = self.new(read).is_late
        rows = self._spark.table(self.view).filter(condition).select("change_seq").distinct()
        return sorted(row[0] for row in rows.collect())

    def location(self) -> Path:
        described = self._spark.sql(f"describe table extended {self.name}")
        row = described.filter("col_name = 'Location'").collect()[0]
        return Path(urlparse(row["data_type"]).path)

    def compact(self) -> None:
        if self._format == "delta":
            self._spark.sql(f"optimize {self.name}")
        else:
            self._spark.sql(
                f"call system.rewrite_data_files(table => '{self.name}', "
                "options => map('rewrite-all', 'true'))"
            )


@pytest.fixture
def raw(spark: SparkSession, table_format: str, request: pytest.FixtureRequest) -> Raw:
    name = re.sub(r"\W", "_", request.node.name.removeprefix("test_"))
    return Raw(spark, table_format, name)


def test_what_was_added_is_found_at_any_position(raw: Raw) -> None:
    raw.create()
    raw.land("3", "8")
    read = raw.versions()
    assert raw.late(read) == []
    raw.land("9")
    assert raw.late(read) == []
    raw.land("1", "6")
    raw.land("4")
    assert raw.late(read) == ["1", "4"]
    read = raw.versions()
    raw.land("9")
    assert raw.late(read) == []


def test_marks_of_what_was_added(raw: Raw, spark: SparkSession) -> None:
    raw.create()
    raw.land("3", part="c")
    read = raw.versions()
    assert (raw.new(read).first_arrival, raw.new(read).is_marked) == (None, True)
    raw.land("9", part="d")
    raw.land("1", part="b")
    assert (raw.new(read).first_arrival, raw.new(read).is_marked) == ("b", True)
    # staging is another one, or one of the rows has no mark
    other = {**read, raw.view: ["view", "another text"]}
    assert not raw.new(other).is_marked
    spark.sql(f"insert into {raw.name} values ('8', null)")
    assert not raw.new(read).is_marked


def test_a_raw_table_that_was_empty(raw: Raw) -> None:
    raw.create()
    read = raw.versions()
    raw.land("2", "7")
    assert raw.late(read) == ["2"]


def test_partitions_and_names_that_a_path_has_to_escape(raw: Raw) -> None:
    raw.create(partitioned=True)
    raw.land("3", part="a b:c")
    read = raw.versions()
    raw.land("2", "9", part="a b:c")
    raw.land("1", part="d%20é")
    assert raw.late(read) == ["1", "2"]


def test_compaction_brings_nothing_new(raw: Raw) -> None:
    raw.create()
    raw.land("3")
    raw.land("4")
    read = raw.versions()
    raw.compact()
    assert read != raw.versions()
    assert raw.late(read) == []
    raw.land("1")
    raw.compact()
    assert raw.late(read) == ["1"]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_purge_brings_nothing_new(
    raw: Raw, spark: SparkSession, table_format: str, mode: str
) -> None:
    vectors = str(mode == "merge-on-read").lower()
    raw.create(
        properties={
            "iceberg": f"'write.delete.mode' = '{mode}'",
            "delta": f"'delta.enableDeletionVectors' = '{vectors}'",
        }[table_format]
    )
    raw.record("3", "4")
    # in one file, so that the purge rewrites it
    spark.sql(
        f"insert into {raw.name} select /*+ coalesce(1) */ * from values ('2', ''), ('3', ''), "
        "('4', '') as rows(seq, part)"
    )
    read = raw.versions()
    spark.sql(f"delete from {raw.name} where seq = '2'")
    assert read != raw.versions()
    assert raw.late(read) == []
    raw.land("1")
    assert raw.late(read) == ["1"]


def test_added_rows_are_found_by_position_where_versions_are_gone(
    raw: Raw, spark: SparkSession, table_format: str
) -> None:
    raw.create(properties="'delta.checkpointInterval' = '3'" if table_format == "delta" else "")
    raw.land("3", "4")
    raw.record("3", "4")
    read = raw.versions()
    raw.land("9")
    raw.land("1")
    if table_format == "iceberg":
        spark.sql(
            f"call system.expire_snapshots(table => '{raw.name}', "
            "older_than => timestamp '2999-01-01 00:00:00', retain_last => 1)"
        )
    else:
        # as Delta does in time with what lies before a checkpoint
        for version in range(3):
            (raw.location() / "_delta_log" / f"{version:020d}.json").unlink()
    assert raw.late(read) == ["1"]
    # the same before any version is recorded
    assert raw.late(None) == ["1"]


@pytest.mark.delta_nightly
def test_a_raw_table_that_was_made_again(raw: Raw, spark: SparkSession) -> None:
    raw.create()
    raw.land("3", "4")
    raw.record("3", "4")
    read = raw.versions()
    spark.sql(f"drop table {raw.name}")
    raw.create()
    raw.land("1", "3", "4", "9")
    assert raw.late(read) == ["1"]


def test_many_late_records_are_read_as_a_range(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_rows, "_MAX_POSITIONS_IN_FILTER", 1)
    raw.create()
    raw.land("1", "3", "4", "5", "9")
    read = raw.versions()
    raw.land("2", "4")
    assert raw.late(read) == ["2", "3", "4"]


def test_columns_that_have_other_names_in_files(
    raw: Raw, spark: SparkSession, table_format: str
) -> None:
    mapped = "'delta.columnMapping.mode' = 'name'"
    raw.create(properties=mapped if table_format == "delta" else "")
    raw.land("3")
    read = raw.versions()
    spark.sql(f"alter table {raw.name} add column more int")
    spark.sql(f"insert into {raw.name} values ('1', 'one', 7), ('9', 'one', 7)")
    assert raw.late(read) == ["1"]


@pytest.mark.delta_nightly
def test_a_view_over_two_tables(raw: Raw, spark: SparkSession, table_format: str) -> None:
    """A change is in either of them or in both, as in OpenEdge's two."""
    raw.create()
    other = f"{raw.name}_other"
    spark.sql(f"create table {other} (seq string) using {table_format}")
    spark.sql(
        f"create or replace view {raw.view} tblproperties ('afterimage.definition' = 'text') as\n"
        "select coalesce(one.seq, other.seq) as change_seq, 'I' as change_oper, part as arrival "
        f"from {raw.name} as one full outer join {other} as other on one.seq = other.seq"
    )

    def versions() -> dict[str, Version]:
        upstream = [raw.view, raw.name, other]
        found = raw_tables(spark, run_context(upstream=upstream, file_format=table_format))
        assert found is not None
        return found

    raw.land("3", "4")
    spark.sql(f"insert into {other} values ('3'), ('2')")
    read = versions()
    for more, late in ((raw.name, "1"), (other, "4")):
        columns = f"'{late}', ''" if more == raw.name else f"'{late}'"
        spark.sql(f"insert into {more} values ({columns})")
        new = new_rows.new_rows(spark, read, versions(), spark.table(raw.log), FLOOR)
        assert new is not None
        rows = spark.table(raw.view).filter(new.is_late).collect()
        assert [row["change_seq"] for row in rows] == [late]
        read = versions()


@pytest.mark.parametrize(
    "statement",
    [
        "select seq as change_seq, 'I' as change_oper, part as arrival from {raw} "
        "where part <> '{raw}' and part <> \"{raw}\" -- not {raw}'s",
        "select {table}.seq as change_seq, 'I' as change_oper, {table}.part as arrival\n"
        "from {raw}\nwhere {table}.part is not null",
        # Spark does not know the relation by these names where new rows alone are read
        "select {raw}.seq as change_seq, 'I' as change_oper, part as arrival from {raw}",
        "select {table}.seq as change_seq, 'I' as change_oper, {table}.part as arrival "
        "from {raw} cross join (select 1 as one)",
    ],
    ids=["name_in_literals", "qualified_columns", "qualified_by_schema", "qualified_in_a_join"],
)
def test_late_records_of_a_view(raw: Raw, spark: SparkSession, statement: str) -> None:
    raw.create()
    text = statement.format(raw=raw.name, table=raw.name.rpartition(".")[2])
    spark.sql(
        f"create or replace view {raw.view} tblproperties ('afterimage.definition' = 'text') as\n"
        + text
    )
    raw.land("2", "8")
    raw.record("2", "8")
    read = raw.versions()
    raw.land("9", "1")
    assert raw.late(read) == ["1"]


# --- runs


@pytest.mark.delta_nightly
def test_late_records_of_feeds_with_a_filter(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> None:
    """The filter holds the raw table's name as a text, or qualifies columns with it."""
    raw = "lit_raw"
    filters = {
        "orders": f"topic = '{raw}.orders'",
        "qualified": f"qualified.topic = '{raw}.orders'",
        "by_schema": f"{raw}.by_schema.topic = '{raw}.orders'",
    }
    feed = {
        "sequence": {"place": "number"},
        "operation": "operation",
        "operations": {"I": "I"},
        "before_images": False,
    }
    project = make_dbt_project(tmp_path, schema="late_lit")
    write_project(
        project.path, raw, {name: ({**feed, "filter": text}, []) for name, text in filters.items()}
    )
    spark.sql(f"create schema if not exists {raw}")
    for batch in ([100], [200, 50], [300]):
        rows = ", ".join(f"({place}, 'I', {place}L, '{raw}.orders')" for place in batch)
        for name in filters:
            spark.sql(
                f"create table if not exists {raw}.{name} "
                f"(id int, operation string, place bigint, topic string) using {table_format}"
            )
            spark.sql(f"insert into {raw}.{name} values {rows}")
        project("run")
    for name in filters:
        found = spark.table(f"{project.schema}.{name}_changes").orderBy("id").collect()
        assert [row["id"] for row in found] == [50, 100, 200, 300], name


def test_the_look_back_is_read_from_the_first_record_that_waits(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was read before counts as duplicates: the last position, and what came since."""
    lines: list[str] = []
    monkeypatch.setattr(write, "logger", SimpleNamespace(info=lines.append))
    project = make_dbt_project(tmp_path, schema="look_back")
    models = {
        "staging/stg_people.sql": "{{ stage_qlik_change_table('raw', 'people__ct') }}\n",
        **changes_model("people", "stg_people"),
    }
    people = start(project, spark, table_format, models)
    columns = {name: PEOPLE[name] for name in (*HEADERS, "id", "name")}
    people.land(columns, [(seq(number), "I", number, "Ann") for number in range(1, 6)])
    project("run")

    def run(*records: tuple[int, str, int | None, str]) -> str:
        people.append(columns, [(seq(number), *record) for number, *record in records])
        lines.clear()
        project("run")
        return "".join(lines).removeprefix("people_changes: ")

    assert lines == ["people_changes: 5 changes recorded"]
    assert run((6, "I", 6, "Bob")) == "1 changes recorded, 1 duplicates"
    # an update waits for its before image
    waiting = (7, "U", 1, "Cid"), (8, "I", 8, "Dan")
    assert run(*waiting) == "1 changes recorded, 1 pending, 1 duplicates"
    assert run((9, "I", 9, "Eve")) == "1 changes recorded, 1 pending, 1 duplicates"
    assert run((7, "B", 1, "Ann")) == "1 changes recorded, 2 duplicates"
    # a copy, and a change between others
    assert run((2, "I", 2, "Ann")) == ""
    assert run((2, "I", 22, "Fay"), (10, "I", 10, "Gus")) == "2 changes recorded, 3 duplicates"
    # other settings may accept what is rejected
    assert run((11, "I", None, "Hal")) == "0 changes recorded, 1 rejected, 1 duplicates"
    assert run((12, "I", 12, "Ivy")) == "1 changes recorded, 1 duplicates"
    assert run((13, "I", 13, "Jon")) == "1 changes recorded, 1 duplicates"
    assert run((14, "I", 14, "Kim")) == "1 changes recorded, 2 duplicates"
    project("test")
    names = people.rows("changes", "name, before.name", "change_seq, id")
    assert [row for row in names if row[1]] == [("Cid", "Ann")]
    assert len(names) == 14


@pytest.mark.nightly
def test_a_late_record_of_any_age_is_recorded(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> None:
    """Older than the look-back of 15 minutes, in a table without partition names."""
    project = make_dbt_project(tmp_path, schema="late")
    models = {
        "staging/stg_people.sql": "{{ stage_qlik_change_table('raw', 'people__ct') }}\n",
        **changes_model("people", "stg_people"),
    }
    people = start(project, spark, table_format, models)
    columns = {
        "header__change_seq": "string",
        "header__change_oper": "string",
        "id": "int",
        "name": "string",
    }

    def seq(day: str, number: int = 0) -> str:
        return f"{day}{number:027d}"

    def land(*rows: tuple[str, str, int, str]) -> None:
        texts = ", ".join(str(row) for row in rows)
        spark.sql(f"insert into late_raw.people__ct values {texts}")

    def recorded() -> list[tuple[object, ...]]:
        return people.rows("changes", "change_seq, id, name, before.name", "change_seq")

    people.land(columns, [(seq("20260302", 1), "I", 1, "Ann")])
    project("run")
    land((seq("20260302", 2), "I", 2, "Bob"), (seq("20250101"), "I", 3, "Cid"))
    # a pair, and a copy of what is recorded
    land((seq("20250202"), "U", 3, "Dan"), (seq("20250202"), "B", 3, "Cid"))
    land((seq("20260302", 1), "I", 1, "Ann"))
    project("build")
    expected = [
        (seq("20250101"), 3, "Cid", None),
        (seq("20250202"), 3, "Dan", "Cid"),
        (seq("20260302", 1), 1, "Ann", None),
        (seq("20260302", 2), 2, "Bob", None),
    ]
    assert recorded() == expected
    # a run that was killed before it recorded its progress is repeated
    progress = f"{project.schema}.afterimage_progress"
    (last,) = spark.sql(f"select cast(max(recorded_at) as string) from {progress}").collect()
    spark.sql(f"delete from {progress} where recorded_at = timestamp '{last[0]}'")
    land((seq("20240101"), "I", 4, "Eve"))
    project("build")
    assert recorded() == [(seq("20240101"), 4, "Eve", None), *expected]
    # what comes after a backfill is found, too
    project("run", backfill_from="2026-03-02")
    land((seq("20230101"), "I", 5, "Fay"))
    project("build")
    assert recorded()[0] == (seq("20230101"), 5, "Fay", None)


def test_rows_that_the_package_appended_itself_are_known(
    spark: SparkSession, table_format: str
) -> None:
    """Decoded messages and logs, whose staging views find late records by them."""
    table = "late_records.decoded"
    spark.sql("create schema if not exists late_records")
    spark.sql(f"drop table if exists {table}")
    spark.sql(f"create table {table} (seq string, recorded_at timestamp) using {table_format}")
    batches = ["2026-03-01T08:00:00", "2026-03-01T09:00:00", "2026-03-01T10:00:00"]
    versions = []
    for number, (after, at) in enumerate(zip([None, *batches], batches, strict=False)):
        rows = spark.sql(f"select '{number}' as seq, timestamp '{at}' as recorded_at")
        append_once(spark, table, rows, table_format, after)
        versions.append(format_named(table_format).version(spark, table))
    first, _, last = (str(version) for version in versions)
    added = format_named(table_format).added_rows(spark, table, first, last)
    assert added is not None
    assert sorted(row["seq"] for row in added.collect()) == ["1", "2"]
    assert added.columns == ["seq", "recorded_at"]
