"""What runs of a change log read, keep, reject and refuse, on a table that is landed step by step.

The records are rows of a staging model, written here; `build_changes` and `write_batch` run as the
materialization `change_log` runs them, without dbt around them. A record in the notation:

    m1 0930 U 1 Bob      in the mark of arrival m1, at 09:30, the update of key 1 to the name Bob

`-` is NULL. Every record of the class `Table` has the content that its text is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest
from pyspark.sql import functions as F

from dbt_afterimage.change_log import model
from dbt_afterimage.change_log.batch import ChangeBatch
from dbt_afterimage.change_log.contract import STAGED_COLUMNS
from dbt_afterimage.change_log.deciding import gaps
from dbt_afterimage.change_log.deciding.gaps import GapError
from dbt_afterimage.change_log.deciding.quarantine import RejectedRecordsError
from dbt_afterimage.change_log.reading import processed_records
from dbt_afterimage.change_log.reading import read as reading
from dbt_afterimage.change_log.rebuild import RebuildError
from dbt_afterimage.change_log.writing import log_writer, write
from dbt_afterimage.change_log.writing.write import write_batch
from dbt_afterimage.changes import build_changes
from dbt_afterimage.errors import ConcurrentRunError
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.settings import parse_settings, positions
from dbt_afterimage.storage.create import table_writer
from dbt_afterimage.storage.local_relation import local_rows
from tests.macro_renderer import MacroRenderer
from tests.spark_settings import ONE_TASK, spark_settings
from tests.staged_columns import STAGED_SCHEMA
from tests.tiers import nightly

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

SCHEMA = "change_log"
COLUMNS = f"{STAGED_SCHEMA}, id string, name string"
PROGRESS = (
    "model string, recorded_at timestamp, change_seq string, changed_at timestamp, path string, "
    "arrival string, raw_version string, table_version string"
)


def seq(time: str) -> str:
    """`0930`: half past nine on 2 March 2026; what is not a time of the day stays as it is."""
    return f"20260302{time}".ljust(35, "0") if len(time) == 4 else time


def staged(text: str) -> dict[str, Any]:
    """One row of staging: its reject reason, if any, follows a colon."""
    record, _, reason = text.partition(": ")
    words = [None if word == "-" else word for word in record.split()]
    arrival, time, oper, key, name = [*words, None, None][:5]
    is_load = oper == "L"
    return {
        **dict.fromkeys(STAGED_COLUMNS),
        "change_seq": None if time is None or is_load else seq(time),
        "change_oper": oper,
        "load_id": time if is_load else None,
        "arrival": arrival,
        "reject_reason": reason or None,
        # of the content, the mark of arrival left out
        "record_hash": crc32(" ".join(map(str, words[1:])).encode()),
        "raw_record": record,
        "id": key,
        "name": name,
    }


class Table:
    """A raw table, its change log, and runs over them."""

    def __init__(self, spark: SparkSession, table_format: str, name: str) -> None:
        self.records: list[str] = []
        self.changed_at: str | None = None
        self._spark, self._format, self._name = spark, table_format, name
        self.log, self.rejected = f"{SCHEMA}.{name}_changes", f"{SCHEMA}.{name}_changes_rejected"
        self.progress = f"{SCHEMA}.{name}_progress"
        spark.sql(f"create schema if not exists {SCHEMA}")
        for table in (self.log, self.rejected, self.progress):
            spark.sql(f"drop table if exists {table}")
        spark.sql(f"create table {self.progress} ({PROGRESS}) using {table_format}")

    def land(self, *records: str) -> None:
        self.records += records

    def purge(self, *beginnings: str) -> None:
        """The records that begin so are gone."""
        self.records = [text for text in self.records if not text.startswith(beginnings)]

    def batch(self, settings: dict[str, Any] | None = None, **variables: Any) -> ChangeBatch:
        """What a run would write."""
        given = {"system": "qlik_change_table", "key": ["id"], **(settings or {})}
        node = {
            "source_name": "raw",
            "name": self._name,
            "config": {"meta": {"afterimage": given}},
        }
        self._context = {
            "model": f"{self._name}_changes",
            "settings": parse_settings(node),
            "log": self.log,
            "rejected": self.rejected,
            # rows of a test, which have no version: every run reads them
            "upstream": [],
            "progress": self.progress,
            "file_format": self._format,
            "beginning_of_time": "1900-01-01 00:00:00",
            "backfill_from": None,
            "rebuild_changes": False,
            "accept_gap": False,
            **variables,
        }
        config = SimpleNamespace(get=lambda name: self._context)
        batch = build_changes(SimpleNamespace(config=config), self._spark, self._staged())
        assert batch is not None
        return batch

    def _staged(self) -> DataFrame:
        rows = [tuple(staged(text).values()) for text in self.records]
        staged_rows = local_rows(self._spark, rows, COLUMNS).coalesce(1)
        if self.changed_at is None:
            return staged_rows
        return staged_rows.withColumn("changed_at", F.lit(self.changed_at).cast("timestamp"))

    def run(self, settings: dict[str, Any] | None = None, **variables: Any) -> None:
        self.write(self.batch(settings, **variables))

    def write(self, batch: ChangeBatch) -> None:
        write_batch(self._spark, RunContext(**self._context), batch)

    def changes(self) -> list[str]:
        """The log: `0930 U 1 Bob <- 1 Ann`."""
        rows = self._frame(self.log).selectExpr(
            "concat_ws(' ', coalesce(substr(change_seq, 9, 4), '-'), change_oper, id, name, "
            "if(before is null, null, concat_ws(' ', '<-', before.id, before.name)))"
        )
        return sorted(row[0] for row in rows.collect())

    def rejects(self, condition: str = "true") -> list[str]:
        """The rejected records and why."""
        rows = self._frame(self.rejected).filter(condition).select("raw_record", "reject_reason")
        return sorted(f"{row[0]}: {row[1]}" for row in rows.collect())

    def lost(self) -> list[str]:
        """What the generic test `conserved` finds."""
        return sorted(f"{row['change_seq'][8:12]} {row['change_oper']}" for row in self.lost_rows())

    def lost_rows(self) -> list[Row]:
        """The rows that the generic test `conserved` yields."""
        render = MacroRenderer(
            _check_relation_argument=lambda *arguments: None,
            _check_whole_table=lambda *arguments: None,
            _tested_settings=lambda: self._context["settings"],
            adapter=SimpleNamespace(
                afterimage=SimpleNamespace(
                    before_look_back_sql=lambda settings, seq: positions(
                        settings
                    ).before_look_back_sql(seq)
                )
            ),
            _rejected_relation=lambda log: self.rejected,
            _lost_columns=lambda *arguments: [],
            _erased_key_hash=lambda *arguments: "",
            _hashed_after=lambda log: "",
            # it reads no decoded log
            _not_decoded=lambda while_landing: "",
            _raw_columns=lambda relation: [{"name": name} for name in STAGED_COLUMNS],
        )
        view = f"{self._name}_staged"
        self._staged().createOrReplaceTempView(view)
        return self._spark.sql(render("test_conserved", self.log, view)).collect()

    def read_up_to(self) -> str | None:
        """Up to which position the last run says that it has read."""
        last = "max(struct(recorded_at, change_seq)).change_seq"
        row = self._frame(self.progress).selectExpr(last).first()
        assert row is not None
        return None if row[0] is None else str(row[0])

    def markers(self) -> list[tuple[str, str | None, int]]:
        """Name, time and number of rows of each full load."""
        marked = self._frame(self.log).filter("load_rows is not null")
        rows = marked.selectExpr("load_id", "cast(changed_at as string)", "load_rows")
        return sorted(tuple(row) for row in rows.collect())

    def loads(self) -> list[tuple[str, str]]:
        """Name and position of each full load, in their order."""
        rows = self._frame(self.log).filter("load_rows is not null").select("load_id", "change_seq")
        return sorted((tuple(row) for row in rows.collect()), key=lambda load: load[1])

    def commits(self) -> list[int]:
        """How many there are of the log, of the rejected records and of the progress."""
        counts = []
        for table in (self.log, self.rejected, self.progress):
            history = f"describe history {table}"
            if self._format == "iceberg":
                history = f"select * from {table}.snapshots"
            counts.append(self._spark.sql(history).count())
        return counts

    def _frame(self, table: str) -> DataFrame:
        self._spark.sql(f"refresh table {table}")
        return self._spark.table(table)


MakeTable = Callable[[str], Table]


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    with spark_settings(spark, ONE_TASK):
        yield spark


@pytest.fixture
def make_table(session: SparkSession, table_format: str) -> MakeTable:
    return lambda name: Table(session, table_format, name)


# --- marks of arrival


def test_a_late_record_in_a_new_mark_is_found_whatever_its_position(make_table: MakeTable) -> None:
    table = make_table("late")
    table.land("m1 0900 I 1 Ann", "m2 1200 I 2 Bob")
    table.run()
    # behind the look-back of 15 minutes: an old change, a pair, and a copy of what the log has
    table.land("m3 0800 I 3 Cid", "m3 0830 U 3 Dan", "m3 0830 B 3 Cid", "m3 0900 I 1 Ann")
    # in an old mark it would not be searched for, and has no new position either
    table.land("m0 0700 I 9 Zoe")
    table.run()
    assert table.changes() == [
        "0800 I 3 Cid",
        "0830 U 3 Dan <- 3 Cid",
        "0900 I 1 Ann",
        "1200 I 2 Bob",
    ]
    # the last mark but one is read once more, as it may have grown
    table.land("m2 0930 D 1", "m1 0945 D 2")
    table.run()
    assert [text for text in table.changes() if " D " in text] == ["0930 D 1"]
    assert table.lost() == ["0700 I", "0945 D"]


@pytest.mark.nightly
def test_arrival_look_back_is_a_number_of_marks(make_table: MakeTable) -> None:
    table = make_table("look_back")
    table.land(*(f"m{number} 120{number} I {number} Ann" for number in range(4)))
    table.run()
    table.land(*(f"m{number} 0800 I 5{number} Bob" for number in range(4)))
    for look_back, found in ((0, 1), (2, 3)):
        assert table.batch({"arrival_look_back": look_back}).counts.accepted == found


def test_a_record_waits_for_its_partner_over_any_number_of_marks(make_table: MakeTable) -> None:
    """As long as the look-back by position covers it."""
    table = make_table("waiting")
    table.land("m1 1200 U 1 Bob", "m1 1201 I 2 Cid")
    table.run()
    table.land("m2 1202 I 3 Dan", "m3 1203 I 4 Eve", "m4 1204 I 5 Fay")
    table.run()
    table.land("m5 1200 B 1 Ann")
    table.run()
    assert table.changes()[0] == "1200 U 1 Bob <- 1 Ann"


@pytest.mark.nightly
def test_a_mark_without_new_records_is_recorded_once(make_table: MakeTable) -> None:
    table = make_table("copies")
    table.land("m1 1200 I 1 Ann")
    table.run()
    log, rejected, progress = table.commits()
    table.land("m2 1200 I 1 Ann")
    table.run()
    assert table.commits() == [log, rejected, progress + 1]
    table.run()
    assert table.commits() == [log, rejected, progress + 1]
    # reading goes on from there
    table.land("m1 0800 I 8 Zoe", "m2 0800 I 9 Zoe")
    assert table.batch({"arrival_look_back": 0}).counts.accepted == 1


@pytest.mark.nightly
def test_a_backfill_does_not_pass_over_a_late_mark(make_table: MakeTable) -> None:
    table = make_table("backfill")
    table.land("m1 0900 I 1 Ann", "m2 1200 I 2 Bob", "m3 1210 I 3 Cid")
    table.run()
    table.land("m1 1000 I 4 Dan", "m1 0930 I 5 Eve", "m4 0800 I 6 Fay", "m6 1300 I 7 Gus")
    table.run(backfill_from="2026-03-02 09:45:00")
    assert table.changes() == [
        "0800 I 6 Fay",
        "0900 I 1 Ann",
        "1000 I 4 Dan",
        "1200 I 2 Bob",
        "1210 I 3 Cid",
        "1300 I 7 Gus",
    ]
    # nor does a time that the log has not reached pass over what comes before it
    table.land("m7 1310 D 7")
    table.run(backfill_from="2026-03-03")
    assert table.changes()[-1] == "1310 D 7"
    assert table.lost() == ["0930 I"]
    table.run(backfill_from=seq("0930"))
    assert table.changes()[2] == "0930 I 5 Eve"
    assert table.lost() == []


# --- gaps


@pytest.mark.nightly
def test_a_backfill_from_the_lowest_position_reads_everything(make_table: MakeTable) -> None:
    table = make_table("backfill_all")
    table.land("- 0900 I 1 Ann")
    table.run()
    table.land("- 0800 I 2 Bob")
    table.run()
    assert table.changes() == ["0900 I 1 Ann"]
    table.run(backfill_from="0" * 35)
    assert table.changes() == ["0800 I 2 Bob", "0900 I 1 Ann"]


@pytest.mark.nightly
def test_a_change_of_the_year_1_is_recorded_once(make_table: MakeTable) -> None:
    first = "0001010100000000".ljust(34, "0") + "1"
    table = make_table("year_1")
    for time in ("0900", "0901", "0902"):
        table.land(f"- {first} I 1 Ann", f"- {time} I {time} Bob")
        table.run()
    assert len(table.changes()) == 4


@pytest.mark.nightly
def test_a_record_that_nothing_will_read_is_counted(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test's raw rows have no versions that show which rows are new, as with a view."""
    warnings: list[str] = []
    monkeypatch.setattr(processed_records, "logger", SimpleNamespace(warning=warnings.append))
    table = make_table("counted")
    table.land("- 0900 I 1 Ann", "- 1200 I 2 Bob")
    table.run()
    table.land("- 1201 I 3 Cid")
    table.run()
    commits = table.commits()
    table.run()
    assert table.commits() == commits, "an unchanged count is not recorded again"
    assert warnings == []
    table.land("- 0800 I 4 Dan", "- 1202 I 5 Eve")
    table.run()
    (warning,) = warnings
    assert "counted_changes: the raw table has 1 more records at or before change_seq" in warning
    assert "`conserved`" in warning
    assert "backfill_from" in warning
    assert table.lost() == ["0800 I"]
    # it is said once; a purge is not news
    table.purge("- 0900")
    table.run()
    table.run(backfill_from=seq("0800"))
    table.run()
    assert table.lost() == []
    assert len(warnings) == 1


