"""The files of examples/deploy name what the project has: versions, programs, variables."""

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


def test_the_manifest_has_what_comes_too_late_from_the_target() -> None:
    given, of_target = manifest(), target("cluster_rest")
    for of in ("driver", "executor"):
        assert given[of]["javaOptions"] == of_target[f"spark.{of}.extraJavaOptions"]


def test_the_manifest_has_the_variables_that_the_target_needs() -> None:
    texts = "\n".join(map(str, target("cluster_rest").values()))
    needed = re.findall(r"env_var\('(\w+)'\)", texts)
    assert needed
    assert {each["name"] for each in manifest()["driver"]["env"]} == set(needed)


def test_the_manifest_runs_the_program_and_target_that_the_image_has() -> None:
    given = manifest()
    program = given["mainApplicationFile"].removeprefix("local:///opt/project/")
    assert (EXAMPLES / program).is_file()
    assert "WORKDIR /opt/project" in example("Dockerfile")
    folder, target_name = "/opt/project", "cluster_rest"
    options = ["--project-dir", folder, "--profiles-dir", folder, "--target", target_name]
    assert given["arguments"] == ["build", *options]


def test_the_image_has_the_locked_version_of_spark() -> None:
    assert f"FROM spark:{importlib.metadata.version('pyspark')}-" in example("Dockerfile")


def test_the_image_sets_the_variable_that_packages_yml_reads() -> None:
    image = example("Dockerfile")
    assert f'{PACKAGE_VARIABLE}="$(afterimage package-path)" dbt deps' in image
    # the link of the machine where the project was made leads nowhere in the image
    assert "dbt_packages" in example(".dockerignore").split()


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
