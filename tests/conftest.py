"""Options of pytest that tests of several folders share."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--streams", type=int, default=20, help="random streams of each shape")
    parser.addoption(
        "--all-shapes", action="store_true", help="all shapes of random streams, not some"
    )
    parser.addoption(
        "--few-shapes", action="store_true", help="only one shape of random streams of each kind"
    )
    parser.addoption("--shapes", default="", help="names of shapes of streams, joined by commas")
    parser.addoption(
        "--compiled",
        action="store_true",
        help="Spark compiles all plans, as a user's Spark does; otherwise it interprets most",
    )
