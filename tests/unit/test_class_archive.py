"""Which archive of classes a JVM is launched with; that Java uses it is a functional test."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt_afterimage.spark.class_archive import FOLDER, OPTIONS, class_archive

# of an archive that OpenJDK 17 had written to its end, and of one it was still writing
COMPLETE, BEGUN = b"\xa8\xab\x0b\xf0\xae\xc0\x51\x2b", b"\0" * 8


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "class archives"
    monkeypatch.setenv(FOLDER, str(folder))
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path / "java", "17.0.15")))
    return folder


def java_home(home: Path, version: str) -> Path:
    home.mkdir(exist_ok=True)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\n', encoding="utf-8")
    return home


def options() -> str:
    archive = class_archive({})
    assert archive is not None
    return archive.java_option


def test_without_a_folder_there_is_no_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER, raising=False)
    assert class_archive({}) is None


def test_an_archive_is_written_once_and_used_from_then_on(folder: Path) -> None:
    archive = class_archive({})
    assert archive is not None
    assert archive.file.parent == folder
    # in quotation marks: Spark splits the options at spaces
    assert options().startswith(f'"-XX:ArchiveClassesAtExit={archive.file}" ')
    archive.file.write_bytes(COMPLETE)
    assert options().startswith(f'"-XX:SharedArchiveFile={archive.file}" ')


def test_an_archive_whose_writing_was_killed_is_written_again(folder: Path) -> None:
    archive = class_archive({})
    assert archive is not None
    for content in (b"", BEGUN):
        archive.file.write_bytes(content)
        assert "ArchiveClassesAtExit" in options()


def test_another_java_has_an_archive_of_its_own(folder: Path, tmp_path: Path) -> None:
    """As after an upgrade in place: Java would do without the archive of the former one."""
    archive = class_archive({})
    assert archive is not None
    archive.file.write_bytes(COMPLETE)
    java_home(tmp_path / "java", "17.0.16")
    assert "ArchiveClassesAtExit" in options()


def test_another_class_path_has_an_archive_of_its_own(folder: Path) -> None:
    plain, longer = class_archive({}), class_archive({"spark.driver.extraClassPath": "/a.jar"})
    assert plain is not None
    assert longer is not None
    assert plain.file != longer.file


@pytest.mark.parametrize("option", ["-XX:SharedArchiveFile=/mine.jsa", "-Xshare:off"])
def test_options_of_the_profile_count(folder: Path, option: str) -> None:
    assert class_archive({OPTIONS: f"-XX:+UseParallelGC {option}"}) is None
