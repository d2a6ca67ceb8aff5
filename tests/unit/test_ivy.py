"""Ivy's cache is for one process at a time; its jars are checked before they run."""

from __future__ import annotations

import pwd
import re
import stat
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from dbt_afterimage.spark import ivy
from dbt_afterimage.spark.ivy import IvyError, alone, are_fetched, fetch_packages

PACKAGES = "io.delta:delta-spark_4.1_2.13:4.3.1, org.xerial:sqlite-jdbc:3.50.3.0"
FILES = ("io.delta_delta-spark_4.1_2.13-4.3.1.jar", "org.xerial_sqlite-jdbc-3.50.3.0.jar")
OTHER_PACKAGES, OTHER_FILES = "com.example:any:1", ("com.example_any-1.jar",)


def settings(folder: Path, packages: str = PACKAGES) -> dict[str, str]:
    return {"spark.jars.packages": packages, "spark.jars.ivy": str(folder)}


def put(folder: Path, *names: str) -> None:
    (folder / "jars").mkdir(exist_ok=True)
    for name in names:
        (folder / "jars" / name).touch()


@pytest.mark.parametrize(
    ("packages", "files", "expected"),
    [
        (PACKAGES, FILES, True),
        (PACKAGES, FILES[:1], False),
        (PACKAGES, (), False),
        (PACKAGES.replace(":", "/"), FILES, True),
        (PACKAGES.replace("4.3.1", "4.3.2"), FILES, False),
        ("", (), True),
        ("no coordinate", FILES, False),
    ],
)
def test_packages_are_fetched_when_each_is_there(
    tmp_path: Path, packages: str, files: tuple[str, ...], expected: bool
) -> None:
    put(tmp_path, *files)
    assert are_fetched(settings(tmp_path, packages)) is expected


def test_without_packages_nothing_is_fetched() -> None:
    assert are_fetched({})


def test_without_a_name_and_a_home_jars_count_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    monkeypatch.delenv("HOME", raising=False)
    assert not are_fetched({"spark.jars.packages": PACKAGES})


class Fetches:
    """Takes the place of spark-submit: it puts files into Ivy's folder, and counts."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.calls = folder / "calls"
        monkeypatch.setattr(ivy, "program", lambda name: str(folder / name))

    def does(self, *lines: str) -> None:
        script = self.folder / "spark-submit"
        text = "\n".join(["#!/bin/sh", f'echo "$*" >> {self.calls}', *lines])
        script.write_text(text, encoding="utf-8")
        script.chmod(0o700)

    def puts(self, *names: str) -> None:
        jars = self.folder / "jars"
        self.does(f"mkdir -p {jars}", "sleep 0.3", *(f"echo jar > {jars / name}" for name in names))

    def count(self) -> int:
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0


@pytest.fixture
def fetches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fetches:
    return Fetches(tmp_path, monkeypatch)


def test_of_many_processes_one_fetches(fetches: Fetches) -> None:
    fetches.puts(*OTHER_FILES)
    given = settings(fetches.folder, OTHER_PACKAGES)
    threads = [threading.Thread(target=fetch_packages, args=(given,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fetch_packages(given)
    assert fetches.count() == 1


def test_a_jar_that_is_not_the_known_one_does_not_run(fetches: Fetches) -> None:
    fetches.puts(*FILES)
    wrong = fetches.folder / "jars" / FILES[1]
    for _ in range(2):
        with pytest.raises(IvyError, match=rf"{wrong.name} was fetched with.*Fix: delete"):
            fetch_packages(settings(fetches.folder))
        assert not wrong.exists()
    assert fetches.count() == 2


def test_a_wrong_jar_that_another_one_needs_is_not_fetched_unchecked_later(
    fetches: Fetches,
) -> None:
    needed = "io.delta_delta-storage-4.4.0.jar"
    fetches.puts(*OTHER_FILES, needed)
    for _ in range(2):
        with pytest.raises(IvyError, match=f"{needed} was fetched with"):
            fetch_packages(settings(fetches.folder, OTHER_PACKAGES))
    assert fetches.count() == 2


def test_jars_that_cannot_be_fetched_are_named_with_the_last_lines(fetches: Fetches) -> None:
    fetches.does("echo unresolved dependency", "exit 1")
    with pytest.raises(IvyError, match=r"(?s)delta-spark.*Fix: .*unresolved dependency"):
        fetch_packages(settings(fetches.folder))


def test_a_certificate_that_java_does_not_trust_has_a_fix_of_its_own(fetches: Fetches) -> None:
    fetches.does("echo SSLHandshakeException: PKIX path building failed", "exit 1")
    with pytest.raises(IvyError, match=r"Fix: set JAVA_TOOL_OPTIONS=.*does not trust") as error:
        fetch_packages(settings(fetches.folder))
    assert "set JAVA_HOME" not in str(error.value)


def test_the_hashes_of_all_jars_that_the_targets_name_are_known() -> None:
    root = Path(__file__).parents[2]
    profile = (root / "profiles.yml.example").read_text(encoding="utf-8")
    named = re.findall(r"spark\.jars\.packages: (\S+)", profile)
    hashes = (root / "src/dbt_afterimage/spark/jars.sha256").read_text(encoding="utf-8")
    for group, name, version in (each.split(":") for each in ",".join(named).split(",")):
        assert re.search(rf"(?m)^[0-9a-f]{{64}}  {group}_{name}-{re.escape(version)}\.jar$", hashes)


def test_a_process_that_waits_says_so_and_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ivy, "_PATIENCE_SECONDS", 0.5)
    with (
        alone(tmp_path),
        pytest.raises(IvyError, match=r"Another process has held .*afterimage\.lock.*Fix: end"),
        alone(tmp_path),
    ):
        pass
    assert capsys.readouterr().err.count("Waiting for another process") == 1


@pytest.mark.parametrize("is_link", [True, False])
def test_the_lock_changes_no_file(tmp_path: Path, is_link: bool) -> None:
    other = tmp_path / ("other" if is_link else "afterimage.lock")
    other.write_text("kept", encoding="utf-8")
    if is_link:
        (tmp_path / "afterimage.lock").symlink_to(other)
    with alone(tmp_path):
        assert other.read_text(encoding="utf-8") == "kept"


def test_the_lock_is_in_a_folder_of_this_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pwd, "getpwuid", lambda number: SimpleNamespace(pw_dir=str(tmp_path)))
    with alone():
        (lock,) = tmp_path.rglob("*.lock")
        assert stat.S_IMODE(lock.stat().st_mode) == 0o600


def test_without_a_folder_for_the_lock_ivy_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with alone(tmp_path / "file" / "ivy"):
        pass
