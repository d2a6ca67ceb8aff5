"""The project as a dbt package: `integration_tests/` installs it, as a user's project does."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.functional.dbt_project import DbtProject
from tests.functional.invoices import land_invoices, land_more_invoices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def project(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> DbtProject:
    """The user's project after `dbt deps`, a first build, and a second one with more changes."""
    folder = tmp_path_factory.mktemp("package") / "shop"
    shutil.copytree(
        ROOT / "integration_tests", folder, ignore=shutil.ignore_patterns("dbt_packages")
    )
    packages = folder / "packages.yml"
    packages.write_text(packages.read_text(encoding="utf-8").replace("../", str(ROOT)), "utf-8")
    land_invoices(spark)
    project = make_dbt_project(folder, schema="package")
    project("deps")
    project("build")
    land_more_invoices(spark)
    project("build")
    return project


def test_nothing_of_the_demo_comes_along(project: DbtProject) -> None:
    listed = project("list", "--resource-type", "model", "source", "seed", "test", "unit_test")
    assert listed
    assert not [name for name in listed if name.startswith(("afterimage.", "source:afterimage."))]


def test_the_tables_hold_both_batches(spark: SparkSession, project: DbtProject) -> None:
    history = spark.sql(
        "select invoice_id, status, cast(valid_from as string), opened_by, closed_by "
        f"from {project.schema}.invoices_history order by invoice_id, valid_from_seq"
    ).collect()
    assert [tuple(row) for row in history] == [
        (1, "open", "1900-01-01 00:00:00", "L", "U"),
        (1, "paid", "2026-03-01 08:00:00", "U", None),
        (2, "open", "1900-01-01 00:00:00", "L", "D"),
        (3, "open", "2026-03-01 10:00:00", "I", "U"),
        (3, "paid", "2026-03-01 11:00:00", "U", None),
    ]
    changes = spark.sql(
        "select invoice_id, column_name, old_value, new_value "
        f"from {project.schema}.invoices_field_changes order by invoice_id"
    ).collect()
    assert [tuple(row) for row in changes] == [
        (1, "status", "open", "paid"),
        (3, "status", "open", "paid"),
    ]
    own = spark.table(f"{project.schema}.open_invoices").collect()
    assert [tuple(row) for row in own] == [("paid", 2)]
