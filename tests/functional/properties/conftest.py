"""The shapes of streams that tests run over."""

from __future__ import annotations

import pytest

from tests.streams.selection import chosen_shapes
from tests.streams.shapes import IN_EACH_RUN, Shape
from tests.tiers import nightly


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "shape" in metafunc.fixturenames:
        shapes = chosen_shapes(metafunc.config, few=True)
        parameters = [shape if shape.name in IN_EACH_RUN else nightly(shape)[0] for shape in shapes]
        metafunc.parametrize("shape", parameters, ids=[shape.name for shape in shapes])


def shapes_of_selected_tests(request: pytest.FixtureRequest, parameter: str) -> set[str]:
    """Names of the shapes that tests of this file run over, after `-m` and `-k`."""
    items = [item for item in request.session.items if item.path == request.path]
    # a test without parameters has no `callspec`
    parameters = [item.callspec.params for item in items if hasattr(item, "callspec")]
    values = [given[parameter] for given in parameters if parameter in given]
    return {value.name if isinstance(value, Shape) else str(value) for value in values}
