"""The tables of a run are published together, after its tests: tags, and views of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from dbt_afterimage.cli import app
from dbt_afterimage.storage.formats.iceberg import Iceberg, move_tag, tagged_version
from dbt_afterimage.storage.schema_evolution import table_properties
from tests.functional.dbt_project import DbtProject
from tests.functional.people import seq
from tests.functional.project_files import add_variables
from tests.functional.published_shop import PUBLISHED, PublishedShop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def shop(
    make_dbt_project: Callable[..., DbtProject], spark: SparkSession, tmp_path: Path
) -> PublishedShop:
    """After its first batch."""
    schema = f"published_{uuid4().hex[:8]}"
    made = PublishedShop(
        make_dbt_project(tmp_path, schema=schema, published_schema="readers"), spark
    )
    made.write()
    made.land(1, 1)
    made.dbt("build")
    assert made.seen() == made.written() == state(1)
    return made


def state(*batches: int) -> dict[str, list[Any]]:
    """What the tables hold after batches."""
    found: dict[str, list[Any]] = {table: list(batches) for table in PUBLISHED}
    return {**found, "totals": [len(batches)]}


def test_a_failed_test_holds_back_all_tables(shop: PublishedShop) -> None:
    shop.land(2, -7)
    message = shop.dbt.error_of("build")
    assert shop.seen() == state(1)
    assert shop.written()["customers_history"] == [1, 2]
    for part in ("amounts_are_positive", '{"id": 2, "amount": -7}', "afterimage publish --accept"):
        assert part in message
    # a command that does not run the test publishes nothing, also of its own
    shop.land(3, 1, "customers")
    shop.dbt("run", "--select", "customers_changes+")
    assert shop.seen() == state(1)
    # customers have no news in the run that passes
    shop.correct(2)
    shop.dbt("build")
    found = shop.seen()
    assert found == shop.written()
    assert found["customers_history"] == [1, 2, 3]
    assert found["orders_history"] == [1, 2, 2]
    assert found["totals"] == [3]


def test_a_command_that_was_killed_before_it_published(shop: PublishedShop) -> None:
    shop.land(2, 1)
    # without the hook nothing is recorded of what it has written
    shop.dbt("run", published_schema=None)
    assert shop.seen() == state(1)
    # a model alone waits for the tables that it reads
    shop.dbt("run", "--select", "totals")
    shop.dbt("run", "--select", "customers_changes")
    assert shop.seen() == state(1)
    shop.dbt("build")
    assert shop.seen() == shop.written() == state(1, 2)
    before = properties(shop)
    shop.dbt("build")
    # `totals` is replaced by each run
    changed = {key.rpartition("/")[2] for key, _ in properties(shop) ^ before}
    assert changed <= {"at", f"{shop.dbt.schema}.totals"}


def test_a_command_that_was_killed_while_it_published(
    shop: PublishedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.land(2, 1)
    moved: list[str] = []

    def killed(spark: SparkSession, table: str, version: str) -> None:
        if moved:
            raise KeyboardInterrupt
        move_tag(spark, table, version)
        moved.append(table)

    with monkeypatch.context() as patched:
        patched.setattr("dbt_afterimage.storage.published.move_tag", killed)
        shop.dbt.error_of("build")
    assert shop.seen() not in (state(1), state(1, 2))
    shop.land(3, -1)
    # the next command publishes the batch that passed, and not its own
    shop.dbt.error_of("build")
    assert shop.seen() == state(1, 2)
    publish(shop, "--accept")
    assert shop.seen() == shop.written() == state(1, 2, 3)


@pytest.mark.nightly
def test_a_run_of_several_commands(shop: PublishedShop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.land(2, -1)
    monkeypatch.setenv("AFTERIMAGE_RUN", "monday")
    names = ("stg_orders", "orders_changes", "orders_history", "orders_current", "totals")
    for name in ("stg_customers", "customers_changes", "customers_history", *names):
        shop.dbt("run", "--select", name)
    shop.dbt.error_of("test")
    assert shop.seen() == state(1)
    assert "amounts_are_positive" in publish(shop, exit_code=1)
    # the next run has no news of customers, and passes
    monkeypatch.setenv("AFTERIMAGE_RUN", "tuesday")
    shop.correct(2)
    for name in names:
        shop.dbt("run", "--select", name)
    assert shop.seen() == state(1)
    shop.dbt("test")
    publish(shop)
    assert shop.seen() == shop.written()
    assert shop.seen()["customers_history"] == [1, 2]
    assert {key for key, _ in properties(shop) if "/pending/" in key or "/failed/" in key} == set()


@pytest.mark.nightly
def test_readers_get_columns_that_a_run_adds(shop: PublishedShop) -> None:
    shop.spark.sql(f"alter table {shop.raw('orders')} add columns (city string)")
    shop.dbt("run", "--select", "+orders_history")
    assert "city" not in shop.spark.table(f"{shop.dbt.schema}_readers.orders_history").columns
    shop.land(2, 1, "customers")
    shop.spark.sql(f"insert into {shop.raw('orders')} values ('{seq(20)}', 'I', 2, 1, 'Oslo')")
    shop.dbt("build")
    rows = shop.spark.sql(f"select id, city from {shop.dbt.schema}_readers.orders_history")
    assert sorted(map(tuple, rows.collect()), key=str) == [(1, None), (2, "Oslo")]


@pytest.mark.nightly
def test_compaction_and_erasure_move_the_tags(shop: PublishedShop, warehouse: Path) -> None:
    table = f"{shop.dbt.schema}.orders_history"

    def is_current() -> bool:
        return tagged_version(shop.spark, table) == Iceberg().version(shop.spark, table)

    for batch in range(2, 8):
        shop.land(batch, 900_000_000 + batch)
        shop.dbt("run", "--select", "+orders_current")
    shop.dbt("run-operation", "compact", "--args", "{keep_days: 0}")
    assert is_current()
    # without a publication in between
    shop.land(8, 900_000_008)
    shop.dbt("run", "--select", "+orders_current", published_schema=None)
    assert "not published yet" in erase(shop, exit_code=1)
    shop.dbt("run", "--select", "+orders_current")
    erase(shop)
    assert is_current()
    rows = shop.spark.sql(f"select amount from {shop.dbt.schema}_readers.orders_history")
    assert sorted(row[0] for row in rows.collect()) == [1, *range(900_000_003, 900_000_009)]
    files = [
        path
        for name in ("history", "current")
        for path in warehouse.rglob(f"{shop.dbt.schema}/orders_{name}/**/*.parquet")
    ]
    assert files
    for path in files:
        found = shop.spark.read.parquet(str(path)).filter("amount = 900000002")
        assert found.isEmpty(), path


def properties(shop: PublishedShop) -> set[tuple[str, str]]:
    found = table_properties(shop.spark, f"{shop.dbt.schema}.afterimage_progress")
    return {(key, value) for key, value in found.items() if "afterimage.publication/" in key}


def publish(shop: PublishedShop, *arguments: str, exit_code: int = 0) -> str:
    return call(shop, "publish", *arguments, exit_code=exit_code)


def erase(shop: PublishedShop, exit_code: int = 0) -> str:
    return call(shop, "erase", "orders", "--key", "2", "--rows", "--yes", exit_code=exit_code)


def call(shop: PublishedShop, *arguments: str, exit_code: int) -> str:
    """What a command of afterimage prints."""
    add_variables(shop.dbt.path, shop.dbt.variables)
    with shop.dbt.environment():
        result = CliRunner().invoke(app, arguments)
    assert result.exit_code == exit_code, result.output
    return result.output
