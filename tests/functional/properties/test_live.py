"""Random streams of raw records: `live` before a run shows the tables as they are after the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from dbt_afterimage.storage.local_relation import local_rows
from tests.functional.dbt_project import DbtProject
from tests.functional.project_files import write_files
from tests.functional.properties.raw_streams import RAW_SHAPES, RawStreams
from tests.functional.properties.test_raw_streams import RAW, SCHEMA, deliver, write_project
from tests.log_reader import read_rows
from tests.streams.comparison import assert_equal, by_stream
from tests.streams.selection import stream_count
from tests.streams.shapes import Shape
from tests.streams.tables import BATCHES, COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.nightly, pytest.mark.both_formats]

MARTS = ("history", "current")
LIVE = """\
{{ config(materialized='table', file_format='FORMAT') }}
select * from {{ live(ref('NAME_MART')) }}
"""


@pytest.mark.parametrize("raw_shape", RAW_SHAPES, ids=[shape.name for shape in RAW_SHAPES])
def test_live_is_the_table_after_the_next_run(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
    raw_shape: Shape,
) -> None:
    name = raw_shape.name
    table = RawStreams(raw_shape, stream_count(pytestconfig), 2001 + RAW_SHAPES.index(raw_shape))
    project = make_dbt_project(tmp_path_factory.mktemp(name), schema=f"live_{SCHEMA}")
    write_project(project, {name: table})
    for mart in MARTS:
        model = LIVE.replace("FORMAT", table_format).replace("NAME", name).replace("MART", mart)
        write_files(project.path / "models", {f"live/{name}_{mart}_live.sql": model})
    spark.sql(f"create schema if not exists {RAW}")
    if raw_shape.base:
        columns = ", ".join(f"{column} int" for column in COLUMNS)
        base = local_rows(spark, table.base_rows(), columns)
        base.writeTo(f"{RAW}.{name}").using(table_format).createOrReplace()
    states: Counter[str] = Counter()
    for batch in range(1, BATCHES + 1):
        deliver(spark, table, batch, f"{RAW}.{name}__ct", table_format)
        if batch > 1:
            # a column may have come, which the staging view shows once its model has run
            project("run", "--select", "staging", "live")
        project("run", "--exclude", "live")
        for mart in MARTS if batch > 1 else ():
            stored = spark.table(f"{project.schema}.{name}_{mart}")
            live = spark.table(f"{project.schema}.{name}_{mart}_live")
            states.update(row["live_state"] for row in live.select("live_state").collect())
            assert_equal(
                table,
                by_stream(read_rows(live.select(*stored.columns)), "recorded_at"),
                by_stream(read_rows(stored), "recorded_at"),
            )
    assert states.keys() >= {"merged", "unmerged", "pending"}
