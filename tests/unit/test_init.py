"""`afterimage init`: a new project is whole, an existing one gains the shown lines and no other."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from dbt_afterimage.cli import app
from dbt_afterimage.cli.commands.init.project_files import UnclearProjectError, project_name

PROJECT = """\
# ours
name: shop
version: 1.0.0

models:
  shop:
    +materialized: view  # as before
"""
PACKAGES = """\
packages:
  # pinned
  - package: dbt-labs/dbt_utils
    version: 1.3.0
"""


def init(folder: Path, *options: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["init", str(folder), *options])
    return result.exit_code, result.output


def existing(folder: Path, **files: str) -> Path:
    for name, text in {"dbt_project": PROJECT, **files}.items():
        (folder / f"{name}.yml").write_text(text, encoding="utf-8")
    return folder


def texts(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    }


def removed_lines(old: str, new: str) -> list[str]:
    lines = difflib.ndiff(old.splitlines(), new.splitlines())
    return [line for line in lines if line.startswith("- ")]


def test_a_new_project_is_whole_and_names_the_next_command(tmp_path: Path) -> None:
    code, output = init(tmp_path / "Warehouse-history")
    assert code == 0
    found = texts(tmp_path / "Warehouse-history")
    project = yaml.safe_load(found["dbt_project.yml"])
    assert project["name"] == project["profile"] == "warehouse_history"
    assert project["dispatch"] == [
        {"macro_namespace": "dbt", "search_order": ["warehouse_history", "afterimage", "dbt"]}
    ]
    outputs = yaml.safe_load(found["profiles.yml"])["warehouse_history"]["outputs"]
    assert {"iceberg", "delta"} <= set(outputs)
    assert {output["schema"] for output in outputs.values()} == {"warehouse_history"}
    assert "AFTERIMAGE_PACKAGE" in found["packages.yml"]
    assert {".gitignore", "README.md", "requirements.txt", ".github/workflows/dbt.yml"} <= set(
        found
    )
    assert output.splitlines()[-1].startswith("Next: cd ")
    assert "dbt deps, then afterimage add-table SCHEMA.TABLE" in output


def test_a_second_call_adds_nothing(tmp_path: Path) -> None:
    init(tmp_path / "shop")
    before = texts(tmp_path / "shop")
    code, output = init(tmp_path / "shop")
    assert code == 0
    assert "nothing to add" in output
    assert texts(tmp_path / "shop") == before


def test_files_that_are_there_before_a_project_is_created_stay(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "README.md").write_text("ours", encoding="utf-8")
    assert init(folder)[0] == 0
    assert texts(folder)["README.md"] == "ours"


def test_an_existing_project_gains_the_shown_lines_only(tmp_path: Path) -> None:
    before = texts(existing(tmp_path, packages=PACKAGES))
    code, output = init(tmp_path, "--yes")
    assert code == 0
    after = texts(tmp_path)
    assert set(after) == set(before)
    for name, old in before.items():
        assert removed_lines(old, after[name]) == []
        added = [line for line in after[name].splitlines() if line not in old.splitlines()]
        assert added
        assert all(f"+{line}" in output for line in added)
    assert len(yaml.safe_load(after["packages.yml"])["packages"]) == 2
    dispatch = yaml.safe_load(after["dbt_project.yml"])["dispatch"]
    assert dispatch[0]["search_order"] == ["shop", "afterimage", "dbt"]
    assert "nothing to add" in init(tmp_path, "--yes")[1]


def test_without_a_terminal_an_existing_project_takes_yes(tmp_path: Path) -> None:
    before = texts(existing(tmp_path))
    code, output = init(tmp_path)
    assert code == 2
    assert "Fix: add --yes" in output
    assert texts(tmp_path) == before


def test_packages_may_be_in_dependencies_yml(tmp_path: Path) -> None:
    existing(tmp_path, dependencies=PACKAGES)
    assert init(tmp_path, "--yes")[0] == 0
    found = texts(tmp_path)
    assert "packages.yml" not in found
    # dbt does not render this file
    assert "{{" not in found["dependencies.yml"]
    assert len(yaml.safe_load(found["dependencies.yml"])["packages"]) == 2


@pytest.mark.parametrize(
    "added",
    [
        "dispatch:\n  - macro_namespace: dbt\n    search_order: [shop, spark_utils, dbt]\n",
        "dispatch:\n  - macro_namespace: dbt_utils\n    search_order: [spark_utils, dbt_utils]\n",
    ],
)
def test_a_dispatch_of_another_kind_is_left_to_its_owner(tmp_path: Path, added: str) -> None:
    existing(tmp_path, dbt_project=PROJECT + added)
    before = texts(tmp_path)
    code, output = init(tmp_path, "--yes")
    assert code == 1
    assert "Fix: add `afterimage` before `dbt`" in output
    assert texts(tmp_path) == before


@pytest.mark.parametrize("name", ["afterimage", "2026", "---"])
def test_a_folder_whose_name_is_no_project_s(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnclearProjectError, match="Fix: name another folder"):
        project_name(tmp_path / name)
