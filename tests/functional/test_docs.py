"""What `dbt docs generate` says of the tables: the pages that analysts read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.functional.dbt_project import DbtProject
from tests.functional.people import People

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_rows_are_those_that_a_query_finds(
    people: People, spark: SparkSession, table_format: str
) -> None:
    """Spark's statistics of an Iceberg table have deleted rows, too; of Delta it has no rows."""
    catalog = people.dbt("docs", "generate")
    shown = {
        name.split(".")[-1]: page.stats["rows"].value
        for name, page in catalog.nodes.items()
        if "rows" in page.stats
    }
    assert ("people_history" in shown) == (table_format == "iceberg")
    assert shown == {name: spark.table(f"{people.dbt.schema}.{name}").count() for name in shown}


@pytest.mark.parametrize(("demos", "shown"), [("qlik,postgres", 1), ("postgres", 0), ("", 0)])
def test_the_report_is_in_the_lineage_of_the_demos_that_have_a_table_of_activity(
    make_dbt_project: Callable[..., DbtProject], demos: str, shown: int
) -> None:
    exposures = make_dbt_project(demos=demos)("parse").exposures
    assert [one.name for one in exposures.values()] == ["pipeline_health"] * shown


def test_lineage_begins_with_the_sources_of_the_demo_that_is_there(
    make_dbt_project: Callable[..., DbtProject],
) -> None:
    project = make_dbt_project(demos="soliddb")
    sources = project("list", "--resource-type", "source")
    assert {name.split(":")[1].split(".")[1] for name in sources} == {"demo_soliddb"}
