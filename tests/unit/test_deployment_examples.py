"""The files of examples/deploy name what the project has: versions, programs, static settings."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from dbt_afterimage.cli.init.files import PACKAGE_VARIABLE

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "deploy"
PACKAGES = "spark.jars.packages"


def example(name: str) -> str:
    return (EXAMPLES / name).read_text(encoding="utf-8")


def manifest() -> Any:
    return yaml.safe_load(example("spark_application.yml"))["spec"]


def target(name: str) -> dict[str, str]:
    """Spark's settings of a target of the example's profile; those of clusters are comments."""
    text = (ROOT / "profiles.yml.example").read_text(encoding="utf-8")
    uncommented = re.sub(r"(?m)^    # ", "    ", text)
    blocks = re.findall(rf"(?ms)^    {name}:\n(?:      .*?\n|\s*\n)+", uncommented)
    (output,) = yaml.safe_load(blocks[0]).values()
    return dict(output["server_side_parameters"])


def test_the_manifest_has_the_versions_of_the_profile() -> None:
    given = manifest()
    assert given["deps"]["packages"] == target("cluster_rest")[PACKAGES].split(",")
    assert given["sparkVersion"] == importlib.metadata.version("pyspark")


def test_the_manifest_has_the_settings_that_come_too_late_from_the_profile() -> None:
    given, profile = manifest()["sparkConf"], target("cluster_rest")
    late = {
        name
        for name in profile
        if name.startswith(("spark.sql.catalog", "spark.sql.extensions", "spark.sql.defaultCat"))
    }
    late -= {"spark.sql.catalog.lake.warehouse"}  # the catalog may know its own
    assert given.keys() >= late
    for name in late - {"spark.sql.catalog.lake.uri"}:
        assert given[name] == profile[name]


def test_the_manifest_runs_a_program_that_the_image_has() -> None:
    given = manifest()
    program = given["mainApplicationFile"].removeprefix("local:///opt/project/")
    assert (EXAMPLES / program).is_file()
    assert "WORKDIR /opt/project" in example("Dockerfile")
    assert given["arguments"][:3] == ["build", "--project-dir", "/opt/project"]


def test_the_image_has_the_dbt_package_where_packages_yml_looks_for_it() -> None:
    image = example("Dockerfile")
    given = dict(re.findall(r"(\w+)=\S+/site-packages/(\S+)", image))
    built = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'"dbt_project.yml" = "{given[PACKAGE_VARIABLE]}/dbt_project.yml"' in built
    assert image.index("pip install") < image.index("dbt deps")


def test_the_program_ends_with_the_result_of_dbt(tmp_path: Path) -> None:
    """spark-submit and operators see a failed build only by this code."""
    for arguments, code in ((["--version"], 0), (["parse", "--project-dir", tmp_path], 1)):
        done = subprocess.run(
            [sys.executable, EXAMPLES / "run_dbt.py", *arguments],
            cwd=tmp_path,
            env={**os.environ, "DBT_PROFILES_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
