"""Random streams in four batches: the feed of a history tells what it was after each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from dbt_afterimage.history import feed as feed_module
from tests.functional.comparing import assert_same
from tests.functional.dbt_project import DbtProject
from tests.functional.project_files import write_files
from tests.functional.properties.conftest import shapes_of_selected_tests
from tests.functional.properties.stream_project import write_stream_project
from tests.functional.properties.test_batches import append_batch
from tests.log_reader import read_rows
from tests.oracle.history import build_history
from tests.streams.comparison import assert_equal, by_stream
from tests.streams.selection import chosen_shapes, stream_count, stream_table
from tests.streams.shapes import Shape
from tests.streams.tables import BATCHES, StreamTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.nightly

SCHEMA = "feeds_of_streams"
KILLED_WITH = 3
"""The batch whose run is killed between the publication of the history and its feed."""
KNOWN = "select * from {{ known_at(ref('NAME_history'), var('known_at', '2100-01-01')) }}"
COUNTS = """\
{{ config(
    materialized='incremental', incremental_strategy='merge', unique_key=['stream', 'id'],
    file_format='FORMAT'
) }}
with changed as (
    select stream, id, max(feed_at) as feed_at
    from {{ changes_since(ref('NAME_history')) }}
    group by stream, id
)
select
    changed.stream, changed.id, max(changed.feed_at) as feed_at,
    count(versions.valid_from) as versions, max(versions.valid_from_seq) as last_seq
from changed
left join {{ ref('NAME_history') }} as versions
    on changed.stream = versions.stream and changed.id = versions.id
group by changed.stream, changed.id
"""


JOIN = """\
{% set history, on = ref('NAME_history'), {'stream': 'stream'} %}
select * from {{ temporal_join(base=history, columns=['stream', 'id', 'a', 'b'], joins=[
    {'relation': history, 'on': dict(on, a='id'), 'prefix': 'second_'},
    {'relation': history, 'on': dict(on, second_b='id'), 'prefix': 'third_'},
]) }}
"""


@dataclass
class Fed:
    """The project after all batches.

    Attributes:
        feed_at: of each batch, the last time in the feed, by shape.
        histories: of each batch, the rows of the history, by shape.
        joins: of each batch, the rows of an incremental join and of the same join as a view.
    """

    project: DbtProject
    tables: dict[str, StreamTable]
    feed_at: dict[str, list[str]] = field(default_factory=dict)
    histories: dict[str, list[list[dict[str, Any]]]] = field(default_factory=dict)
    joins: dict[str, list[tuple[list[dict[str, Any]], ...]]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def fed(
    request: pytest.FixtureRequest,
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Fed:
    selected = shapes_of_selected_tests(request, "shape")
    tables = {
        shape.name: stream_table(shape, stream_count(request.config))
        for shape in chosen_shapes(request.config, few=True)
        if not selected or shape.name in selected
    }
    folder = tmp_path_factory.mktemp("feeds")
    write_stream_project(folder, [table.shape for table in tables.values()])
    for name in tables:
        texts = {
            "history": f"{{{{ history(ref('{name}_changes'), feed=true) }}}}",
            "known": KNOWN.replace("NAME", name),
            "joined": "{{ config(materialized='joined_history') }}\n" + JOIN.replace("NAME", name),
            "join": "{{ config(materialized='view') }}\n" + JOIN.replace("NAME", name),
            "counts": COUNTS.replace("NAME", name).replace("FORMAT", table_format),
        }
        files = {f"models/{name}_{kind}.sql": text + "\n" for kind, text in texts.items()}
        write_files(folder, files)
    fed = Fed(make_dbt_project(folder, schema=SCHEMA), tables)
    spark.sql("create schema if not exists streams_logs")
    for batch in range(1, BATCHES + 1):
        for name, table in tables.items():
            append_batch(spark, table, batch, f"streams_logs.{name}", table_format)
        if batch == KILLED_WITH:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(feed_module, "append_once", killed)
                fed.project.error_of("run")
        # what a model has not seen for a while, it reads in its next run
        left_out = [f"{name}_counts" for name in tables] if batch == 2 else ["none"]
        fed.project("run", "--exclude", *left_out)
        for name in tables:
            history = f"{SCHEMA}.{name}_history"
            newest = spark.sql(f"select cast(max(feed_at) as string) from {history}_feed")
            fed.feed_at.setdefault(name, []).append(newest.collect()[0][0])
            fed.histories.setdefault(name, []).append(read_rows(spark.table(history)))
            joins = (f"{SCHEMA}.{name}_joined", f"{SCHEMA}.{name}_join")
            rows = tuple(read_rows(spark.table(join)) for join in joins)
            fed.joins.setdefault(name, []).append(rows)
    return fed


def killed(*_: Any, **__: Any) -> None:
    raise RuntimeError("killed")


def replayed(rows: list[dict[str, Any]], identity: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The versions after each publication of a feed, by its time."""
    versions: dict[str, dict[str, Any]] = {}
    for at in sorted({row["feed_at"] for row in rows}):
        published = [row for row in rows if row["feed_at"] == at]
        for row in published:
            if row["feed_image"] == "before":
                # what is replaced is what was there
                was = versions.pop(row[identity])
                assert {name: row[name] for name in was} == was
        for row in published:
            if row["feed_image"] == "after":
                assert row[identity] not in versions
                versions[row[identity]] = {
                    name: value for name, value in row.items() if not name.startswith("feed_")
                }
        yield str(at), dict(versions)


