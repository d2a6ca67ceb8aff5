"""The project as a dbt package: `integration_tests/` installs it, as a user's project does."""

from __future__ import annotations

import json
import re
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.functional.dbt_project import DbtProject
from tests.functional.invoices import land_invoices, land_more_invoices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.both_formats, pytest.mark.delta_nightly]

ROOT = Path(__file__).parents[2]


def install_as_the_page_says(folder: Path) -> None:
    """The project's packages.yml, and its lines in dbt_project.yml, are those of the page."""
    text = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    section = text.split("\n## Into a dbt project\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^   ```yaml\n   # (.+?)\n(.*?)^   ```", section, re.S | re.M)
    files = {name: textwrap.dedent(block) for name, block in blocks}
    local = re.sub("local: .+", f"local: {ROOT}", files.pop("packages.yml"))
    (folder / "packages.yml").write_text(local, encoding="utf-8")
    added = files.pop("dbt_project.yml, added")
    assert files == {}
    assert added in (folder / "dbt_project.yml").read_text(encoding="utf-8")


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
    install_as_the_page_says(folder)
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


@pytest.fixture(scope="module")
def page(project: DbtProject) -> Any:
    """The manifest that the page of dbt docs reads."""
    project("docs", "generate")
    # of this command dbt writes the manifest before it connects
    project("run-operation", "check_session")
    return json.loads((project.scratch / "target" / "manifest.json").read_text(encoding="utf-8"))


@pytest.mark.usefixtures("page")
def test_an_unchanged_project_has_no_modified_node(project: DbtProject) -> None:
    """Descriptions count too: those of the old manifest are compared with the parsed ones."""
    before = project.scratch / "before"
    before.mkdir()
    shutil.copy(project.scratch / "target" / "manifest.json", before)
    assert project("ls", "--select", "state:modified", "--state", str(before)) == []


def test_columns_that_the_package_adds_are_described(
    spark: SparkSession, project: DbtProject, page: Any
) -> None:
    """In the warehouse and in dbt docs, although the project's YAML lists no column."""
    added = {
        "stg_qlik__invoices": "stream_position",
        "invoices_changes": "stream_position",
        "invoices_history": "valid_from_seq",
        "invoices_current": "recorded_at",
        "invoices_field_changes": "derived_from",
        "activity": "rejects_recorded_at",
    }
    for table, column in added.items():
        comments = {
            row["col_name"]: row["comment"]
            for row in spark.sql(f"describe table {project.schema}.{table}").collect()
            if row["col_name"][:1] not in ("", "#")
        }
        listed = page["nodes"][f"model.shop.{table}"]["columns"]
        # none that the table has not
        assert set(listed) <= set(comments)
        assert comments[column] == listed[column]["description"]
        data = {"invoice_id", "status", "amount"}
        assert {name for name, comment in comments.items() if not comment} <= data


def test_dbt_docs_hide_private_macros_and_color_layers(page: Any) -> None:
    macros = [macro for macro in page["macros"].values() if macro["package_name"] == "afterimage"]
    assert {each["docs"]["show"] for each in macros if each["name"].startswith("_")} == {False}
    assert {each["docs"]["show"] for each in macros if each["name"] == "history"} == {True}
    docs = {name: node["docs"] for name, node in page["nodes"].items()}
    models = ("stg_qlik__invoices", "invoices_changes", "invoices_history", "invoices_current")
    colors = {docs[f"model.shop.{name}"]["node_color"] for name in models}
    assert len(colors - {None}) == len(models)
    assert docs["model.shop.open_invoices"]["node_color"] is None
