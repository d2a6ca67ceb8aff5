"""Java's archive of the classes that Spark loads: a JVM that starts from one does less work.

AFTERIMAGE_CLASS_ARCHIVES names a folder. The first process that finds no archive there lets Java
write one when it ends; later processes start from it (docs/decisions/0069). Java ignores an archive
that does not match, so the name of its file contains a hash of what must match.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import Any

from dbt_afterimage.errors import AfterimageError

FOLDER = "AFTERIMAGE_CLASS_ARCHIVES"
# Java writes it last: CDS_DYNAMIC_ARCHIVE_MAGIC of OpenJDK's cds.h
_MAGIC = b"\xa8\xab\x0b\xf0"
_WRITING_SECONDS = 300
# Java's remarks belong into Spark's log, to which the JVM's standard error goes
_REMARKS = "-Xlog:disable -Xlog:all=warning:stderr"
# Java splits its option at colons, Spark at quotation marks.
_REFUSED = ':"\\'
# The class path, and the memory from which on Java stores references in another way (32 GB)
_VARIABLES = ("SPARK_DIST_CLASSPATH", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
_PARAMETERS = ("spark.driver.extraClassPath", "spark.driver.memory")


class ClassArchiveError(AfterimageError):
    """The folder of archives cannot be used."""


@dataclass(frozen=True)
class ClassArchive:
    """An archive in a file.

    Attributes:
        file: the file.
        is_complete: whether it can be used; otherwise Java is to write it.
    """

    file: Path
    is_complete: bool

    @property
    def java_options(self) -> str:
        """Options of a JVM that uses the archive, or writes it when it ends."""
        if self.is_complete:
            return f'{_REMARKS} "-XX:SharedArchiveFile={self.file}"'
        # without a remark on each class that cannot be in an archive
        return f'{_REMARKS} -Xlog:cds*=error:stderr "-XX:ArchiveClassesAtExit={self.file}"'

    def write(self, java: Popen[bytes]) -> None:
        """End the JVM that writes the archive, and wait until it has.

        Args:
            java: its process, which ends when its standard input is closed.
        """
        # Ctrl+C ends this process at once; Java ignores it and finishes the file
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        print(
            f"Java writes its archive of classes (once, it takes some seconds): {self.file}",
            file=sys.stderr,
        )
        assert java.stdin is not None  # PySpark opens it
        java.stdin.close()
        try:
            java.wait(_WRITING_SECONDS)
        except TimeoutExpired:
            java.kill()
        if not _is_complete(self.file):
            print(
                f"Java did not write {self.file}: Spark's log may say why. Fix: unset "
                f"{FOLDER}, or see docs/operations.md for what an archive needs.",
                file=sys.stderr,
            )


def class_archive(parameters: Mapping[str, Any]) -> ClassArchive | None:
    """The archive for a JVM that this process launches; None without a folder of archives.

    Raises:
        ClassArchiveError: the folder cannot be used.
    """
    given = os.environ.get(FOLDER)
    if not given:
        return None
    folder = Path(given).expanduser().resolve()
    if any(character in str(folder) for character in _REFUSED):
        raise ClassArchiveError(
            f"{FOLDER} is {given!r}. Allowed: a folder without {' '.join(_REFUSED)} in its path. "
            "Fix: name another folder, or unset the variable."
        )
    file = folder / f"{_name(parameters)}.jsa"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return ClassArchive(file, _is_complete(file))
    except OSError as error:
        raise ClassArchiveError(
            f"{FOLDER} is {given!r}, which cannot be used: {error}. Allowed: a folder that this "
            "user may read and write. Fix: name another folder, or unset the variable."
        ) from error


def _name(parameters: Mapping[str, Any]) -> str:
    """PySpark's version, and a hash of what Java compares with the archive when it starts."""
    import pyspark

    java = os.environ.get("JAVA_HOME") or _home_of(shutil.which("java"))
    release = Path(java) / "release"
    spark = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    jars = sorted((spark / "jars").glob("*.jar"))
    parts = (
        str(Path(java).resolve()),
        release.read_text(encoding="utf-8") if release.is_file() else "",
        [(str(jar), jar.stat().st_size, jar.stat().st_mtime_ns) for jar in jars],
        [os.environ.get(name) for name in _VARIABLES],
        [str(parameters.get(name)) for name in _PARAMETERS],
    )
    return f"spark-{pyspark.__version__}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}"


def _home_of(program: str | None) -> str:
    return str(Path(program).resolve().parents[1]) if program else ""


def _is_complete(file: Path) -> bool:
    if not file.exists():
        return False
    with file.open("rb") as archive:
        return archive.read(len(_MAGIC)) == _MAGIC
