"""Parameters of a test that only the nightly run takes."""

from __future__ import annotations

from typing import Any

import pytest


def nightly(*values: Any) -> list[Any]:
    """Parameters: `[17, *nightly(22, 73)]`; a tuple has the values of several parameters."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.nightly)
        for value in values
    ]
