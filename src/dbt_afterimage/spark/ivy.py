"""Ivy, which fetches Spark's jars: one process at a time, and none runs before it was checked."""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from importlib.resources import files
from pathlib import Path
from typing import Any

from dbt_afterimage.errors import AfterimageError
from dbt_afterimage.spark.launch import launch_arguments, program

_FOLDER = ".ivy2.5.2"
"""Spark's folder for jars in the home that Java sees, unless `spark.jars.ivy` names another."""
_UNTRUSTED = "PKIX path building failed"
_PATIENCE_SECONDS = 600
_PAUSE_SECONDS = 0.2


class IvyError(AfterimageError):
    """Jars cannot be fetched, or one of them is not what it should be."""


def fetch_packages(settings: Mapping[str, Any]) -> None:
    """Fetch what `spark.jars.packages` names, unless it is there, and check it before it runs.

    Raises:
        IvyError: the jars cannot be fetched, or one has another hash than the known one.
    """
    if are_fetched(settings):
        return
    folder = _folder(settings)
    with alone(folder):
        if are_fetched(settings):  # another process was faster
            return
        with launch_arguments(settings) as arguments:
            # spark-submit fetches before it runs a class: this one only prints its version
            command = [program("spark-submit"), "--master", "local", *arguments]
            command += ["--class", "org.apache.ivy.Main", "spark-internal", "-version"]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            said = (run.stdout + run.stderr)[-2000:]
            fix = (
                "set JAVA_HOME to the folder of a Java 17 or 21, and let this machine reach Maven "
                "Central, or a mirror (`spark.jars.ivySettings`)"
            )
            if _UNTRUSTED in said:
                fix = (
                    "set JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=FILE, a trust store with the "
                    "authority of your network: Java does not trust the certificate that it gets, "
                    "as behind a proxy that decrypts"
                )
            raise IvyError(
                "Spark did not start: it cannot fetch "
                f"{settings.get('spark.jars.packages')} (`spark.jars.packages`). Fix: {fix}. "
                f"Spark's last lines:\n{said}"
            )
        check_jars(folder)


def check_jars(folder: Path) -> None:
    """Compare jars with the hashes that this package has of them; after a wrong one, delete all.

    Raises:
        IvyError: a jar has another hash.
    """
    for line in (files("dbt_afterimage.spark") / "jars.sha256").read_text("utf-8").splitlines():
        expected, name = line.split()
        jar = folder / "jars" / name
        if not jar.exists():
            continue
        found = hashlib.sha256(jar.read_bytes()).hexdigest()
        if found != expected:
            # all of them: with one jar missing, Spark would fetch that one without a check
            shutil.rmtree(jar.parent)
            raise IvyError(
                f"{jar} was fetched with the SHA-256 hash {found}; allowed: {expected}. Its folder "
                f"was deleted, and nothing was run. Fix: delete {folder / 'cache'} and run again; "
                "if the hash is wrong again, the repository that this machine fetches from, such "
                "as a mirror of Maven Central, has another file."
            )


@contextmanager
def alone(folder: Path | None = None) -> Iterator[None]:
    """While this lasts, no other process of afterimage fetches jars: if two do, both fail.

    Args:
        folder: Ivy's; by default the one in this user's home.

    Raises:
        IvyError: another process has been fetching for ten minutes.
    """
    folder = folder or _folder({})
    path = folder / "afterimage.lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:  # Ivy cannot write there either, and says why
        yield
        return
    try:
        _wait_for(lock, path)
        yield
    finally:
        os.close(lock)


def _wait_for(lock: int, path: Path) -> None:
    started = time.monotonic()
    is_said = False
    while True:
        try:
            return flock(lock, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            if time.monotonic() - started > _PATIENCE_SECONDS:
                raise IvyError(
                    f"Another process has held {path} for {_PATIENCE_SECONDS} seconds, which it "
                    "does while it fetches Spark's jars. Fix: end the process that `fuser` or "
                    "`lsof` names for this file, and run again."
                ) from None
        except OSError:  # a network file system without locks
            return None
        if not is_said:
            print("Waiting for another process that fetches Spark's jars.", file=sys.stderr)
            is_said = True
        time.sleep(_PAUSE_SECONDS)


def are_fetched(parameters: Mapping[str, Any]) -> bool:
    """Whether Spark will fetch nothing for `spark.jars.packages`."""
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
