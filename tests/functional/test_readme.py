"""README.md, "Add your own table": its files, as they stand there, on a table the demo lacks."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.functional.dbt_project import DbtProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
PROJECT = (
    "dbt_project.yml",
    "macros",
    "models",
    "python_models",
    "seeds",
    "docs",
    "tests/singular",
)
SOURCE_FILE = "models/staging/sales/_sales__sources.yml"

# Two commits of 1 March 2026 and the full load before them; 35 digits, the task's number last.
POSITION = "20260301{time}00" + "0" * 12 + "{number:07d}"


def files_of_readme() -> dict[str, str]:
    """Path -> text of every file that the section shows."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.split("## Add your own table")[1].split("\n## ")[0]
    assert f"`{SOURCE_FILE}`" in section
    files = {}
    for language, block in re.findall(r"```(\w+)\n(.*?)```", section, flags=re.DOTALL):
        text = re.sub(r"^   ", "", block, flags=re.MULTILINE)
        if language == "yaml":
            files[SOURCE_FILE] = text
            continue
        comment, body = text.split("\n", 1)
        files[re.sub(r"^(--|#) ", "", comment)] = body
    return files


def position(time: str, number: int) -> str:
    return POSITION.format(time=time, number=number)


def land(spark: SparkSession) -> None:
    """Two invoices in the base table; then one is paid, one deleted, and a third inserted."""
    spark.sql("create schema if not exists sales")
    spark.sql("create table sales.invoices (invoice_id bigint, status string, amount decimal(9,2))")
    spark.sql("insert into sales.invoices values (1, 'open', 10.00), (2, 'open', 20.00)")
    spark.sql(
        "create table sales.invoices__ct (header__change_seq string, header__change_oper string, "
        "header__change_mask string, header__stream_position string, header__operation string, "
        "header__transaction_id string, header__timestamp timestamp, "
        "invoice_id bigint, status string, amount decimal(9,2))"
    )
    # seven header columns: status is bit 8, so an update of it sets 2 to the power of 8
    spark.sql(
        f"""
        insert into sales.invoices__ct values
            ('{position("080000", 1)}', 'B', null, 's', 'BEFOREIMAGE', 'a', null, 1, 'open', 10.00),
            ('{position("080000", 1)}', 'U', '0100', 's', 'UPDATE', 'a', null, 1, 'paid', 10.00),
            ('{position("090000", 2)}', 'D', '0080', 's', 'DELETE', 'b', null, 2, null, null),
            ('{position("100000", 3)}', 'I', '0380', 's', 'INSERT', 'c', null, 3, 'open', 30.00)
        """
    )


@pytest.fixture(scope="module")
def project(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> DbtProject:
    """A copy of this project with the files of the README, built as the README says."""
    folder = tmp_path_factory.mktemp("own_table")
    for name in PROJECT:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    for name, text in files_of_readme().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    land(spark)
    project = make_dbt_project(folder, schema="own_table")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "dbt build --select stg_qlik__invoices+`" in readme
    project("build", "--select", "stg_qlik__invoices+")
    return project


def test_one_yaml_entry_and_five_small_files_are_enough() -> None:
    files = files_of_readme()
    assert len(files) == 6
    statements = {name: len(text.strip().splitlines()) for name, text in files.items()}
    assert all(lines == 1 for name, lines in statements.items() if name.endswith(".sql"))


def test_history_and_current(spark: SparkSession, project: DbtProject) -> None:
    history = spark.sql(
        "select invoice_id, status, cast(amount as string), cast(valid_from as string), "
        "cast(valid_to as string), opened_by, closed_by "
        f"from {project.schema}.invoices_history order by invoice_id, valid_from_seq"
    ).collect()
    assert [tuple(row) for row in history] == [
        (1, "open", "10.00", "1900-01-01 00:00:00", "2026-03-01 08:00:00", "L", "U"),
        (1, "paid", "10.00", "2026-03-01 08:00:00", None, "U", None),
        (2, "open", "20.00", "1900-01-01 00:00:00", "2026-03-01 09:00:00", "L", "D"),
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
