"""Frees Java objects that Python no longer uses, such as plans with the tables that they broadcast.

Py4j lets go of one when Python collects its proxy. Each proxy is in a cycle (with the methods that
were called on it), and in a process with many objects, such as dbt with a large project, Python
rarely collects cycles among old ones. Over some hundred models the driver's memory filled up.
"""

from __future__ import annotations

import gc
from threading import Lock

_AT_ONCE = 5_000
"""New proxies after which Python collects cycles: half a second with 300,000 objects."""

_lock = Lock()
_next_at = _AT_ONCE


def free_unused_java_objects() -> None:
    """Free them once there are many new ones. Over Spark Connect there are none."""
    global _next_at  # noqa: PLW0603 - one per process, as py4j's register is
    from py4j.finalizer import ThreadSafeFinalizer

    proxies = ThreadSafeFinalizer.finalizers
    with _lock:
        if len(proxies) < _next_at:
            return
        gc.collect()
        _next_at = len(proxies) + _AT_ONCE
