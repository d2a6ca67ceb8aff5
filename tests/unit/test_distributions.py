"""What is installed by a user of the product, and what by the demo."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

from dbt_afterimage import __version__

ROOT = Path(__file__).parents[2]


def files_of_wheel(project: Path, folder: Path) -> set[str]:
    """Builds a wheel without a network; returns the paths of its files."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
        cwd=project,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_of_the_product_does_not_contain_the_demo(tmp_path: Path) -> None:
    files = files_of_wheel(ROOT, tmp_path)
    assert "dbt_afterimage/dbt_spark/plugin.py" in files
    assert {name.split("/")[0].split("-")[0] for name in files} == {"dbt_afterimage"}
    assert [name for name in files if "demo" in name] == []


def test_the_wheel_of_the_demo_contains_its_schemas(tmp_path: Path) -> None:
    files = files_of_wheel(ROOT / "demo", tmp_path)
    assert "afterimage_demo/command.py" in files
    assert "afterimage_demo/kafka/schemas/1.avsc" in files
    assert {name.split("/")[0].split("-")[0] for name in files} == {"afterimage_demo"}


def test_all_parts_have_one_version() -> None:
    """Of the wheels, the dbt package and the changelog; the macros are compared when they run."""
    texts = [
        (ROOT / "pyproject.toml", r'^version = "(.+)"'),
        (ROOT / "demo/pyproject.toml", r'^version = "(.+)"'),
        (ROOT / "dbt_project.yml", r"^version: (.+)"),
        (ROOT / "CHANGELOG.md", r"^## \[(.+)\]"),
    ]
    for path, pattern in texts:
        found = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
        assert found is not None
        assert found[1] == __version__, path.name


def test_no_module_of_the_product_imports_the_demo() -> None:
    """import-linter says so too, but does not see what an import in a string names."""
    modules = sorted((ROOT / "src").rglob("*.py"))
    assert modules
    assert [path.name for path in modules if "afterimage_demo" in path.read_text("utf-8")] == []
