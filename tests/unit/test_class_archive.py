"""Which archive of classes a JVM is launched with; that Java uses it is a functional test."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbt_afterimage.spark.class_archive import (
    FOLDER,
    ClassArchive,
    ClassArchiveError,
    class_archive,
)

# of an archive that OpenJDK 17 had written to its end, and of one it was still writing
COMPLETE, BEGUN = b"\xa8\xab\x0b\xf0\xae\xc0\x51\x2b", b"\0" * 8


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of archives, which is not there yet; Java and Spark are mere files."""
    java, spark = tmp_path / "java", tmp_path / "spark"
    java.mkdir()
    (java / "release").write_text('JAVA_VERSION="17.0.15"\n', encoding="utf-8")
    (spark / "jars").mkdir(parents=True)
    (spark / "jars" / "spark-core.jar").write_bytes(b"jar")
    monkeypatch.setenv("JAVA_HOME", str(java))
    monkeypatch.setenv("SPARK_HOME", str(spark))
    monkeypatch.setenv(FOLDER, str(tmp_path / "class archives"))
    return tmp_path / "class archives"


@pytest.fixture
def interrupts() -> Iterator[None]:
    """What Ctrl+C does stays as it is."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def archive(**parameters: str) -> ClassArchive:
    found = class_archive(parameters)
    assert found is not None
    return found


def test_without_a_folder_there_is_no_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER, raising=False)
    assert class_archive({}) is None


def test_an_archive_is_written_once_and_used_from_then_on(folder: Path) -> None:
    file = archive().file
    assert file.parent == folder
    # in quotation marks: Spark splits the options at spaces
    assert archive().java_options.endswith(f' "-XX:ArchiveClassesAtExit={file}"')
    file.write_bytes(COMPLETE)
    assert archive().java_options.endswith(f' "-XX:SharedArchiveFile={file}"')


@pytest.mark.parametrize("content", [b"", BEGUN])
def test_an_archive_whose_writing_was_killed_is_written_again(folder: Path, content: bytes) -> None:
    archive().file.write_bytes(content)
    assert "ArchiveClassesAtExit" in archive().java_options


@pytest.mark.usefixtures("folder")
def test_what_java_compares_with_an_archive_is_in_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [archive().file]

    def add() -> None:
        names.append(archive().file)

    (tmp_path / "java" / "release").write_text('JAVA_VERSION="17.0.16"\n', encoding="utf-8")
    add()
    # as pip leaves it when it installs the same version once more
    os.utime(tmp_path / "spark" / "jars" / "spark-core.jar", (1, 1))
    add()
    (tmp_path / "spark" / "jars" / "more.jar").write_bytes(b"jar")
    add()
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    add()
    names.append(archive(**{"spark.driver.extraClassPath": "/a.jar"}).file)
    names.append(archive(**{"spark.driver.memory": "64g"}).file)
    assert len(set(names)) == len(names)
    assert archive().file == names[4]


def test_a_path_that_java_or_spark_would_split_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a:b", 'a"b'):
        monkeypatch.setenv(FOLDER, str(tmp_path / name))
        with pytest.raises(ClassArchiveError, match=rf"{FOLDER} is .*Allowed: .*Fix: "):
            class_archive({})


def test_a_folder_that_cannot_be_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv(FOLDER, str(tmp_path / "file" / "archives"))
    with pytest.raises(ClassArchiveError, match=rf"{FOLDER} is .*cannot be used.*Fix: "):
        class_archive({})


def java_that(does: str) -> subprocess.Popen[bytes]:
    """A process that waits until its standard input is closed."""
    return subprocess.Popen(["sh", "-c", f"cat; {does}"], stdin=subprocess.PIPE)


@pytest.mark.usefixtures("interrupts")
def test_the_process_waits_until_java_has_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = archive()
    found.write(java_that(rf"sleep 1; printf '\250\253\013\360' > '{found.file}'"))
    assert archive().is_complete
    said = capsys.readouterr().err
    assert said.count(str(folder)) == 1
    assert "once" in said


@pytest.mark.usefixtures("interrupts", "folder")
def test_an_archive_that_java_did_not_write_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    found = archive()
    found.write(java_that("exit 1"))
    assert f"Java did not write {found.file}" in capsys.readouterr().err
