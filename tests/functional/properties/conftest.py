"""The shapes that tests run over, and the streams of a shape: the same ones in every run."""

from __future__ import annotations

import pytest

from tests.functional.properties.stream_tables import SHAPES, Shape, StreamTable

FEW = ("live_late", "unknown", "unknown_ignored", "no_before_images")
"""Shapes that between them have everything, for tests that take minutes for a shape."""


def chosen_shapes(config: pytest.Config, *, few: bool) -> list[Shape]:
    """All shapes, or a few of them unless `--all-shapes` is given."""
    if not few or config.getoption("--all-shapes"):
        return list(SHAPES)
    return [shape for shape in SHAPES if shape.name in FEW]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "shape" in metafunc.fixturenames:
        few = metafunc.definition.path.name == "test_batches.py"
        shapes = chosen_shapes(metafunc.config, few=few)
        metafunc.parametrize("shape", shapes, ids=[shape.name for shape in shapes])


@pytest.fixture
def stream_table(request: pytest.FixtureRequest, shape: Shape) -> StreamTable:
    """The streams of the test's `shape`."""
    return StreamTable(shape, int(request.config.getoption("--streams")), SHAPES.index(shape) + 1)
