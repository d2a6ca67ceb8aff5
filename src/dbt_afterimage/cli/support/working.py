"""Shows on a terminal that a command is still working; prints nothing anywhere else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PATIENCE_SECONDS = 2.0
_shown: list[Callable[[str], None]] = []
"""Replaces the text of the line that is shown, or will be, while work lasts."""


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """While this lasts and after two seconds, a line on the terminal names the work.

    It is written to standard error, so that standard output holds the result only. Work that is a
    part of other work replaces the text of the line.

    Args:
        what: the work, such as "Reading the raw schema".

    Yields:
        A function that replaces the line's text, for the next step.
    """
    from rich.console import Console

    if _shown:
        _shown[-1](what)
        yield _shown[-1]
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: None
        return
    status = console.status(what)
    # also before the status is shown, so that it starts with the step that then runs
    timer = threading.Timer(_PATIENCE_SECONDS, status.start)
    timer.start()
    _shown.append(status.update)
    try:
        yield status.update
    finally:
        _shown.pop()
        timer.cancel()
        timer.join()
        status.stop()
