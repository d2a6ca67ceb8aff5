"""What is installed by a user of the product, and what by the demo."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import site
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from dbt_afterimage import __version__
from dbt_afterimage.spark.java import JAVA_VERSIONS

ROOT = Path(__file__).parents[2]


def build(project: Path, target: str, folder: Path) -> Path:
    """Builds a wheel or an sdist without a network."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", folder],
        cwd=project,
        check=True,
        capture_output=True,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1767225600"},
    )
    (built,) = folder.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return built


def files_of(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the product."""
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


def test_the_wheel_of_the_product_does_not_contain_the_demo(wheel: Path) -> None:
    files = files_of(wheel)
    assert "dbt_afterimage/dbt_spark/plugin.py" in files
    assert {name.split("/")[0].split("-")[0] for name in files} == {"dbt_afterimage"}
    assert [name for name in files if "demo" in name] == []


def test_the_wheel_contains_the_dbt_package(wheel: Path) -> None:
    folder = "dbt_afterimage/dbt_package/"
    packed = {name.removeprefix(folder) for name in files_of(wheel) if name.startswith(folder)}
    macros = {path.relative_to(ROOT).as_posix() for path in (ROOT / "macros").rglob("*.*")}
    others = {"dbt_project.yml", "profiles.yml.example"}
    described = ("change_log", "decoded_logs", "marts", "monitoring", "staging", "temporal_join")
    others |= {f"docs/dbt/columns/{name}.md" for name in described}
    assert packed == others | macros


def test_the_sdist_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """So the wheel depends on the sources only, and the sdist lacks none of them."""
    sdist = build(ROOT, "sdist", tmp_path)
    again = build(ROOT, "sdist", tmp_path / "again")
    assert digest(sdist) == digest(again)
    with tarfile.open(sdist) as archive:
        # the argument `filter` came with Python 3.10.12 and 3.11.4
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tmp_path)
    project = tmp_path / sdist.name.removesuffix(".tar.gz")
    assert digest(build(project, "wheel", tmp_path / "wheel")) == digest(wheel)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a bare repository, whose tag v9 is the last commit."""
    folder = tmp_path_factory.mktemp("git") / "afterimage.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", ROOT, folder], check=True)
    subprocess.run(["git", "-C", folder, "tag", "v9"], check=True)
    return f"file://{folder}"


@pytest.mark.parametrize("is_from_git", [False, True], ids=["wheel", "git"])
def test_a_project_parses_with_what_is_installed(
    wheel: Path, repository: str, tmp_path: Path, is_from_git: bool
) -> None:
    """In an environment of its own, which sees the other distributions of this one."""
    project = tmp_path / "shop"
    ignored = shutil.ignore_patterns("dbt_packages", "target", "logs", "package-lock.yml")
    shutil.copytree(ROOT / "integration_tests", project, ignore=ignored)
    shutil.copy(ROOT / "profiles.yml.example", project / "profiles.yml")
    # a model that is named like one of the demo's, and described as that one is
    own = project / "models" / "own"
    (own / "orders_history.sql").write_text("select 1 as order_id\n", encoding="utf-8")
    described = "models:\n  - name: orders_history\n    description: Ours.\n"
    (own / "orders.yml").write_text(described, encoding="utf-8")
    venv.create(project / ".venv")
    python = project / ".venv/bin/python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    (packages,) = project.glob(".venv/lib/python*/site-packages")
    others = f"import site; site.addsitedir({site.getsitepackages()[0]!r})\n"
    (packages / "others.pth").write_text(others, encoding="utf-8")
    # of the others it takes what builds the wheel
    quietly = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed"]
    what = f"git+{repository}@v9" if is_from_git else str(wheel)
    subprocess.run([*pip, "install", *quietly, what], check=True, cwd=project)
    env = {**os.environ, "DBT_PROFILES_DIR": str(project)}
    for name in ("DBT_TARGET_PATH", "DBT_LOG_PATH", "PYTHONPATH"):
        env.pop(name, None)

    def run(*command: str) -> str:
        ran = subprocess.run(
            [str(python), "-m", *command],
            cwd=project,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    path = run("dbt_afterimage.cli", "package-path").strip()
    assert path == f"{packages.relative_to(project).as_posix()}/dbt_afterimage/dbt_package"
    package = f"git: {repository}\n    revision: v9" if is_from_git else f"local: {path}"
    (project / "packages.yml").write_text(f"packages:\n  - {package}\n", encoding="utf-8")
    run("dbt.cli.main", "deps")
    listed = run("dbt.cli.main", "--quiet", "list", "--resource-type", "model").split()
    assert {"shop.marts.invoices_history", "shop.own.orders_history"} <= set(listed)
    assert not [name for name in listed if not name.startswith("shop.")]


def test_the_wheel_of_the_demo_contains_its_schemas(tmp_path: Path) -> None:
    files = files_of(build(ROOT / "demo", "wheel", tmp_path))
    assert "afterimage_demo/command.py" in files
    assert "afterimage_demo/kafka/schemas/1.avsc" in files
    assert {name.split("/")[0].split("-")[0] for name in files} == {"afterimage_demo"}


def test_all_parts_have_one_version() -> None:
    """Of the wheels and the changelog; the macros are compared when they run."""
    of_changelog = "Unreleased" if ".dev" in __version__ else __version__
    texts = [
        (ROOT / "pyproject.toml", r'^version = "(.+)"', __version__),
        (ROOT / "demo/pyproject.toml", r'^version = "(.+)"', __version__),
        (ROOT / "CHANGELOG.md", r"^## \[(.+)\]", of_changelog),
    ]
    for path, pattern, version in texts:
        found = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
        assert found is not None
        assert found[1] == version, path.name


def test_the_badges_state_what_the_project_declares() -> None:
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    profile = (ROOT / "profiles.yml.example").read_text(encoding="utf-8")

    def versions(pattern: str, text: str = declared) -> tuple[str, ...]:
        found = re.search(pattern, text)
        assert found is not None, pattern
        return found.groups()

    first, end = map(int, versions(r'requires-python = ">=3\.(\d+),<3\.(\d+)"'))
    of_dbt = range(*map(int, versions(r'"dbt-core>=1\.(\d+),<1\.(\d+)"')))
    (spark,) = versions(r'"pyspark>=(\d+\.\d+)')
    (iceberg,) = versions(r"iceberg-spark-runtime-\S+?:(\d+\.\d+)", profile)
    (delta,) = versions(r"delta-spark_\S+?:(\d+\.\d+)", profile)
    badges = (ROOT / "docs/badges.svg").read_text(encoding="utf-8")
    shown = re.findall(r"<text[^>]*>(.*?)</text><text[^>]*>(.*?)</text>", badges)
    assert dict(shown) == {
        "license": versions('license = "(.+?)"')[0],
        "Python": f"3.{first} to 3.{end - 1}",
        "Java": " or ".join(map(str, JAVA_VERSIONS)),
        "dbt": " or ".join(f"1.{minor}" for minor in of_dbt),
        "Spark": spark,
        "Iceberg": iceberg,
        "Delta": delta,
    }


def test_no_module_of_the_product_imports_the_demo() -> None:
    """import-linter says so too, but does not see what an import in a string names."""
    modules = sorted((ROOT / "src").rglob("*.py"))
    assert modules
    assert [path.name for path in modules if "afterimage_demo" in path.read_text("utf-8")] == []
