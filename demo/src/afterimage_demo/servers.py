"""Servers that a demo starts on this machine: their ports on loopback, and waiting for them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on, all different."""
    with ExitStack() as held:
        # all are held until all are known, or two could be the same
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def wait_until_started(
    name: str,
    process: subprocess.Popen[bytes],
    works: Callable[[], object],
    log: Path,
    error: type[Exception],
    seconds: float = 60,
) -> None:
    """Return once a server works; raise `error` with the end of its log if it does not.

    Args:
        works: true if it does; false or `error` if it does not yet.
    """

    def has_ended_or_works() -> bool:
        try:
            return process.poll() is not None or bool(works())
        except error:
            return False

    if not is_true_within(seconds, has_ended_or_works) or process.poll() is not None:
        text = log.read_text(encoding="utf-8", errors="replace")
        raise error(f"{name} did not start. Its last lines:\n{text[-2000:]}")


def install_if_missing(
    package: str, find: Callable[[], object], error: type[Exception], folder: Path
) -> None:
    """As root on Debian or Ubuntu, install a server where there is none.

    Args:
        package: of Debian.
        find: raises `error` if the server is missing.
        folder: where apt-get writes its log.
    """
    try:
        find()
    except error:
        may_install = os.getuid() == 0 and not os.environ.get("AFTERIMAGE_NO_INSTALL")
        if not may_install or shutil.which("apt-get") is None:
            return
        with (folder / "apt.log").open("wb") as out:
            for arguments in (["update"], ["install", "--yes", package]):
                subprocess.run(
                    ["apt-get", *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
                    check=False,
                )


def is_listening(port: int) -> bool:
    """Whether a process on this machine listens on a port."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def is_true_within(seconds: float, condition: Callable[[], bool]) -> bool:
    """Whether a condition holds within some seconds; it is evaluated every 0.2 s."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.2)
    return False