def test_the_feed_replayed_gives_the_history_after_each_batch(
    spark: SparkSession, fed: Fed, shape: Shape
) -> None:
    history = f"{SCHEMA}.{shape.name}_history"
    states = dict(replayed(read_rows(spark.table(f"{history}_feed")), f"{shape.name}_history_id"))
    for at, rows in zip(fed.feed_at[shape.name], fed.histories[shape.name], strict=True):
        found = states[next(moment for moment in states if moment.startswith(at))]
        # what an older batch could not have had is NULL in the feed
        names = rows[0].keys()
        assert_same([{name: row[name] for name in names} for row in found.values()], rows)


def test_known_at_is_a_rebuild_from_the_log_up_to_that_batch(
    spark: SparkSession, fed: Fed, shape: Shape
) -> None:
    table = fed.tables[shape.name]
    for batch, at in enumerate(fed.feed_at[shape.name], 1):
        fed.project("run", "--select", f"{shape.name}_known", known_at=at)
        rows = read_rows(spark.table(f"{SCHEMA}.{shape.name}_known"))
        expected = []
        for stream in table.streams:
            log = [
                row
                for row, arrived in zip(stream.log, stream.batches, strict=True)
                if arrived <= batch
            ]
            expected += table.rows_of(stream, build_history(log, shape.options))
        names = expected[0].keys()
        ours = [{name: row[name] for name in names} for row in rows]
        assert_equal(table, by_stream(ours), by_stream(expected))


def test_changes_since_gives_a_model_what_its_full_refresh_reads(
    spark: SparkSession, fed: Fed, shape: Shape
) -> None:
    counts = f"{SCHEMA}.{shape.name}_counts"
    incremental = read_rows(spark.table(counts))
    fed.project("run", "--full-refresh", "--select", f"{shape.name}_counts")
    assert_same(incremental, read_rows(spark.table(counts)))
    changes = Counter(
        row["feed_change"] for row in read_rows(spark.table(f"{SCHEMA}.{shape.name}_history_feed"))
    )
    assert {"inserted", "closed", "corrected", "removed"} >= set(changes)
    assert changes["closed"] and changes["corrected"]


def test_an_incremental_join_is_the_join_of_all_versions(fed: Fed, shape: Shape) -> None:
    for incremental, whole in fed.joins[shape.name]:
        assert_same(incremental, whole)


def test_an_inner_join_on_columns_of_another_side_is_refused(fed: Fed, shape: Shape) -> None:
    name = f"{shape.name}_inner"
    chained = JOIN.replace("NAME", shape.name).replace("'third_'", "'third_', 'how': 'inner'")
    text = "{{ config(materialized='joined_history') }}\n" + chained
    write_files(fed.project.path, {f"models/{name}.sql": text})
    message = fed.project.error_of("run", "--select", name)
    (fed.project.path / f"models/{name}.sql").unlink()
    assert "an inner join on columns of another side (second_b)" in message


def test_a_full_refresh_of_the_same_log_adds_nothing_to_the_feed(
    spark: SparkSession, fed: Fed, shape: Shape
) -> None:
    feed = f"{SCHEMA}.{shape.name}_history_feed"
    before = spark.table(feed).count()
    fed.project("run", "--full-refresh", "--select", f"{shape.name}_history")
    assert spark.table(feed).count() == before
