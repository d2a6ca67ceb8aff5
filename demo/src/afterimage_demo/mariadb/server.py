"""A MariaDB server of its own: one process on loopback, whose programs are the system's."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from afterimage_demo.servers import free_ports, install_if_missing, wait_until_started

SCHEMA = "parcel_service"
BINLOGS = "mysql-bin-changelog"
"""The binlogs' name on Amazon RDS."""
_USER = "mysql"
_OPTIONS = {
    "bind-address": "127.0.0.1",
    "server-id": "1",
    "log-bin": BINLOGS,
    "binlog-format": "row",
    "binlog-row-image": "full",
    "character-set-server": "utf8mb4",
    # many files
    "max-binlog-size": "65536",
    # zero dates, as older databases have them
    "sql-mode": "",
    # nothing of it outlives the demo
    "innodb-flush-log-at-trx-commit": "0",
    "innodb-buffer-pool-size": "32M",
}
_SESSION = f"create database if not exists {SCHEMA}; use {SCHEMA}; set time_zone = '+00:00';"
_MISSING = """\
MariaDB is not installed: {program} is not in PATH. Fix: install version 10.6 or later, then run the
same command again.
  Debian or Ubuntu: sudo apt-get install mariadb-server
  Fedora or RHEL:   sudo dnf install mariadb-server"""


class MariaDbError(RuntimeError):
    """MariaDB does not work; the text is meant for the user."""


@dataclass(frozen=True)
class Database:
    """The database of a running server.

    Attributes:
        url: with its port on loopback; its user `root` has no password.
    """

    url: str

    @property
    def port(self) -> int:
        """Its port on loopback."""
        return urlsplit(self.url).port or 3306

    def run(self, statements: str) -> list[str]:
        """Run statements; the rows that they give as text, their columns joined by tabs."""
        arguments = ["--host=127.0.0.1", f"--port={self.port}", "--user=root"]
        arguments += ["--batch", "--raw", "--skip-column-names"]
        arguments += ["--default-character-set=utf8mb4"]
        run = subprocess.run(
            [_program("mariadb"), "--no-defaults", *arguments],
            input=f"{_SESSION}\n{statements}",
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode:
            raise MariaDbError(f"mariadb failed:\n{run.stderr[-2000:]}")
        return run.stdout.splitlines()


@contextmanager
def running_server(folder: Path) -> Iterator[Database]:
    """Start a server; it is killed in the end.

    Args:
        folder: where it has its files; must exist.

    Raises:
        MariaDbError: it is not installed or does not start.
    """
    install_if_missing("mariadb-server", lambda: _program("mariadbd"), MariaDbError, folder)
    # before the user is looked up, who comes with the package
    install_db, mariadbd = _program("mariadb-install-db"), _program("mariadbd")
    data, log_file = folder / "mariadb", folder / "mariadb.log"
    data.mkdir()
    user = _USER if os.getuid() == 0 else None
    if user is not None:
        for path in (folder, data):
            shutil.chown(path, user)
    where = ["--no-defaults", f"--datadir={data}"]
    install = ["--auth-root-authentication-method=normal", "--skip-test-db"]
    done = subprocess.run(
        [install_db, *where, *install],
        capture_output=True,
        text=True,
        check=False,
        user=user,
        cwd="/",
    )
    if done.returncode:
        raise MariaDbError(f"mariadb-install-db failed:\n{done.stderr[-2000:]}")
    (port,) = free_ports(1)
    options = [f"--{name}={value}" for name, value in _OPTIONS.items()]
    options += [f"--port={port}", f"--socket={data / 'socket'}"]
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [mariadbd, *where, *options],
            stdout=log,
            stderr=subprocess.STDOUT,
            user=user,
            cwd="/",
        )
    try:
        server = Database(f"mariadb://root@127.0.0.1:{port}/{SCHEMA}")
        wait_until_started(
            "MariaDB", process, lambda: server.run("select 1"), log_file, MariaDbError
        )
        yield server
    finally:
        process.kill()
        process.wait()


def _program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise MariaDbError(_MISSING.format(program=name))
    return found
