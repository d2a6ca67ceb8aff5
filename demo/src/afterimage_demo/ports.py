"""Ports on loopback for the servers that a demo starts."""

from __future__ import annotations

import socket
from contextlib import ExitStack


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on, all different."""
    with ExitStack() as held:
        # all are held until all are known, or two could be the same
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
