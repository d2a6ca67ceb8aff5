"""Fetching jars: what a program in place of Java's sees."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dbt_afterimage.dbt_spark import jars as jars_module
from dbt_afterimage.dbt_spark.jars import (
    JARS,
    Coordinate,
    JarsError,
    avro_jars,
    fetched,
    submit_arguments,
)

IVY = """\
#!{python}
import os, sys, time
from pathlib import Path

alone = Path({folder!r}) / "at_work"
os.close(os.open(alone, os.O_CREAT | os.O_EXCL))  # fails where another one is at work
time.sleep(0.2)
Path(sys.argv[sys.argv.index("-cachepath") + 1]).write_text("/one.jar:/other.jar")
alone.unlink()
"""


@pytest.fixture
def java_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Makes the Java of a folder the only one: no packaged Java takes its place."""

    def use(folder: Path) -> None:
        monkeypatch.setattr("dbt_afterimage.spark.java.find_spec", lambda name: None)
        monkeypatch.setenv("JAVA_HOME", str(folder))

    return use


def test_one_at_a_time_is_at_ivys_cache(tmp_path: Path, java_of: Callable[[Path], None]) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(IVY.format(python=sys.executable, folder=str(tmp_path)), encoding="utf-8")
    program.chmod(0o755)
    java_of(tmp_path)
    with ThreadPoolExecutor() as threads:
        paths = list(threads.map(fetched, [[("org", "name", "1")]] * 3))
    assert paths == [[Path("/one.jar"), Path("/other.jar")]] * 3


def test_a_classifier_and_a_type_choose_the_file_of_a_module(
    tmp_path: Path, java_of: Callable[[Path], None]
) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    given = tmp_path / "given.xml"
    copying = f'#!/bin/sh\ncp "$4" {given}\necho /one.jar > "$6"\n'
    program.write_text(copying, encoding="utf-8")
    program.chmod(0o755)
    java_of(tmp_path)
    fetched([("org", "plain", "1"), ("org", "other", "2", "tests", "zip")])
    plain, other = ElementTree.parse(given).getroot().findall("dependencies/dependency")
    assert (plain.attrib["name"], plain.attrib["rev"], list(plain)) == ("plain", "1", [])
    assert (other.attrib["name"], other.attrib["rev"]) == ("other", "2")
    assert [each for artifact in other for each in artifact.attrib.items()] == [
        ("name", "other"),
        ("type", "zip"),
        ("{http://ant.apache.org/ivy/maven}classifier", "tests"),
    ]


def test_without_java_the_error_says_what_to_set(
    tmp_path: Path, java_of: Callable[[Path], None]
) -> None:
    java_of(tmp_path)
    with pytest.raises(JarsError, match=r"Java cannot be started.*Fix: set JAVA_HOME"):
        fetched([("org", "name", "1")])


@pytest.mark.parametrize(
    ("published", "expected"),
    [(("4.1.3", "4.1.1", "4.1.0"), "4.1.3"), (("4.1.4", "4.1.1", "4.1.0", "4.0.9"), "4.1.1")],
)
def test_connectors_have_pysparks_version_or_the_nearest_earlier_patch(
    monkeypatch: pytest.MonkeyPatch, published: tuple[str, ...], expected: str
) -> None:
    publish(monkeypatch, published, pyspark="4.1.3")
    assert avro_jars() == [Path(f"/spark-avro_2.13-{expected}.jar")]


def test_without_any_connector_the_error_names_pysparks_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publish(monkeypatch, ("4.0.2", "4.1.4"), pyspark="4.1.3")
    with pytest.raises(JarsError, match=r"no spark-avro_2.13 4.1.3"):
        avro_jars()


def publish(monkeypatch: pytest.MonkeyPatch, versions: Sequence[str], pyspark: str) -> None:
    """Let Maven Central have Spark's connectors in these versions only."""

    def from_maven(coordinates: Sequence[Coordinate]) -> list[Path]:
        (coordinate,) = coordinates
        if coordinate[2] not in versions:
            raise JarsError(f"no {coordinate[1]} {coordinate[2]}")
        return [Path(f"/{coordinate[1]}-{coordinate[2]}.jar")]

    monkeypatch.setattr(jars_module, "fetched", from_maven)
    monkeypatch.setattr(jars_module, "version", lambda package: pyspark)


@pytest.mark.parametrize(
    ("given", "jars", "fetched_jars", "expected"),
    [
        ("pyspark-shell", None, "", "pyspark-shell"),
        ("pyspark-shell", None, "/avro.jar", "--jars /avro.jar pyspark-shell"),
        ("pyspark-shell", "/a.jar,/b.jar", "", "--jars /a.jar,/b.jar pyspark-shell"),
        (
            "--conf 'spark.x=1 2' --jars /u.jar pyspark-shell",
            "/a.jar",
            "/avro.jar",
            "--jars /u.jar,/a.jar,/avro.jar --conf 'spark.x=1 2' pyspark-shell",
        ),
        ("--jars=/u.jar pyspark-shell", "/a.jar", "", "--jars /u.jar,/a.jar pyspark-shell"),
    ],
)
def test_spark_is_launched_with_the_jars_of_all_places(
    monkeypatch: pytest.MonkeyPatch, given: str, jars: str | None, fetched_jars: str, expected: str
) -> None:
    monkeypatch.setenv(JARS, fetched_jars)
    assert submit_arguments(given, jars) == expected
