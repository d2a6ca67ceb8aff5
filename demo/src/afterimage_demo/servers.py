"""Servers that a demo starts on this machine: their ports on loopback, and waiting for them."""

from __future__ import annotations

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
    works: Callable[[], bool],
    log: Path,
    error: type[RuntimeError],
    seconds: float = 60,
) -> None:
    """Return once a server works; raise `error` with the end of its log if it does not."""
    has_started = is_true_within(seconds, lambda: process.poll() is not None or works())
    if not has_started or process.poll() is not None:
        text = log.read_text(encoding="utf-8", errors="replace")
        raise error(f"{name} did not start. Its last lines:\n{text[-2000:]}")


def is_true_within(seconds: float, condition: Callable[[], bool]) -> bool:
    """Whether a condition becomes true in time; it is asked five times a second."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.2)
    return False
