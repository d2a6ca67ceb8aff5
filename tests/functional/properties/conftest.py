"""The shapes that tests run over, and the streams of a shape: the same ones in every run."""

from __future__ import annotations

import pytest

from tests.functional.properties.stream_shapes import (
    FEW,
    IN_EACH_RUN,
    LARGE_SUITE,
    SHAPES,
    Shape,
)
from tests.functional.properties.stream_tables import StreamTable
from tests.tiers import nightly


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
        by_dbt = metafunc.definition.path.name == "test_batches.py"
        shapes = chosen_shapes(metafunc.config, few=by_dbt)
        parameters = [
            shape if shape.name in IN_EACH_RUN or not by_dbt else nightly(shape)[0]
            for shape in shapes
        ]
        metafunc.parametrize("shape", parameters, ids=[shape.name for shape in shapes])


def shapes_of_selected_tests(request: pytest.FixtureRequest, parameter: str) -> set[str]:
    """Names of the shapes that tests of this file run over, after `-m` and `-k`."""
    items = [item for item in request.session.items if item.path == request.path]
    # a test without parameters has no `callspec`
    parameters = [item.callspec.params for item in items if hasattr(item, "callspec")]
    values = [given[parameter] for given in parameters if parameter in given]
    return {value.name if isinstance(value, Shape) else str(value) for value in values}


@pytest.fixture
def stream_table(request: pytest.FixtureRequest, shape: Shape) -> StreamTable:
    """The streams of the test's `shape`."""
    return StreamTable(shape, int(request.config.getoption("--streams")), SHAPES.index(shape) + 1)
