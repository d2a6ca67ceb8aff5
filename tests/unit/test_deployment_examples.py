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

from dbt_afterimage.cli.commands.init.project_files import PACKAGE_VARIABLE
from dbt_afterimage.spark.connect import TOKEN_VARIABLE

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
        java_options = of_target.get(f"spark.{of}.extraJavaOptions")
        assert given[of].get("javaOptions") == java_options


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
    options = ["--project-dir", "/opt/project", "--profiles-dir", "/etc/dbt"]
    options += ["--target", "cluster_rest"]
    assert given["arguments"] == ["build", *options]


def test_the_image_has_the_locked_version_of_spark() -> None:
    assert f"FROM spark:{importlib.metadata.version('pyspark')}-" in example("Dockerfile")


def test_the_image_sets_the_variable_that_packages_yml_reads() -> None:
    image = example("Dockerfile")
    assert f'{PACKAGE_VARIABLE}="$(afterimage package-path)" dbt deps' in image
    # the link of the machine where the project was made leads nowhere in the image
    assert "dbt_packages" in example(".dockerignore").split()


def test_the_profile_is_no_part_of_the_image() -> None:
    """It may hold secrets, which everyone who pulls the image could read."""
    assert "profiles.yml" in example(".dockerignore").split()
    assert "DBT_PROFILES_DIR=/etc/dbt" in example("Dockerfile")
    (secret,) = manifest()["driver"]["secrets"]
    assert secret["path"] == "/etc/dbt"
    assert f"create secret generic {secret['name']} " in example("spark_application.yml")


def test_pip_installs_nothing_in_the_image_without_a_hash() -> None:
    commands = [line for line in example("Dockerfile").splitlines() if "-m pip install" in line]
    *locked, own = commands
    assert all("--no-deps" in line for line in commands)
    assert [("--require-hashes" in line) for line in commands] == [True] * len(locked) + [False]
    assert "dbt_afterimage-*.whl" in own
    make = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name in re.findall(r"-r (\S+)", "\n".join(locked)):
        assert re.search(rf"cp .*\b{name}\b.* dist", make)


def test_the_dag_sends_a_token_and_only_by_tls() -> None:
    dag = example("airflow_dag.py")
    assert re.search(r'"SPARK_REMOTE": "sc://[^"]*;use_ssl=true"', dag)
    assert f'"{TOKEN_VARIABLE}": "{{{{ conn.' in dag


def test_actions_are_named_by_commit() -> None:
    """A tag can be moved to other code."""
    files = [
        *(ROOT / ".github" / "workflows").glob("*.yml"),
        ROOT / "src/dbt_afterimage/cli/commands/init/templates/ci.yml.jinja",
    ]
    used = [
        line for file in files for line in file.read_text("utf-8").splitlines() if "uses:" in line
    ]
    assert used
    assert [line for line in used if not re.search(r"@[0-9a-f]{40}  # v\d+\.", line)] == []


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
