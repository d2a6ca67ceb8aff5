"""What a run changes of a mart is seen as a whole or not at all, and never over another run's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dbt_afterimage.errors import ConcurrentRunError
from dbt_afterimage.storage.formats import iceberg
from dbt_afterimage.storage.local_relation import local_rows
from dbt_afterimage.storage.mart_batch import MartBatch
from dbt_afterimage.storage.publish import current_version, publish
from tests.functional.merge_on_read import make_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.both_formats

TABLE = "publication.people"
COLUMNS = "id int, is_current boolean, name string"


@pytest.fixture
def table(spark: SparkSession, table_format: str) -> str:
    """Two versions of 1, and 2."""
    make_table(spark, TABLE, COLUMNS, table_format, partition="is_current")
    spark.sql(f"insert into {TABLE} values (1, false, 'An'), (1, true, 'Ann'), (2, true, 'Bo')")
    return TABLE


def batch(spark: SparkSession, after: str | None, *rows: tuple[Any, ...]) -> MartBatch:
    """Columns in another order than the table has them."""
    frame = local_rows(
        spark, list(rows), "_write_action string, name string, id int, is_current boolean"
    )
    return MartBatch(frame, ["id"], "target.is_current", after)


def people(spark: SparkSession) -> list[tuple[Any, ...]]:
    spark.sql(f"refresh table {TABLE}")
    return sorted(map(tuple, spark.table(TABLE).collect()))


def refs(spark: SparkSession, table_format: str) -> list[str]:
    if table_format == "delta":
        return ["main"]
    return [row[0] for row in spark.sql(f"select name from {TABLE}.refs").collect()]


def test_rows_come_and_go(spark: SparkSession, table: str, table_format: str) -> None:
    after = current_version(spark, table, table_format)
    rows = [
        ("update", "Anna", 1, True),
        ("delete", None, 2, None),
        ("update", "Cy", 3, True),
        ("insert", "Ann", 1, False),
    ]
    publish(spark, table, batch(spark, after, *rows), table_format)
    assert people(spark) == [
        (1, False, "An"),
        (1, False, "Ann"),
        (1, True, "Anna"),
        (3, True, "Cy"),
    ]
    assert refs(spark, table_format) == ["main"]


@pytest.mark.iceberg_only
def test_a_catalog_that_refuses_branches_takes_one_merge(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Nessie's REST catalog refuses them: Iceberg reports a conflict."""
    run, said = spark.sql, list[str]()

    def refusing(statement: str, *arguments: Any, **named: Any) -> Any:
        if " create branch " in statement:
            raise RuntimeError("org.apache.iceberg.exceptions.CommitFailedException: 409")
        return run(statement, *arguments, **named)

    monkeypatch.setattr(iceberg.logger, "warning", said.append)
    monkeypatch.setattr(spark, "sql", refusing)
    after = current_version(spark, table, "iceberg")
    ours = [("update", "Anna", 1, True), ("delete", None, 2, None), ("insert", "Ann", 1, False)]
    publish(spark, table, batch(spark, after, *ours), "iceberg")
    assert people(spark) == [(1, False, "An"), (1, False, "Ann"), (1, True, "Anna")]
    assert "refuses branches" in said[0]
    late = batch(spark, after, ("update", "Cy", 3, True))
    with pytest.raises(ConcurrentRunError, match="another run wrote to it"):
        publish(spark, table, late, "iceberg")
    assert len(people(spark)) == 3
    assert len(said) == 1


@pytest.mark.parametrize("action", ["insert", "delete"])
def test_rows_that_only_come_or_only_go(
    spark: SparkSession, table: str, table_format: str, action: str
) -> None:
    after = current_version(spark, table, table_format)
    publish(spark, table, batch(spark, after, (action, "Bob", 2, True)), table_format)
    others = [(1, False, "An"), (1, True, "Ann")]
    two = {"insert": [(2, True, "Bo"), (2, True, "Bob")], "delete": []}
    assert people(spark) == others + two[action]


def test_the_first_rows_of_a_table(spark: SparkSession, table: str, table_format: str) -> None:
    spark.sql(f"create or replace table {TABLE} ({COLUMNS}) using {table_format}")
    after = current_version(spark, table, table_format)
    publish(spark, table, batch(spark, after, ("update", "Dee", 4, True)), table_format)
    assert people(spark) == [(4, True, "Dee")]


def test_what_another_run_has_written_stays(
    spark: SparkSession, table: str, table_format: str
) -> None:
    after = current_version(spark, table, table_format)
    ours = batch(spark, after, ("update", "Anna", 1, True))
    spark.sql(f"insert into {table} values (5, true, 'Eve')")
    before = people(spark)
    with pytest.raises(ConcurrentRunError, match="another run wrote to it"):
        publish(spark, table, ours, table_format)
    assert people(spark) == before
    assert refs(spark, table_format) == ["main"]


def test_a_batch_that_fails_leaves_nothing(
    spark: SparkSession, table: str, table_format: str
) -> None:
    before = people(spark)
    rows = spark.sql(
        "select 'update' as _write_action, id, true as is_current,"
        " if(id = 2, raise_error('no'), 'x') as name from range(1, 3)"
    )
    after = current_version(spark, table, table_format)
    with pytest.raises(Exception, match="no"):
        publish(spark, table, MartBatch(rows, ["id"], "", after), table_format)
    assert people(spark) == before
    assert refs(spark, table_format) == ["main"]
