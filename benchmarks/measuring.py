"""What all benchmarks share: command line options, a result writer and a timer."""

from __future__ import annotations

import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


FORMATS = ("iceberg", "delta")


def common_options(description: str | None, formats: Sequence[str] = FORMATS) -> ArgumentParser:
    """A parser with the options that every benchmark of tables has.

    Args:
        description: the module's docstring.
        formats: the table formats that it can measure.
    """
    parser = ArgumentParser(description=description, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--table-format", choices=formats, default="iceberg")
    parser.add_argument("--repeats", type=int, default=3, help="repeats; figures are their medians")
    parser.add_argument(
        "--results", type=Path, default=Path(".scratch/bench"), help="folder for the results"
    )
    return parser


def write_result(folder: Path, name: str, text: str) -> None:
    """Write a file to the results folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def timed(action: Callable[[], T]) -> tuple[float, T]:
    """The seconds that an action takes, and its return value."""
    started = time.perf_counter()
    result = action()
    return time.perf_counter() - started, result
