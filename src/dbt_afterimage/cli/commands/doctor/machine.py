"""Checks of the machine: Python packages, Java, free space."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dbt_afterimage.cli.commands.doctor.check import Check
from dbt_afterimage.cli.support.project_session import project_folder
from dbt_afterimage.errors import AfterimageError
from dbt_afterimage.spark.java import JAVA_VERSIONS, java_says, version_in

_PACKAGES = ("dbt-afterimage", "dbt-core", "dbt-spark", "pyspark")
_LITTLE_SPACE = 5 << 30
_GIB = 1 << 30


def machine_checks(*, is_client: bool) -> Iterator[Check]:
    """Java and disk space.

    Args:
        is_client: Spark runs on a server, so no Java is needed here.
    """
    if is_client:
        yield Check("Java", "ok", "not needed: Spark runs on a server")
    else:
        yield java_check(java_says())
    yield space_check(_warehouse_folder())


def packages_check() -> Check:
    """The versions of the packages that work together."""
    found, missing = [], []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        return Check(
            "packages",
            "failed",
            f"{', '.join(missing)} not installed",
            "pip install dbt-afterimage",
        )
    return Check("packages", "ok", ", ".join(found))


def java_check(said: str | None) -> Check:
    """Whether the Java that Spark would start is one that it supports.

    Args:
        said: what `java -version` prints; None where there is no Java.
    """
    allowed = " or ".join(map(str, JAVA_VERSIONS))
    fix = (
        f"install Java {allowed} and set JAVA_HOME to its folder, or `pip install "
        "'dbt-afterimage[java]'`; in a clone, run `make setup`"
    )
    if said is None:
        return Check("Java", "failed", "JAVA_HOME and PATH have no `java`", fix)
    first_line = said.strip().splitlines()[0] if said.strip() else "nothing"
    if version_in(said) not in JAVA_VERSIONS:
        return Check("Java", "failed", f"found {first_line}; allowed: {allowed}", fix)
    return Check("Java", "ok", first_line)


def space_check(folder: Path) -> Check:
    """Whether the disk of the warehouse has room."""
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    text = f"{free / _GIB:.0f} GiB free at {folder}"
    if free < _LITTLE_SPACE:
        return Check("disk space", "warning", text, "free some space, or move the warehouse")
    return Check("disk space", "ok", text)


def _warehouse_folder() -> Path:
    given = os.environ.get("AFTERIMAGE_WAREHOUSE")
    if given:
        return Path(given).resolve()
    try:
        return (project_folder() / "warehouse").resolve()
    except AfterimageError:
        return Path.cwd()
