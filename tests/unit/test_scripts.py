"""The scripts behind the Makefile: which Java and Python they take, and what they leave alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from afterimage_demo.systems import SYSTEMS, demo_system

SCRIPTS = Path(__file__).parents[2] / "scripts"


def fake_program(path: Path, text: str, exit_code: int = 0) -> Path:
    """Writes a program that prints `text` and exits; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ncat <<'TEXT'\n{text}\nTEXT\nexit {exit_code}\n")
    path.chmod(0o755)
    return path


def fake_java(home: Path, version: str) -> Path:
    """Makes a Java home whose `java -XshowSettings:properties -version` prints this version."""
    settings = f"Property settings:\n    java.home = {home}\n"
    fake_program(home / "bin" / "java", f"{settings}    java.specification.version = {version}\n")
    return home


def run(script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in an environment of its own, without the right to install anything."""
    environment = {"PATH": os.defpath, "AFTERIMAGE_NO_INSTALL": "1", **variables}
    return subprocess.run(
        [SCRIPTS / script, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("version", ["17", "21"])
def test_java_home_is_taken_when_its_version_fits(tmp_path: Path, version: str) -> None:
    home = fake_java(tmp_path / "a folder", version)
    assert run("java_home.sh", JAVA_HOME=str(home)).stdout == f"{home}\n"


@pytest.mark.parametrize("version", ["1.8", "11", "25"])
def test_java_of_another_version_is_passed_over(tmp_path: Path, version: str) -> None:
    wrong = fake_java(tmp_path / "jdk-17-by-its-name-only", version)
    right = fake_java(tmp_path / "right", "21")
    found = run("java_home.sh", JAVA_HOME=str(wrong), PATH=f"{right}/bin:{os.defpath}")
    assert found.stdout == f"{right}\n"


def test_java_that_does_not_start_is_passed_over(tmp_path: Path) -> None:
    fake_program(tmp_path / "broken" / "bin" / "java", "Unable to locate a Java Runtime.", 1)
    right = fake_java(tmp_path / "right", "17")
    found = run(
        "java_home.sh",
        JAVA_HOME=str(tmp_path / "broken"),
        PATH=f"{right}/bin:{os.defpath}",
    )
    assert found.stdout == f"{right}\n"


def test_java_is_found_in_the_folder_of_sdkman(tmp_path: Path) -> None:
    home = fake_java(tmp_path / ".sdkman/candidates/java/21.0.2-tem", "21")
    found = run("java_home.sh", HOME=str(tmp_path))
    # A Java of the system goes first where there is one.
    assert found.stdout == f"{home}\n" or Path(found.stdout.strip(), "bin/java").exists()


def test_python_named_by_the_user_goes_first() -> None:
    found = run("python_for_venv.sh", PYTHON=sys.executable)
    assert found.returncode == 0
    # Not the virtual environment's own program: an environment created with it would break with it.
    assert Path(found.stdout.strip()).resolve() == Path(sys.executable).resolve()


def test_python_that_only_prints_an_error_is_passed_over(tmp_path: Path) -> None:
    fake_program(tmp_path / "python3", "pyenv: python3: command not found", 127)
    fake_program(tmp_path / "python3.13", "pyenv: python3.13: command not found", 127)
    (tmp_path / "python3.12").symlink_to(sys.executable)
    found = run("python_for_venv.sh", PATH=f"{tmp_path}:{os.defpath}")
    assert found.returncode == 0


def test_without_python_the_message_says_what_to_install(tmp_path: Path) -> None:
    for name in ("python", "python3", *(f"python3.{minor}" for minor in range(10, 14))):
        fake_program(tmp_path / name, "Python 3.9.2", 1)
    found = run("python_for_venv.sh", PATH=f"{tmp_path}:{os.defpath}")
    assert found.returncode == 1
    assert found.stdout == ""
    assert "python3 is Python 3.9.2" in found.stderr
    for fix in ("apt-get install python3", "brew install python", "WSL", "PYTHON="):
        assert fix in found.stderr


def test_scratch_folder_is_used_and_removed(tmp_path: Path) -> None:
    shown = run(
        "with_env.sh",
        "--scratch",
        "sh",
        "-c",
        'echo "$AFTERIMAGE_WAREHOUSE|$DBT_PROFILES_DIR|${SPARK_HOME-none}"; exit 7',
        TMPDIR=str(tmp_path),
        AFTERIMAGE_WAREHOUSE="/the/users/own",
        SPARK_HOME="/another/spark",
    )
    if shown.returncode == 1 and "No Java" in shown.stderr:
        pytest.skip("this machine has no Java")
    warehouse, profiles, spark_home = shown.stdout.strip().split("|")
    assert Path(warehouse).parent == Path(profiles)
    assert Path(profiles).parent == tmp_path
    assert spark_home == "none"
    assert shown.returncode == 7
    assert list(tmp_path.iterdir()) == []


def test_the_linters_check_the_demo_of_every_system() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "afterimage_demo.systems"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == ",".join(SYSTEMS) + "\n"


def test_an_unknown_system_is_told_which_demos_there_are() -> None:
    with pytest.raises(ValueError, match=r"no demo of system 'oracle'; allowed: qlik, openedge"):
        demo_system("oracle")
