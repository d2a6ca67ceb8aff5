"""A run reads the files of a raw table that have new records, and of the others one column."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from dbt_afterimage.change_log.deciding.gaps import check_gap
from dbt_afterimage.change_log.reading.read import read
from dbt_afterimage.sequence import SolidDbChangeSequence
from dbt_afterimage.settings import parse_settings, positions
from dbt_afterimage.sources.soliddb.raw import is_at, is_newer
from dbt_afterimage.storage.local_relation import local_rows
from dbt_afterimage.storage.progress import Progress
from tests.run_contexts import run_context

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.both_formats

RAW = "raw_files.things__ct"
DAYS = ("20260301", "20260302", "20260303")
RECORDS_A_DAY = 50


@pytest.fixture
def raw(spark: SparkSession, table_format: str) -> DataFrame:
    """A change table with a file for each of three days."""
    spark.sql("create schema if not exists raw_files")
    spark.sql(f"drop table if exists {RAW}")
    for day in DAYS:
        records = spark.range(RECORDS_A_DAY).selectExpr(
            f"rpad(concat('{day}', lpad(id, 4, '0')), 35, '0') as change_seq",
            "'I' as change_oper",
            "cast(null as string) as arrival",
            "cast(null as string) as load_id",
            "id",
        )
        writer = records.coalesce(1).writeTo(RAW).using(table_format)
        if day == DAYS[0]:
            writer.create()
        else:
            writer.append()
    return spark.table(RAW)


@pytest.mark.parametrize("kind", ["string", "binary"])
def test_files_of_a_log_that_was_read_are_not_read(
    spark: SparkSession, table_format: str, kind: str
) -> None:
    spark.sql("create schema if not exists raw_files")
    table = f"raw_files.sys_log_{kind}"
    spark.sql(f"drop table if exists {table}")
    addresses = [f"{number:040X}" for number in range(0xA0, 0xA0 + 3 * RECORDS_A_DAY)]
    for day in range(3):
        of_day = [(text,) for text in addresses[day * RECORDS_A_DAY : (day + 1) * RECORDS_A_DAY]]
        column = "logaddr" if kind == "string" else "unhex(logaddr) as logaddr"
        records = local_rows(spark, of_day, "logaddr string").selectExpr(column)
        writer = records.coalesce(1).writeTo(table).using(table_format)
        if day:
            writer.append()
        else:
            writer.create()
    log = spark.table(table)
    last = addresses[2 * RECORDS_A_DAY - 1]
    assert rows_read(log.filter(is_newer(log, last))) == RECORDS_A_DAY
    assert rows_read(log.filter(is_at(log, last))) == RECORDS_A_DAY


def test_soliddb_scans_new_records_only(spark: SparkSession, raw: DataFrame) -> None:
    """Its positions were checked when they were decoded: no query searches for malformed ones."""
    given = {"system": "soliddb", "key": ["id"]}
    node = {"source_name": "raw", "name": "sys_log", "config": {"meta": {"afterimage": given}}}
    settings = parse_settings(node)
    context = run_context(settings=settings)
    done = Progress(change_seq="A0".rjust(40, "0"))
    spark.sparkContext.setJobGroup("soliddb reading", "queries before the records are read")
    # staging has no marks of arrival
    staged = raw.withColumn("arrival", F.lit(None).cast("string"))
    read(context, positions(settings), staged, raw, done, None, None, lambda floor: None)
    assert not spark.sparkContext.statusTracker().getJobIdsForGroup("soliddb reading")


def test_a_record_that_was_read_shows_that_nothing_was_purged(spark: SparkSession) -> None:
    """The first one found is enough: the reasons of the others take the values of each."""
    staged = spark.range(1, 200, numPartitions=1).selectExpr(
        "lpad(hex(id), 40, '0') as change_seq",
        "'I' as change_oper",
        "if(id > 1, raise_error('was read'), cast(null as string)) as reject_reason",
    )
    context = run_context(settings={"on_gap": "fail"})
    done = Progress(change_seq=f"{150:040X}")
    check_gap(context, SolidDbChangeSequence(0), staged, staged, done, None, f"{151:040X}")


def rows_read(frame: DataFrame) -> int:
    """How many rows its scans yield."""
    frame.collect()
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    read_rows = [
        leaves.apply(index).metrics().get("numOutputRows") for index in range(leaves.size())
    ]
    return sum(metric.get().value() for metric in read_rows if metric.isDefined())


def check_that_the_last_day_is_read(spark: SparkSession, raw: DataFrame, system: str) -> None:
    given = {"system": system, "key": ["id"]}
    node = {"source_name": "raw", "name": "things", "config": {"meta": {"afterimage": given}}}
    settings = parse_settings(node)
    log = spark.sql("select change_seq, change_oper from " + RAW)
    context = run_context(settings=settings)
    done = Progress(change_seq=f"{DAYS[1]}2359".ljust(35, "0"))
    changes = read(
        context, positions(settings), raw, log, done, None, None, lambda floor: None
    ).changes
    assert rows_read(changes) == RECORDS_A_DAY
    assert changes.count() == RECORDS_A_DAY


def test_files_of_settled_records_are_not_read(spark: SparkSession, raw: DataFrame) -> None:
    check_that_the_last_day_is_read(spark, raw, "qlik_change_table")


def test_files_of_a_full_load_are_not_read_for_changes(spark: SparkSession, raw: DataFrame) -> None:
    """Where loads come among the changes. Their place lies below those of all changes."""
    load = spark.range(1000).selectExpr(
        "repeat('0', 35) as change_seq", "'L' as change_oper", "cast(null as string) as arrival",
        "'things-0-0' as load_id", "id",
    )  # fmt: skip
    load.coalesce(1).writeTo(RAW).append()
    # as staging makes it of messages: no file can be skipped by it
    raw = spark.table(RAW).withColumn("change_oper", F.explode(F.array("change_oper")))
    check_that_the_last_day_is_read(spark, raw, "qlik_messages")
