"""The shapes that tests run over, and the streams of a shape: the same ones in every run."""

from __future__ import annotations

import pytest

from tests.functional.properties.stream_shapes import FEW, LARGE_SUITE, SHAPES, Shape
from tests.functional.properties.stream_tables import StreamTable


def chosen_shapes(config: pytest.Config, *, few: bool) -> list[Shape]:
    """Those that options name, by default a few of them, or all but those of the large suite."""
    named = config.getoption("--shapes")
    if named:
        return [shape for shape in SHAPES if shape.name in named.split(",")]
    if config.getoption("--all-shapes"):
        return list(SHAPES)
    if few:
        return [shape for shape in SHAPES if shape.name in FEW]
    return [shape for shape in SHAPES if shape.name in FEW or shape.name not in LARGE_SUITE]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "shape" in metafunc.fixturenames:
        few = metafunc.definition.path.name == "test_batches.py"
        shapes = chosen_shapes(metafunc.config, few=few)
        metafunc.parametrize("shape", shapes, ids=[shape.name for shape in shapes])


@pytest.fixture
def stream_table(request: pytest.FixtureRequest, shape: Shape) -> StreamTable:
    """The streams of the test's `shape`."""
    return StreamTable(shape, int(request.config.getoption("--streams")), SHAPES.index(shape) + 1)
