"""The project as a dbt package: `integration_tests/` installs it, as a user's project does."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.functional.dbt_project import DbtProject
from tests.functional.invoices import land_invoices, land_more_invoices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.both_formats, pytest.mark.delta_nightly]

ROOT = Path(__file__).parents[2]
# with and without the package, dbt does not recognize its table of the first run in Iceberg's
# catalog, and stops
NOT_TWICE = ("--exclude", "Status_Names")


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
def installed(
    make_dbt_project: Callable[..., DbtProject], tmp_path_factory: pytest.TempPathFactory
) -> DbtProject:
    """The user's project after `dbt deps`."""
    folder = tmp_path_factory.mktemp("package") / "shop"
    shutil.copytree(
        ROOT / "integration_tests", folder, ignore=shutil.ignore_patterns("dbt_packages")
    )
    install_as_the_page_says(folder)
    project = make_dbt_project(folder, schema="package")
    project("deps")
    return project


@pytest.fixture(scope="module")
def project(installed: DbtProject, spark: SparkSession) -> DbtProject:
    """It after a first build, and a second one with more changes."""
    land_invoices(spark)
    installed("build")
    land_more_invoices(spark)
    installed("build", *NOT_TWICE)
    return installed


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


OWN = ("statuses", "status_lengths", "Status_Names", "status_versions")


def test_nothing_of_an_existing_project_changes(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    project: DbtProject,
    tmp_path: Path,
) -> None:
    """Its tables are defined as without the package, after two runs in both cases."""
    for folder in ("models/own", "seeds", "snapshots"):
        shutil.copytree(ROOT / "integration_tests" / folder, tmp_path / folder)
    (tmp_path / "models" / "own" / "open_invoices.sql").unlink()
    text = (ROOT / "integration_tests" / "dbt_project.yml").read_text(encoding="utf-8")
    (tmp_path / "dbt_project.yml").write_text(text.split("\n# dbt's own")[0], encoding="utf-8")
    alone = make_dbt_project(tmp_path, schema="without_package")
    alone("build")
    alone("build", *NOT_TWICE)
    for name in OWN:
        with_package = _definition(spark, f"{project.schema}.{name}")
        assert with_package == _definition(spark, f"{alone.schema}.{name}")


def _definition(spark: SparkSession, table: str) -> list[tuple[str, ...]]:
    """Columns and comments, format and properties; `show create table` fails on Delta."""
    rows = [tuple(row) for row in spark.sql(f"describe table extended {table}").collect()]
    at = next(number for number, row in enumerate(rows) if row[0].startswith("# Detailed"))
    kept = ("Type", "Provider", "Comment", "Table Properties")
    found = [*rows[:at], *(row for row in rows[at:] if row[0] in kept)]
    # of Iceberg: ids; of Delta: the time of the statement
    changing = r"(snapshot-id|lastDdlTime|delta\.\w+)=[^,\]]*"
    return [(name, re.sub(changing, "", str(value)), *rest) for name, value, *rest in found]


PLAIN_SPARK = {
    "spark.master": "local[1]",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "Europe/Rome",
    "spark.ui.enabled": "false",
}


@pytest.mark.iceberg_only
def test_models_of_the_project_alone_run_on_any_session(
    installed: DbtProject, tmp_path: Path
) -> None:
    """In Spark's own catalog, without UTC and with `--empty`, until a model of ours is selected."""
    output = {"type": "spark", "method": "session", "host": "none", "schema": "plain"}
    parameters = {**PLAIN_SPARK, "spark.sql.warehouse.dir": str(tmp_path / "warehouse")}
    outputs = {"plain": output | {"server_side_parameters": parameters}}
    (tmp_path / "profiles.yml").write_text(
        yaml.safe_dump({"afterimage": {"outputs": outputs, "target": "plain"}})
    )

    def run(*selected: str) -> subprocess.CompletedProcess[str]:
        # a session of its own: that of the tests has another catalog
        folders = ["--project-dir", str(installed.path), "--profiles-dir", str(tmp_path)]
        written = ["--target-path", str(tmp_path / "target"), "--log-path", str(tmp_path)]
        return subprocess.run(
            [sys.executable, "-m", "dbt.cli.main", "build", *folders, *written, *selected],
            capture_output=True,
            text=True,
            check=False,
        )

    own = run("--empty", "--select", "statuses", "status_lengths", "Status_Names")
    assert own.returncode == 0, own.stdout
    built = {path.name for path in (tmp_path / "warehouse" / "plain.db").iterdir()}
    assert built == {"statuses", "status_lengths", "status_names"}
    ours = run("--select", "invoices_history")
    assert ours.returncode != 0
    assert "the Spark session's time zone is Europe/Rome" in ours.stdout


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
        "change_activity": "rejects_recorded_at",
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
