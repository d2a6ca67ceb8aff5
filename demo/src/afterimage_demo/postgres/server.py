"""A PostgreSQL server of its own: one process on loopback, for the demo and tests.

Its programs are those of the operating system's package.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from afterimage_demo.servers import free_ports, install_if_missing, wait_until_started

_INSTALLED = Path("/usr/lib/postgresql")
"""Debian's folder of versions."""
_USER = "postgres"
_OPTIONS = {
    "listen_addresses": "127.0.0.1",
    "wal_level": "logical",
    # nothing of it outlives the demo
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
}
_MISSING = """\
PostgreSQL is not installed: {programs} found neither in PATH nor below /usr/lib/postgresql. Fix:
install version 14 or later, then run the same command again.
  Debian or Ubuntu: sudo apt-get install postgresql
  Fedora or RHEL:   sudo dnf install postgresql-server postgresql-contrib
  macOS:            brew install postgresql@17"""


class PostgresError(RuntimeError):
    """PostgreSQL or what reads it does not work; the text is meant for the user."""


@dataclass(frozen=True)
class Database:
    """A database of a running server.

    Attributes:
        url: as libpq wants it.
    """

    url: str

    def query(self, statement: str) -> list[str]:
        """The rows of a statement as text, their columns joined by `|`."""
        return _run([program("psql"), *_QUIET, "-c", statement, self.url]).splitlines()

    def script(self, statements: str) -> None:
        """Run statements, each in a transaction of its own unless they say otherwise."""
        _run([program("psql"), *_QUIET, self.url], statements)

    def save(self, statement: str, path: Path) -> None:
        """Write the rows of a statement to a file."""
        _run([program("psql"), *_QUIET, "-c", statement, "-o", str(path), self.url])

    def pgbench(self, *arguments: str) -> None:
        """Run pgbench on the database."""
        _run([program("pgbench"), *arguments, self.url])


_QUIET = ("--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--set", "ON_ERROR_STOP=1")


def program(name: str) -> str:
    """The path of one of PostgreSQL's programs; of several versions the newest one.

    Raises:
        PostgresError: it is not installed.
    """
    # the folders first: Debian's psql and pgbench in PATH choose a version by cluster
    folders = sorted(_INSTALLED.glob("*/bin"), key=lambda folder: float(folder.parent.name))
    for folder in reversed(folders):
        if (folder / name).exists():
            return str(folder / name)
    found = shutil.which(name)
    if found is None:
        raise PostgresError(_MISSING.format(programs=name))
    return found


@contextmanager
def running_server(folder: Path) -> Iterator[Database]:
    """Start a server with an empty database `bank`; it is stopped in the end.

    Args:
        folder: where it has its files; must exist.

    Raises:
        PostgresError: it is not installed or does not start.
    """
    install_if_missing("postgresql", lambda: program("initdb"), PostgresError, folder)
    # before the user is looked up, who comes with the package
    initdb = program("initdb")
    data, log_file = folder / "postgres", folder / "postgres.log"
    data.mkdir()
    # PostgreSQL refuses to run as root
    user = _USER if os.getuid() == 0 else None
    if user is not None:
        for path in (folder, data):
            shutil.chown(path, user)
    where = ["-D", str(data), "-U", _USER, "-A", "trust"]
    _run([initdb, *where, "-E", "UTF8", "--locale", "C", "--no-sync"], user=user)
    (port,) = free_ports(1)
    options = [text for name, value in _OPTIONS.items() for text in ("-c", f"{name}={value}")]
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [program("postgres"), "-D", str(data), "-p", str(port), "-k", str(data), *options],
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            user=user,
        )
    try:
        server = Database(f"postgresql://{_USER}@127.0.0.1:{port}/postgres")
        wait_until_started(
            "PostgreSQL", process, lambda: server.query("select 1"), log_file, PostgresError
        )
        server.script("create database bank;")
        yield Database(f"postgresql://{_USER}@127.0.0.1:{port}/bank")
    finally:
        # at once, without waiting for clients
        process.send_signal(signal.SIGQUIT)
        process.wait()


def _run(arguments: Sequence[str], given: str | None = None, user: str | None = None) -> str:
    run = subprocess.run(
        arguments, input=given, capture_output=True, text=True, check=False, user=user, cwd="/"
    )
    if run.returncode:
        raise PostgresError(f"{Path(arguments[0]).name} failed:\n{run.stderr[-2000:]}")
    return run.stdout
