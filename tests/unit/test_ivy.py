"""Ivy's cache is for one process at a time, for fetching only."""

from __future__ import annotations

import pwd
import threading
from pathlib import Path

import pytest

from dbt_afterimage.spark.ivy import alone_to_launch, are_fetched

PACKAGES = "io.delta:delta-spark_4.1_2.13:4.3.1, org.xerial:sqlite-jdbc:3.50.3.0"
FILES = ("io.delta_delta-spark_4.1_2.13-4.3.1.jar", "org.xerial_sqlite-jdbc-3.50.3.0.jar")


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


@pytest.mark.parametrize(("files", "waits"), [((), True), (FILES, False)])
def test_a_launch_waits_for_another_only_while_jars_are_missing(
    tmp_path: Path, files: tuple[str, ...], waits: bool
) -> None:
    put(tmp_path, *files)
    launched = threading.Event()

    def launch() -> None:
        with alone_to_launch(settings(tmp_path)):
            launched.set()

    other = threading.Thread(target=launch)
    with alone_to_launch(settings(tmp_path)):
        other.start()
        assert launched.wait(timeout=0.5 if waits else 20) is not waits
        put(tmp_path, *FILES)
    other.join()
    assert launched.is_set()
