"""Java's archive of the classes that Spark loads, from which the next JVM starts in half the time.

AFTERIMAGE_CLASS_ARCHIVES names a folder. The first process that finds no archive in it has Java
write one when it ends; later ones start from it (docs/decisions/0069). Java starts without an
archive that does not fit, so the name of its file has what the classes depend on.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = "AFTERIMAGE_CLASS_ARCHIVES"
OPTIONS = "spark.driver.extraJavaOptions"
_CLASS_PATH = "spark.driver.extraClassPath"
_OF_THE_USER = ("SharedArchiveFile", "ArchiveClassesAtExit", "-Xshare", "SharedClassListFile")
# Java writes it last: CDS_DYNAMIC_ARCHIVE_MAGIC of OpenJDK's cds.h
_MAGIC = b"\xa8\xab\x0b\xf0"
# Java warns of each class that cannot be in an archive, and of an archive that does not fit
_QUIET = "-Xlog:cds*=error"


@dataclass(frozen=True)
class ClassArchive:
    """An archive in a file.

    Attributes:
        file: the file.
        is_complete: whether it can be used; otherwise the JVM is to write it.
    """

    file: Path
    is_complete: bool

    @property
    def java_option(self) -> str:
        """The options of the JVM that uses the archive, or writes it when it ends."""
        name = "SharedArchiveFile" if self.is_complete else "ArchiveClassesAtExit"
        return f'"-XX:{name}={self.file}" {_QUIET}'


def class_archive(parameters: Mapping[str, Any]) -> ClassArchive | None:
    """The archive for a JVM that this process launches; None without a folder of archives.

    Args:
        parameters: Spark's, of the profile. Java options of theirs that name an archive count.
    """
    folder = os.environ.get(FOLDER)
    given = str(parameters.get(OPTIONS, ""))
    if not folder or any(option in given for option in _OF_THE_USER):
        return None
    file = Path(folder).resolve() / f"{_fingerprint(parameters)}.jsa"
    file.parent.mkdir(parents=True, exist_ok=True)
    return ClassArchive(file, _is_complete(file))


def _fingerprint(parameters: Mapping[str, Any]) -> str:
    """What the archived classes depend on: Java, Spark, and the class path."""
    import pyspark

    home = os.environ.get("JAVA_HOME") or str(_home_of(shutil.which("java")))
    release = Path(home) / "release"
    parts = (
        str(Path(home).resolve()),
        release.read_text(encoding="utf-8") if release.is_file() else "",
        pyspark.__version__,
        os.environ.get("SPARK_HOME") or pyspark.__file__,
        str(parameters.get(_CLASS_PATH, "")),
    )
    return f"spark-{pyspark.__version__}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}"


def _home_of(program: str | None) -> Path | None:
    return Path(program).resolve().parents[1] if program else None


def _is_complete(file: Path) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as archive:
        return archive.read(len(_MAGIC)) == _MAGIC
