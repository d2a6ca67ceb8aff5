"""What all benchmarks share: their options, and a clock."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def options_of(description: str | None) -> ArgumentParser:
    """Reads the options that every benchmark of tables has.

    Args:
        description: the module's docstring.
    """
    parser = ArgumentParser(description=description)
    parser.add_argument("--table-format", choices=("iceberg", "delta"), default="iceberg")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--results", type=Path, default=Path(".scratch/bench"))
    return parser


def write_result(folder: Path, name: str, text: str) -> None:
    """Write a file into the folder of --results."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def timed(action: Callable[[], T]) -> tuple[float, T]:
    """How many seconds an action takes, and what it returns."""
    began = time.perf_counter()
    result = action()
    return time.perf_counter() - began, result
