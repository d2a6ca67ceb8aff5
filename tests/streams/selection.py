"""The shapes that tests run over, and the streams of a shape: the same ones in every run."""

from __future__ import annotations

import pytest

from tests.streams.shapes import FEW, LARGE_SUITE, SHAPES, Shape
from tests.streams.tables import StreamTable


def chosen_shapes(config: pytest.Config, *, few: bool = False) -> list[Shape]:
    """Those that options name, by default a few of them, or all but those of the large suite."""
    named = config.getoption("--shapes")
    if named:
        return [shape for shape in SHAPES if shape.name in named.split(",")]
    if config.getoption("--all-shapes"):
        return list(SHAPES)
    if few or config.getoption("--few-shapes"):
        return [shape for shape in SHAPES if shape.name in FEW]
    return [shape for shape in SHAPES if shape.name in FEW or shape.name not in LARGE_SUITE]


MANY_STREAMS = 100
"""From this many streams of a shape on, tests spend their time on rows, not on plans."""


def has_many_streams(config: pytest.Config) -> bool:
    """Whether Spark has to run as it does for a user's batches."""
    return stream_count(config) >= MANY_STREAMS


def stream_count(config: pytest.Config) -> int:
    """How many streams a shape has."""
    return int(config.getoption("--streams"))


def stream_table(shape: Shape | str, count: int) -> StreamTable:
    """The streams of a shape, which may be given by its name."""
    if isinstance(shape, str):
        (shape,) = [each for each in SHAPES if each.name == shape]
    return StreamTable(shape, count, SHAPES.index(shape) + 1)