def test_conserved_names_the_position_to_backfill_from(make_table: MakeTable) -> None:
    table = make_table("named")
    table.land("- 0900 I 1 Ann", "- 1200 I 2 Bob")
    table.run()
    table.land("- 0800 I 4 Dan", "- 1159 I 5 Eve")
    table.run()
    table.land("- 1158 I 6 Fay")
    said = {row["change_seq"][8:12]: row["what_is_wrong"] for row in table.lost_rows()}
    assert said == {
        "0800": "neither in the log nor rejected; if it came too late for the look-back, run once "
        f"with --vars '{{backfill_from: \"{seq('0800')}\"}}'",
        "1158": "neither in the log nor rejected",
    }


GAP_FIXES = ["backfill_from", "load_id", "accept_gap: true", "allowed: fail, warn, ignore"]


@pytest.mark.nightly
@pytest.mark.parametrize("few", [100, 2])
def test_records_without_a_position_are_found_wherever_they_sort(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(reading, "_MAX_POSITIONS_IN_FILTER", few)
    table = make_table(f"strange_{few}")
    table.land("- 1200 I 1 Ann")
    table.run()
    # settled is what came an hour before, so none of these is behind it
    no_day = f"20260230{seq('0700')[8:]}"
    strange = ["-", "0", "20260301", no_day, f"{seq('0700')[:-1]}x", f"{seq('0800')}0"]
    table.land("- 0600 I 2 Bob", *[f"- {text} I 7 Zoe: malformed" for text in strange])
    table.run()
    assert table.rejects() == [f"- {text} I 7 Zoe: malformed" for text in sorted(strange)]
    assert table.changes() == ["1200 I 1 Ann"]


@pytest.mark.parametrize(
    ("landed", "later", "places"),
    [
        # by position
        *nightly((["- 0900 I 1 Ann"], ["- 1200 D 1"], (f"change_seq {seq('0900')}", seq("1200")))),
        # the mark that was read last
        (["m1 0900 I 1 Ann", "m2 0910 D 1"], ["m4 0800 I 2 Bob"], ("arrival m2", "m4")),
    ],
    ids=["positions", "marks"],
)
def test_a_raw_table_that_was_purged_before_it_was_read(
    make_table: MakeTable,
    monkeypatch: pytest.MonkeyPatch,
    landed: list[str],
    later: list[str],
    places: tuple[str, str],
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(gaps, "logger", SimpleNamespace(warning=warnings.append))
    table = make_table(f"gap_{len(landed)}")
    table.land(*landed)
    table.run()
    before, commits = table.changes(), table.commits()
    table.purge(*landed)
    # an empty table is not a gap, nor are records without a position
    table.land(
        "- - I 7 Zoe: null_change_seq", f"- {seq('0930')[:-1]}x I 7 Zoe: malformed_change_seq"
    )
    table.run({"on_gap": "fail"})
    table.land(*later)
    with pytest.raises(GapError) as error:
        table.run({"on_gap": "fail"})
    assert table.changes() == before
    assert table.commits()[0] == commits[0]
    message = str(error.value)
    expected = [f"gap_{len(landed)}_changes", "`on_gap` is 'fail'", "Nothing was written", *places]
    assert [part for part in [*expected, *GAP_FIXES] if part not in message] == []
    assert warnings == []
    table.run()
    assert len(table.changes()) == len(before) + 1
    (warning,) = warnings
    assert "`on_gap` is 'warn'" in warning and "Nothing was written" not in warning
    # what was read is not a gap any more
    table.run({"on_gap": "fail"})


def test_a_full_load_closes_a_gap(make_table: MakeTable) -> None:
    table = make_table("reload")
    fails = {"on_gap": "fail"}
    first = {**fails, "base": {"kind": "frozen", "load_id": "first"}}
    # the first change after a load is not a gap: nothing was read before it
    table.land("- first L 1 Ann")
    table.run(first)
    table.land("- 0900 D 1")
    table.run(first)
    table.purge("-")
    table.land("- 1200 I 2 Bob")
    with pytest.raises(GapError):
        table.run(first)
    # reloaded: the change table is emptied, and stays so until the next change
    table.purge("-")
    second = {**fails, "base": {"kind": "frozen", "load_id": "second"}}
    table.land("- second L 2 Bob")
    table.run(second)
    table.land("- 1300 I 3 Cid")
    table.run(second)
    assert table.changes()[-1] == "1300 I 3 Cid"


# --- full loads


@pytest.mark.nightly
def test_the_position_of_a_load_hides_no_change_before_it(make_table: MakeTable) -> None:
    """The load may be newer than the changes that have landed."""
    table = make_table("declared")
    table.land("- 0900 I 1 Ann", "- 0859 U 2 Bea", "- first L 1 Ann")
    loaded = {"base": {"kind": "frozen", "load_id": "first", "position": seq("1200")}}
    table.run(loaded)
    assert table.loads() == [("first", seq("1200"))]
    table.land("- 0859 B 2 Bob", "- 1000 I 2 Bob", "- 1130 D 2", "- 1155 I 3 Cid")
    table.run({**loaded, "on_gap": "fail"})
    assert [text for text in table.changes() if " L" not in text] == [
        "0859 U 2 Bea <- 2 Bob",
        "0900 I 1 Ann",
        "1000 I 2 Bob",
        "1130 D 2",
        "1155 I 3 Cid",
    ]


@pytest.mark.nightly
def test_a_change_at_the_position_that_a_load_took_is_read(make_table: MakeTable) -> None:
    table = make_table("next_door")
    exact = {"look_back": "0 seconds"}
    table.land("- 0900 I 1 Ann", "- first L 1 Ann")
    table.run({**exact, "base": {"kind": "frozen", "load_id": "first"}})
    second = {**exact, "base": {"kind": "frozen", "load_id": "second"}}
    table.land("- second L 1 Ann")
    table.run(second)
    place = f"{int(seq('0900')) + 1}"
    assert table.loads()[1] == ("second", place)
    table.land(f"- {place} I 2 Bob")
    table.run(second)
    assert "0900 I 2 Bob" in table.changes()


@pytest.mark.nightly
def test_loads_of_a_feed_lie_between_its_changes_also_at_0(
    make_table: MakeTable, spark: SparkSession
) -> None:
    feed = {"system": "change_feed", "sequence": {"place": "number"}, "operation": "op"}
    feed |= {"operations": {"U": "U"}, "before": "none"}
    table = make_table("feed_loads")
    table.land("- first L 1 Ann", f"- {0:016X} U 1 Bob")
    table.run({**feed, "base": {"kind": "frozen", "load_id": "first"}})
    table.land("- second L 1 Cleo")
    table.run({**feed, "base": {"kind": "frozen", "load_id": "second"}})
    table.land(f"- {1:016X} U 1 Dora")
    for _ in range(2):
        table.run({**feed, "base": {"kind": "frozen", "load_id": "second"}})
    rows = spark.table(table.log).filter("load_rows is null").orderBy("change_seq").collect()
    assert [row["name"] for row in rows] == ["Ann", "Bob", "Cleo", "Dora"]
    assert len({row["change_seq"] for row in rows}) == 4


def test_an_empty_load_has_the_time_that_is_declared(make_table: MakeTable) -> None:
    table = make_table("emptied")
    table.land("- first L 1 Ann")
    table.run({"base": {"kind": "frozen", "load_id": "first"}})
    base = {"kind": "frozen", "load_id": "second", "loaded_at": "2026-03-02 12:00:00"}
    table.purge("-")
    table.run({"base": base})
    assert table.markers() == [("first", None, 1), ("second", "2026-03-02 12:00:00", 0)]


# --- updates without a before image


@pytest.mark.nightly
def test_updates_that_waited_long_enough_are_settled(make_table: MakeTable) -> None:
    """A task that stores no before images, though `before_images` was left at true."""
    table = make_table("alone")
    base = {"base": {"kind": "frozen", "load_id": "first"}}
    table.land("- first L 1 Ann", "- 0900 U 1 Bea", "- 0920 U 1 Cleo", "- 0940 U 1 Dora")
    table.run(base)
    assert table.read_up_to() == seq("0920")
    again = table.batch(base)
    # 0900 is behind the look-back of 15 minutes; the last one waits
    assert (again.counts.duplicates, again.counts.pending) == (1, 1)
    table.land("- 0940 B 1 Cleo")
    table.run(base)
    assert [text for text in table.changes() if " U " in text] == [
        "0900 U 1 Bea",
        "0920 U 1 Cleo",
        "0940 U 1 Dora <- 1 Cleo",
    ]


@pytest.mark.parametrize(
    ("settings", "fix"),
    [
        ({}, "`before_images: false`"),
        ({"system": "openedge", "table_number": 1, "look_back": 5}, "`policy_level: 2`"),
    ],
)
def test_a_run_warns_of_before_images_that_never_come(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], fix: str
) -> None:
    """`before_images` was left at true, and the source stores none: field changes stay empty."""
    warnings: list[str] = []
    said = SimpleNamespace(warning=warnings.append, info=lambda text: None)
    monkeypatch.setattr(write, "logger", said)
    table = make_table("imageless")
    places = ["0900", "0905", "0910", "0940", "0950"]
    if settings:
        places = [f"{number:019d}" for number in (1, 2, 3, 8, 9)]
    table.land(*[f"- {place} U {key} Bea" for key, place in enumerate(places)])
    table.run(settings)
    (warning,) = warnings
    for part in ("imageless_changes", "3 of 3 updates", "raw.imageless", "Fix: ", fix, "switch on"):
        assert part in warning
    # what waits may still get its before image
    assert len(table.changes()) == 3
    table.run(settings)
    assert len(warnings) == 1


def test_a_run_does_not_warn_of_single_before_images_that_are_missing(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    said = SimpleNamespace(warning=warnings.append, info=lambda text: None)
    monkeypatch.setattr(write, "logger", said)
    table = make_table("seeing")
    table.land("- 0900 U 1 Bea", "- 0905 U 2 Cleo", "- 0905 B 2 Ann", "- 0950 D 3")
    table.run()
    assert table.changes() == ["0900 U 1 Bea", "0905 U 2 Cleo <- 2 Ann", "0950 D 3"]
    # where the settings say that there are none, none is missed
    plain = make_table("plain")
    plain.land("- 0900 U 1 Bea", "- 0950 D 3")
    plain.run({"before_images": False})
    assert warnings == []


def test_a_first_batch_whose_times_all_lie_before_1980_gets_a_warning(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(model, "logger", SimpleNamespace(warning=warnings.append))
    for name, time in (("old", "1970-08-23 11:45:01"), ("recent", "2026-03-02 09:30:00")):
        table = make_table(name)
        table.changed_at = time
        table.land("- 0930 I 1 Ann")
        table.run()
        table.land("- 0931 I 2 Bob")
        table.run()
    (warning,) = warnings
    for part in ("old_changes", "raw.old", "1970-08-23", "`changed_at_unit`", "Fix: "):
        assert part in warning


# --- rejected records


def test_a_run_counts_a_rejected_record_once(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rejected records are read again in each run: the log would name them each time."""
    lines: list[str] = []
    monkeypatch.setattr(write, "logger", SimpleNamespace(info=lines.append))
    table = make_table("counted")
    table.land("- 0900 I 1 Ann", "- 0900 I - Bea", "- 0900 I - Cid")
    table.run()
    table.land("- 0910 D 1")
    table.run()
    table.land("- 0920 I - Dan")
    table.run()
    assert lines == [
        "counted_changes: 1 changes recorded, 2 rejected",
        "counted_changes: 1 changes recorded, 1 duplicates",
        "counted_changes: 0 changes recorded, 1 rejected, 2 duplicates",
    ]


@pytest.mark.nightly
def test_a_rejected_record_is_kept_as_it_was_read(make_table: MakeTable) -> None:
    """Its text is searched for in the records that the run reads, not in the whole raw table."""
    table = make_table("text")
    table.land("m1 0900 I 1 Ann", "m2 1200 I 2 Bob", "m3 1210 I 3 Cid")
    table.run()
    # the same record in a mark of long ago, which no run reads any more
    table.land("m4 0800 D -", "m1 0800 D -")
    table.run()
    assert table.rejects() == ["m4 0800 D -: null_key"]
    table.land("- first L - Eve", "- first L 4 Fay")
    table.run({"base": {"kind": "frozen", "load_id": "first"}})
    assert table.rejects() == ["- first L - Eve: null_key", "m4 0800 D -: null_key"]


@pytest.mark.nightly
@pytest.mark.both_formats
def test_a_repaired_record_resolves_the_rejected_one(make_table: MakeTable) -> None:
    table = make_table("repaired")
    table.land(
        "m1 0900 I 1 Ann",
        "m1 0910 I - Bob",
        "m1 0920 - 2 Cid: unknown_operation",
        "m1 0930 D 3 bad: malformed_mask",
        "m1 0940 U 4 bad: malformed_mask",
        "m1 - I 5 Eve: null_change_seq",
        "m1 0900 I 1 Another",
        "m1 0800 B 6 Fay",
        "m1 1000 I 7 Gus",
    )
    table.run()
    kept = [text for text in table.records if "Another" in text or "1 Ann" in text]
    assert len(table.rejects()) == 7 and len(table.changes()) == 2
    log, rejected, progress = table.commits()
    # other keys and operations of the same positions repair nothing
    table.land("m2 0930 I 3 Hal", "m2 0930 D 8", "m2 0940 D 4", "m2 0900 D 1")
    table.run()
    assert table.rejects("resolved_at is not null") == []
    assert table.commits() == [log + 1, rejected, progress + 1]
    table.land(
        "m3 0910 I 2 Bob",
        "m3 0920 U 2 Cid",
        "m3 0930 D 3",
        "m3 0940 U 4 Dan",
        "m3 0940 B 4 Old",
        "m3 0800 U 6 Gus",
        "m3 0800 B 6 Fay",
    )
    table.run()
    resolved = table.rejects("resolved_at = (select max(recorded_at) from " + table.log + ")")
    assert resolved == [
        "m1 0800 B 6 Fay: orphan_before_image",
        "m1 0910 I - Bob: null_key",
        "m1 0920 - 2 Cid: unknown_operation",
        "m1 0930 D 3 bad: malformed_mask",
        "m1 0940 U 4 bad: malformed_mask",
    ]
    unresolved = table.rejects("resolved_at is null")
    assert len(unresolved) == 2
    assert unresolved[0] == "m1 - I 5 Eve: null_change_seq"
    assert unresolved[1].removesuffix(": conflicting_duplicate") in kept
    assert table.commits() == [log + 2, rejected + 1, progress + 2]
    table.run()
    assert table.commits() == [log + 2, rejected + 1, progress + 2]
    assert table.lost() == []


def test_on_reject_fail_writes_nothing_and_a_repaired_feed_goes_on(make_table: MakeTable) -> None:
    table = make_table("strict")
    strict = {"on_reject": "fail"}
    table.land("- 0900 I 1 Ann")
    table.run(strict)
    commits = table.commits()
    table.land("- 0910 I 2 Bob", "- 0920 D -")
    with pytest.raises(RejectedRecordsError) as error:
        table.run(strict)
    expected = ["strict_changes", "`on_reject` is `fail`", "null_key (1)", seq("0920"), "Fix: "]
    assert [part for part in expected if part not in str(error.value)] == []
    assert "0920 D -" not in str(error.value), "logs quote no record"
    assert (table.commits(), table.changes()) == (commits, ["0900 I 1 Ann"])
    table.purge("- 0920")
    table.land("- 0920 D 1")
    table.run(strict)
    assert table.changes() == ["0900 I 1 Ann", "0910 I 2 Bob", "0920 D 1"]
    assert table.rejects() == []


def test_an_orphan_is_rejected_and_its_update_accepted_when_the_look_back_has_passed(
    make_table: MakeTable,
) -> None:
    table = make_table("orphans")
    table.land("- 0900 B 1 Ann", "- 0901 U 2 Bob", "- 0910 I 3 Cid")
    table.run()
    assert (table.changes(), table.rejects()) == (["0910 I 3 Cid"], [])
    table.land("- 0916 I 4 Dan")
    table.run()
    assert table.changes() == ["0901 U 2 Bob", "0910 I 3 Cid", "0916 I 4 Dan"]
    assert table.rejects() == ["- 0900 B 1 Ann: orphan_before_image"]


@pytest.mark.nightly
def test_a_record_with_a_clock_that_is_ahead_ends_no_waiting(make_table: MakeTable) -> None:
    now = datetime.now(timezone.utc)

    def at(minutes: int) -> str:
        return f"{now + timedelta(minutes=minutes):%Y%m%d%H%M%S}".ljust(35, "0")

    table = make_table("a_clock_ahead")
    table.land(f"- {at(-2)} U 1 Bob", f"- {at(23 * 60)} I 2 Ahead")
    table.run()
    assert [row.split()[1:] for row in table.changes()] == [["I", "2", "Ahead"]]
    assert table.lost_rows() == []
    # the other half, and a change that is older than the one that is ahead
    table.land(f"- {at(-2)} B 1 Ann", f"- {at(-1)} I 3 Cid")
    table.run()
    assert sorted(row.split()[1:] for row in table.changes()) == [
        ["I", "2", "Ahead"],
        ["I", "3", "Cid"],
        ["U", "1", "Bob", "<-", "1", "Ann"],
    ]
    assert table.rejects() == []


def test_a_copy_of_a_rejected_record_ends_no_waiting(make_table: MakeTable) -> None:
    """Its position does not measure how far the source has come, however often it is delivered."""
    table = make_table("copies")
    future = "- 2359 I 9 Zed: future_change_seq"
    table.land("- 0900 U 1 Bob", "- 0901 I 3 Cid", future, future)
    table.run()
    assert (table.changes(), table.rejects()) == (["0901 I 3 Cid"], [future])
    table.land("- 0900 B 1 Ann")
    table.run()
    assert table.changes() == ["0900 U 1 Bob <- 1 Ann", "0901 I 3 Cid"]


# --- rebuild_changes


def test_a_rebuild_rebuilds_the_log(make_table: MakeTable) -> None:
    table = make_table("rebuilt")
    base = {"base": {"kind": "frozen", "load_id": "first"}}
    table.land("- first L 1 Ann", "m1 0900 U 1 Bob", "m1 0900 B 1 Ann", "m1 0905 I - Cid")
    table.land("m2 0910 I 2 Dan")
    table.run(base)
    changes, rejects = table.changes(), table.rejects()
    log = table.commits()[0]
    # it is other settings that make a rebuild necessary: the records without before images
    table.run({"before_images": False, **base}, rebuild_changes=True)
    assert table.changes() == [text.removesuffix(" <- 1 Ann") for text in changes]
    assert len(table.changes()) == len(changes) == 4
    assert table.rejects() == sorted([*rejects, "m1 0900 B 1 Ann: orphan_before_image"])
    assert table.commits()[0] == log + 1
    table.run(base, rebuild_changes=True)
    assert table.changes() == changes
    # the before image has its place again
    assert table.rejects("resolved_at is null") == rejects
    # and it goes on from there
    table.land("m3 0800 I 5 Eve")
    assert table.batch(base).counts.accepted == 1


def test_a_rebuild_refuses_what_it_would_lose(make_table: MakeTable) -> None:
    table = make_table("lossy")
    base = {"kind": "frozen", "load_id": "first"}
    table.land("- first L 1 Ann", "m1 0900 I 2 Bob", "m1 0910 U 1 Eve", "m1 0910 B 1 Ann")
    table.run({"base": base})
    changes, commits, records = table.changes(), table.commits(), table.records
    first, second = seq("0900"), seq("0910")
    for gone, load_id, parts in (
        (
            "m1 0900",
            "first",
            [f"change_seq {first}", f"raw table is at {second}", "lacks 1 records"],
        ),
        (
            "m1 0910 B",
            "first",
            [f"change_seq {second}", f"raw table is at {first}", "lacks 1 records"],
        ),
        ("nothing", "second", ["full load 'first'", "`load_id` 'second'"]),
    ):
        table.records = records
        table.purge(gone)
        with pytest.raises(RebuildError) as error:
            table.run({"base": {**base, "load_id": load_id}}, rebuild_changes=True)
        parts += ["lossy_changes", "`rebuild_changes` is set", "Nothing was written", "Fix: "]
        assert [part for part in parts if part not in str(error.value)] == []
    assert (table.changes(), table.commits()) == (changes, commits)
    # a reload
    table.land("- second L 1 Eve")
    table.run({"base": {**base, "load_id": "second"}})
    fix = "Fix: run without `rebuild_changes`: `base` names one load"
    with pytest.raises(RebuildError, match=re.escape(fix)):
        table.run({"base": {**base, "load_id": "second"}}, rebuild_changes=True)


# --- two runs at one time


def test_of_two_runs_at_one_time_the_second_one_doubles_no_rejects(
    make_table: MakeTable,
) -> None:
    table = make_table("at_one_time")
    table.land("p1 0900 I 1 Ann")
    table.run()
    table.land("p1 0910 I 9 bad: malformed_mask", "p1 0920 I 2 Cid")
    late = table.batch()
    assert late.rejected is not None
    # what another process has computed by then
    worked_out = replace(late.rejected, rows=late.rejected.rows.localCheckpoint())
    table.run()
    rejects = table.rejects()
    assert len(rejects) == 1
    with pytest.raises(ConcurrentRunError, match="another run wrote to it"):
        table.write(replace(late, rejected=worked_out))
    assert table.rejects() == rejects
    assert table.changes() == ["0900 I 1 Ann", "0920 I 2 Cid"]


@pytest.mark.nightly
def test_a_rebuild_stops_where_another_run_has_recorded_something(make_table: MakeTable) -> None:
    table = make_table("rebuilt_late")
    table.land("- 0900 I 1 Ann")
    table.run()
    late = table.batch(rebuild_changes=True)
    table.land("- 1200 I 2 Bob")
    table.run()
    commits = table.commits()
    with pytest.raises(ConcurrentRunError, match="another run wrote to it"):
        table.write(late)
    assert table.commits() == commits
    assert table.changes() == ["0900 I 1 Ann", "1200 I 2 Bob"]


@pytest.mark.nightly
def test_what_another_run_records_during_a_rebuild_is_read_again(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To write the whole log takes minutes, in which a scheduled run can come and go."""
    table = make_table("rebuilt_beside")
    table.land("m1 0900 I 1 Ann")
    table.run()
    late = table.batch(rebuild_changes=True)

    def meanwhile(*arguments: Any) -> Any:
        monkeypatch.undo()
        table.land("m2 1100 I 2 Bob", "m3 1200 I 3 Cid", "m4 1210 I 4 Dan")
        table.run()
        return table_writer(*arguments)

    monkeypatch.setattr(log_writer, "table_writer", meanwhile)
    with pytest.raises(ConcurrentRunError, match=r"rebuilt.*rebuild_changes: true"):
        table.write(late)
    assert table.changes() == ["0900 I 1 Ann"]
    table.run()
    assert len(table.changes()) == 4


# --- killed runs


class KilledError(Exception):
    """The process ends here."""


def run_killed(
    table: Table,
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    settings: dict[str, Any] | None = None,
    **variables: Any,
) -> None:
    """A run that ends before it calls a function of `write` or `log_writer`."""

    def no_more(*arguments: Any, **keywords: Any) -> None:
        raise KilledError

    module = write if before == "write_log" else log_writer
    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(module, before, no_more)
        table.run(settings, **variables)


def test_a_killed_run_can_be_repeated(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table("killed")
    bad = ("m1 0910 D 1 bad: malformed_mask", "m1 0920 I 2 bad: malformed_mask")
    table.land("m1 0900 I 1 Ann", *bad)
    table.run()

    # before the log has the repaired record
    table.land("m2 0910 D 1")
    run_killed(table, monkeypatch, "write_log")
    table.run()
    assert table.changes() == ["0900 I 1 Ann", "0910 D 1"]
    assert table.rejects("resolved_at is null") == [bad[1]]
    # before its progress is recorded
    table.land("m3 0800 I 3 Cid", "m3 0920 I 2 Bob")
    run_killed(table, monkeypatch, "write_progress")
    log, rejected, progress = table.commits()
    table.run()
    assert table.commits() == [log, rejected, progress + 1]
    whole = ["0800 I 3 Cid", "0900 I 1 Ann", "0910 D 1", "0920 I 2 Bob"]
    assert table.changes() == whole
    assert table.rejects("resolved_at is null") == []
    run_killed(table, monkeypatch, "write_progress", rebuild_changes=True)
    table.run()
    assert table.changes() == whole


@pytest.mark.nightly
@pytest.mark.parametrize("position", [None, seq("1200")], ids=["first", "declared"])
def test_a_first_run_that_was_killed_has_recorded_its_load(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch, position: str | None
) -> None:
    """A later load comes after it, and the progress is the same as after an undisturbed run."""
    reached, loads = [], []
    for name in ("undisturbed", "killed"):
        table = make_table(f"first_{name}_{position}")
        first = {"base": {"kind": "frozen", "load_id": "first", "position": position}}
        table.land("- first L 1 Ann")
        if name == "killed":
            run_killed(table, monkeypatch, "write_progress", first)
        table.run(first)
        reached.append(table.read_up_to())
        table.land("- second L 2 Bob")
        table.run({"base": {"kind": "frozen", "load_id": "second"}})
        loads.append(table.loads())
    assert reached == ["0" * 35] * 2
    after = f"{int(position or 0) + 1:035d}"
    assert loads == [[("first", position or "0" * 35), ("second", after)]] * 2


@pytest.mark.nightly
def test_a_first_run_that_was_killed_passes_over_no_mark(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table("first_partitions")
    table.land("m1 0900 I 1 Ann", "m1 1200 I 2 Bob")
    run_killed(table, monkeypatch, "write_progress")
    table.land("m2 0800 I 3 Cid", "m3 1210 I 4 Dan", "m4 1220 I 5 Eve")
    table.run()
    assert table.changes()[0] == "0800 I 3 Cid"
    assert table.lost() == []
