"""A run's context with plain names, for tests that need few of its fields."""

from __future__ import annotations

from typing import Any

from dbt_afterimage.run_context import RunContext


def run_context(**given: Any) -> RunContext:
    plain = {
        "model": "things",
        "log": "log",
        "progress": "progress",
        "file_format": "iceberg",
        "settings": {},
    }
    return RunContext(**{**plain, **given})
