"""The files that the documents have a user write, copied from the documents."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from afterimage_demo.systems import SYSTEMS
from tests.functional.dbt_project import DbtProject
from tests.functional.invoices import land_invoices
from tests.functional.pages import section_of
from tests.tiers import nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.both_formats, pytest.mark.delta_nightly]

ROOT = Path(__file__).parents[2]
PROJECT = (
    "dbt_project.yml",
    "macros",
    "demo/models",
    "demo/seeds",
    "demo/tests",
    "docs",
)
OWN_TABLE = "## Write the files"


def files_of(document: str, heading: str) -> dict[str, str]:
    """Path -> text of the files that a section shows; a comment in the first line has the path."""
    files = {}
    blocks = re.findall(r"^( *)```\w+\n(.*?)```", section_of(document, heading), re.S | re.M)
    for indent, block in blocks:
        text = re.sub(f"^{indent}", "", block, flags=re.MULTILINE)
        comment, body = text.split("\n", 1)
        files[re.sub(r"^(--|#) ", "", comment)] = body
    return files


def project_with(folder: Path, files: dict[str, str]) -> None:
    """A copy of this project, with files added."""
    for name in PROJECT:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def project(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> DbtProject:
    """A copy of this project with the files of the README, built as its steps say."""
    folder = tmp_path_factory.mktemp("own_table")
    project_with(folder, files_of("docs/add_table.md", OWN_TABLE))
    land_invoices(spark)
    project = make_dbt_project(folder, schema="own_table")
    # a log that is not there yet is left out
    project("run", "--select", "activity")
    assert "dbt build --select stg_qlik__invoices+`" in section_of("docs/add_table.md", OWN_TABLE)
    project("build", "--select", "stg_qlik__invoices+")
    return project


def test_one_yaml_entry_and_five_small_files_are_enough() -> None:
    files = files_of("docs/add_table.md", OWN_TABLE)
    models = {name: text for name, text in files.items() if "invoices" in name}
    assert len(models) == 5
    assert len(files) == 5 + len(("sources", "tests", "change_activity"))
    statements = {name: len(text.strip().splitlines()) for name, text in models.items()}
    assert all(lines == 1 for name, lines in statements.items() if name.endswith(".sql"))


def test_history_and_current(spark: SparkSession, project: DbtProject) -> None:
    history = spark.sql(
        "select invoice_id, status, cast(amount as string), cast(valid_from as string), "
        "cast(valid_to as string), opened_by, closed_by "
        f"from {project.schema}.invoices_history order by invoice_id, valid_from_seq"
    ).collect()
    assert [tuple(row) for row in history] == [
        (1, "open", "10.00", "2026-03-01 07:00:00", "2026-03-01 08:00:00", "L", "U"),
        (1, "paid", "10.00", "2026-03-01 08:00:00", None, "U", None),
        (2, "open", "20.00", "2026-03-01 07:00:00", "2026-03-01 09:00:00", "L", "D"),
        (3, "open", "30.00", "2026-03-01 10:00:00", None, "I", None),
    ]
    current = spark.sql(
        f"select invoice_id, status from {project.schema}.invoices_current order by invoice_id"
    ).collect()
    assert [tuple(row) for row in current] == [(1, "paid"), (3, "open")]


def test_field_changes(spark: SparkSession, project: DbtProject) -> None:
    rows = spark.sql(
        "select invoice_id, column_name, old_value, new_value, derived_from "
        f"from {project.schema}.invoices_field_changes"
    ).collect()
    assert [tuple(row) for row in rows] == [(1, "status", "open", "paid", "before_image")]


def test_a_plain_build_builds_what_the_user_added_and_counts_it(
    spark: SparkSession, project: DbtProject
) -> None:
    project("build")
    shown = spark.sql(f"show tables in {project.schema}").filter("not isTemporary").collect()
    tables = {row["tableName"] for row in shown}
    made_of_invoices = {name for name in tables if "invoices" in name}
    assert tables - made_of_invoices == {"activity", "afterimage_progress"}
    activity = (
        "select table_name, hour(activity_hour), inserts, updates, deletes "
        f"from {project.schema}.activity order by activity_hour"
    )
    counted = [("invoices", 8, 0, 1, 0), ("invoices", 9, 0, 0, 1), ("invoices", 10, 1, 0, 0)]
    assert [tuple(row) for row in spark.sql(activity).collect()] == counted
    project("run", "--full-refresh", "--select", "activity")
    assert [tuple(row) for row in spark.sql(activity).collect()] == counted


def test_a_build_of_a_clone_to_which_nothing_was_added_succeeds(
    make_dbt_project: Callable[..., DbtProject],
) -> None:
    clone = make_dbt_project(schema="clone")
    assert list(clone("build").results) == []
    # data tests of disabled models stay in the manifest, disabled
    nodes = [node for node in clone("parse").nodes.values() if node.config.enabled]
    assert [node.name for node in nodes if node.resource_type != "operation"] == []


@pytest.mark.parametrize(
    ("document", "heading", "tables"),
    [
        ("docs/kafka.md", "## Declare and model", {"messages", "store_orders"}),
        *nightly(
            ("docs/openedge.md", "## Declare a table", {"_Cdc-Change-Tracking", "CDC_Work-Order"}),
            (
                "docs/soliddb.md",
                "## Set it up",
                {"sys_log", "sys_tables", "sys_columns", "loans", "loans_at_start"},
            ),
        ),
    ],
)
def test_files_of_other_systems_go_beside_the_demos(
    make_dbt_project: Callable[..., DbtProject],
    tmp_path: Path,
    document: str,
    heading: str,
    tables: set[str],
) -> None:
    """They parse, with all demos there, and are made of the sources that they declare."""
    files = files_of(document, heading)
    project_with(tmp_path, files)
    manifest = make_dbt_project(tmp_path, demos=",".join(SYSTEMS))("parse")
    own = [node for node in manifest.nodes.values() if node.original_file_path in files]
    models = [name for name in files if not name.endswith(".yml")]
    assert len(own) == len(models) > 0
    read = {name for node in own for _, name in node.sources}
    assert read == tables
