"""Registers what macros call on the adapter, and what each call answers while dbt parses."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import entry_points
from typing import Any, TypeVar

from dbt_common.exceptions import DbtRuntimeError

from dbt_afterimage.errors import explained

ENTRY_POINTS = "afterimage.macro_api"
"""Group of entry points with methods of other distributions, such as the demo."""

_Method = TypeVar("_Method", bound=Callable[..., Any])


@dataclass(frozen=True)
class MacroMethod:
    """A function that macros may call.

    Attributes:
        function: takes dbt's adapter first, then what the macro passes.
        while_parsing: what the macro gets instead while dbt only parses.
    """

    function: Callable[..., Any]
    while_parsing: Any = None


_methods: dict[str, MacroMethod] = {}


def macro_method(while_parsing: Any = None) -> Callable[[_Method], _Method]:
    """Decorator: macros may call this function, by its name.

    Args:
        while_parsing: what a macro gets while dbt parses, when nothing is called: there is no
            session yet, and dbt's graph is empty.
    """

    def register(function: _Method) -> _Method:
        _methods[function.__name__] = MacroMethod(function, while_parsing)
        return function

    return register


def macro_function(function: Callable[..., Any], while_parsing: Any = None) -> None:
    """Let macros call a function that needs no adapter, by its name; see `macro_method`."""
    _methods[function.__name__] = MacroMethod(
        lambda _, *args, **kwargs: function(*args, **kwargs), while_parsing
    )


def find_method(name: str) -> MacroMethod:
    """The method of this name.

    Raises:
        AttributeError: there is none.
    """
    if name not in _methods:
        for entry in entry_points(group=ENTRY_POINTS, name=name):
            _methods[name] = MacroMethod(entry.load())
    if name not in _methods:
        raise AttributeError(f"no method of afterimage is called {name!r}")
    return _methods[name]


class MacroApi:
    """`adapter.afterimage` in a macro that runs."""

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(find_method(name).function, self._adapter)


class ParsingMacroApi:
    """`adapter.afterimage` in a macro while dbt parses."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        answer = find_method(name).while_parsing
        # a copy, so that what one macro puts into it is not there for the next
        return lambda *args, **kwargs: copy.copy(answer)


@contextmanager
def dbt_errors(*ours: type[Exception]) -> Iterator[None]:
    """Raises errors of ours and of Spark as `DbtRuntimeError`."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from dbt_afterimage.spark.session import why_java_ended

    try:
        yield
    except ours as error:
        raise DbtRuntimeError(str(error)) from error
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise DbtRuntimeError(why_java_ended(error) or explained(str(error))) from error
