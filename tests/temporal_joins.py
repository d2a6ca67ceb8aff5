"""Random histories of several tables of one task, and what a join of them in time must give.

The oracle knows no intervals: it evaluates all tables at each instant, joins their rows, and then
puts runs of instants with the same rows together.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from tests.macro_renderer import MacroRenderer

START = datetime(2026, 3, 2)
TABLES = ("orders", "customers", "countries")
BY_TIME, BY_SEQ = ("valid_from", "valid_to"), ("valid_from_seq", "valid_to_seq")
VERSION_COLUMNS = ("stream", "id", "other_id", "name", *BY_TIME, *BY_SEQ)

Version = dict[str, Any]
Histories = dict[str, list[Version]]


class Relation(str):
    """A table as dbt gives it to a macro."""

    @property
    def identifier(self) -> str:
        return self.split(".")[-1]


def renderer(
    tasks: Mapping[str, str | None],
    keys: Mapping[str, Sequence[str]] | None = None,
    columns: Mapping[str, Sequence[str]] | None = None,
) -> MacroRenderer:
    """Renders macros that query histories `<name>_history`.

    Args:
        tasks: name of each history -> its setting `task`.
        keys: name of each history -> its key; by default (stream, id).
        columns: name of each history -> its columns besides the surrogate key; by default
            `VERSION_COLUMNS`.
    """
    keys = keys or dict.fromkeys(tasks, ("stream", "id"))
    columns = columns or dict.fromkeys(tasks, VERSION_COLUMNS)
    return MacroRenderer(
        _settings_of_relation=lambda table: {"key": list(keys[table]), "task": tasks[table]},
        _raw_columns=lambda table: [
            {"name": name} for name in (f"{table.identifier}_id", *columns[table])
        ],
    )


def random_histories(
    seed: int, stream: int, clock_runs_back: bool = False, unit: timedelta = timedelta(seconds=1)
) -> Histories:
    """Histories of `orders`, `customers` and `countries` from random changes in one order.

    `other_id` of a table is the key of a row of the next table, or NULL. Changes may share a time.
    """
    chooser = random.Random(seed)
    histories: Histories = {name: [] for name in TABLES}
    open_versions: dict[tuple[str, int], Version] = {}
    units = 0
    for change in range(chooser.randint(1, 40)):
        units += chooser.choice([-2, 0, 1] if clock_runs_back else [0, 1, 1])
        table, key = chooser.choice(list(histories)), chooser.randint(1, 3)
        seq, time = f"{change:04d}", START + units * unit
        # the times of one key never run back
        times = [v[end] for v in histories[table] if v["id"] == key for end in BY_TIME if v[end]]
        time = max([time, *times])
        before = open_versions.pop((table, key), None)
        if before:
            before.update(valid_to=time, valid_to_seq=seq)
        if before is None or chooser.random() < 0.7:
            version = {
                f"{table}_history_id": f"{table}-{stream}-{change}",
                "stream": stream,
                "id": key,
                "other_id": chooser.choice([1, 2, 3, 3, None]),
                "name": f"{table}{change}",
                **{"valid_from": time, "valid_to": None},
                **{"valid_from_seq": seq, "valid_to_seq": None},
            }
            histories[table].append(version)
            open_versions[table, key] = version
    return histories


@dataclass(frozen=True)
class Side:
    """A joined side: rows match where `on` says so."""

    history: str
    on: Mapping[str, str]
    is_left: bool = True
    prefix: str = ""


def expected(
    histories: Histories, base: str, sides: Sequence[Side], bounds: tuple[str, str]
) -> list[tuple[Any, ...]]:
    """Rows (id of the base's version, id of each side's version, begin, end) of a join in time."""
    begin, end = bounds
    instants = sorted(
        {v[bound] for versions in histories.values() for v in versions for bound in bounds} - {None}
    )

    def at(table: str, instant: Any) -> Iterator[Version]:
        for version in histories[table]:
            if version[begin] <= instant and (version[end] is None or instant < version[end]):
                yield version

    present: dict[tuple[Any, ...], list[int]] = {}
    for number, instant in enumerate(instants):
        rows: list[list[tuple[str, str, Version]]] = [
            [(base, "", version)] for version in at(base, instant)
        ]
        for side in sides:
            rows = [
                [*row, (side.history, side.prefix, match)]
                for row in rows
                for match in _matches(row, side, list(at(side.history, instant)))
            ]
        for row in rows:
            ids = tuple(version.get(f"{table}_history_id") for table, _, version in row)
            present.setdefault(ids, []).append(number)
    return [
        (*ids, instants[run[0]], instants[run[-1] + 1] if run[-1] + 1 < len(instants) else None)
        for ids, numbers in present.items()
        for run in _runs(numbers)
    ]


def _matches(row: Sequence[Any], side: Side, candidates: list[Version]) -> list[Version]:
    known = {f"{prefix}{name}": value for _, prefix, v in row for name, value in v.items()}
    found = [
        version
        for version in candidates
        if all(
            known.get(ours) is not None and known[ours] == version[theirs]
            for ours, theirs in side.on.items()
        )
    ]
    return found or ([{}] if side.is_left else [])


def _runs(numbers: Sequence[int]) -> Iterator[list[int]]:
    """Consecutive numbers."""
    for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        yield [number for _, number in run]


Run = Callable[[str], list[Any]]
"""Runs a query and returns its rows."""

STREAM = {"stream": "stream"}
CUSTOMERS = Side("customers", {**STREAM, "other_id": "id"}, prefix="customer_")
COUNTRIES = Side("countries", {**STREAM, "customer_other_id": "id"}, prefix="country_")
ORDERS = Side("orders", {**STREAM, "id": "other_id"}, prefix="order_")

JOINS: dict[str, tuple[str, list[Side]]] = {
    "two": ("orders", [CUSTOMERS]),
    "two_inner": ("orders", [Side("customers", CUSTOMERS.on, False, "customer_")]),
    "chain_of_three": ("orders", [CUSTOMERS, COUNTRIES]),
    "star_of_three": (
        "orders",
        [CUSTOMERS, Side("countries", {**STREAM, "id": "id"}, False, "country_")],
    ),
    "several_rows": ("customers", [ORDERS]),
    "several_rows_inner": ("customers", [Side("orders", ORDERS.on, False, "order_")]),
    "several_rows_of_three": (
        "customers",
        [ORDERS, Side("countries", {**STREAM, "other_id": "id"})],
    ),
}
"""Name -> the base, and the joined sides."""


def query(name: str, by: str) -> str:
    """The statement of one of `JOINS`: rows as those of `expected`, with the stream."""
    base, sides = JOINS[name]
    bounds = BY_SEQ if by == "change_seq" else BY_TIME
    statement = renderer(
        {f"{table}_history": None for table in ("orders", "customers", "countries")}
    )(
        "temporal_join",
        base=Relation(f"{base}_history"),
        joins=[
            {
                "relation": Relation(f"{side.history}_history"),
                "on": dict(side.on),
                "how": "left" if side.is_left else "inner",
                "columns": ["other_id"] if side.prefix else [],
                "prefix": side.prefix,
                "many": "other_id" in side.on.values(),
            }
            for side in sides
        ],
        by=by,
    )
    ids = [f"{side.prefix}{side.history}_history_id" for side in sides]
    return (
        f"select {', '.join([f'{base}_history_id', *ids, *bounds])}, stream, is_current,"
        f" valid_from, valid_to from {statement} as joined"
    )


def assert_equals_oracle(streams: Sequence[Histories], name: str, by: str, run: Run) -> int:
    """Compares a join of random streams with the oracle; returns the number of rows."""
    base, sides = JOINS[name]
    bounds = BY_SEQ if by == "change_seq" else BY_TIME
    actual: dict[int, list[tuple[Any, ...]]] = {}
    for row in map(tuple, run(query(name, by))):
        values = tuple(_naive(value) for value in row)
        ends = values[len(sides) + 2]
        stream, is_current, valid_from, valid_to = values[len(sides) + 3 :]
        assert is_current is (ends is None)
        assert valid_from <= valid_to if ends is not None else valid_to is None
        actual.setdefault(stream, []).append(values[: len(sides) + 3])
    count = 0
    for number, histories in enumerate(streams):
        wanted = expected(histories, base, sides, bounds)
        assert sorted(actual.get(number, []), key=str) == sorted(wanted, key=str), (
            f"stream {number}"
        )
        count += len(wanted)
    return count


def _naive(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value
