"""Ivy, which fetches Spark's jars: if two processes fetch at once, both fail."""

from __future__ import annotations

import os
import pwd
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_UN, flock
from pathlib import Path
from typing import Any

_FOLDER = ".ivy2.5.2"
"""Spark's folder for jars in the home that Java sees, unless `spark.jars.ivy` names another."""


@contextmanager
def alone() -> Iterator[int]:
    """While this lasts, no other process of this user fetches jars.

    Yields:
        The lock, a file descriptor.
    """
    path = Path(tempfile.gettempdir()) / f"afterimage_jars_{os.getuid()}.lock"
    with path.open("w") as held:
        flock(held, LOCK_EX)
        yield held.fileno()


@contextmanager
def alone_to_launch(parameters: Mapping[str, Any]) -> Iterator[None]:
    """While Spark is launched, no other process fetches jars, unless Spark has all it needs.

    Args:
        parameters: settings of the session.
    """
    with alone() as held:
        if are_fetched(parameters):
            flock(held, LOCK_UN)
        yield


def are_fetched(parameters: Mapping[str, Any]) -> bool:
    """Whether Spark will fetch nothing for `spark.jars.packages`.

    Args:
        parameters: settings of the session.
    """
    packages = str(parameters.get("spark.jars.packages") or "")
    names = [text.strip().replace("/", ":").split(":") for text in packages.split(",")]
    jars = _folder(parameters) / "jars"
    # as Spark names the files; whatever else it accepts counts as missing
    return all(
        not any(name) or (jars / f"{'_'.join(name[:2])}-{name[-1]}.jar").exists() for name in names
    )


def _folder(parameters: Mapping[str, Any]) -> Path:
    if folder := parameters.get("spark.jars.ivy"):
        return Path(str(folder))
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir) / _FOLDER
    except KeyError:  # a container with a user who has no name, and perhaps no home
        return Path(os.environ.get("HOME", "")) / _FOLDER
