"""Which rules of history a stream exercises, so that a test of many streams can show its coverage.

A rule is exercised when it decided something that can be seen in the expected history, not when it
could have been applied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations

from tests.oracle.history import LogRow, TableOptions, Version, key_of, previous_key_of
from tests.streams.tables import Stream, StreamTable

RULES = ("R1", "R2", "R3", "R4", "R5", "R6", "R7", "R7 permutation", "R8", "R9", "R10", "R11")


def rules_of(table: StreamTable, stream: Stream, history: Sequence[Version]) -> set[str]:
    """The rules that a stream exercises."""
    options = table.shape.options
    opened = {(key_of(version.data, options), version.valid_from_seq) for version in history}
    changes = [row for row in stream.log if row.data is not None and row.change_oper != "L"]
    places = Counter((row.change_seq, key_of(row.data or {}, options)) for row in changes)
    found = {
        "R1": any(count > 1 for count in places.values()),
        "R2": any(v.opened_by == "U" and v.changed_columns is None for v in history),
        "R3": any(v.opened_by in "UL" and v.changed_columns for v in history),
        "R4": any(
            row.change_oper == "U"
            and previous_key_of(row, options) is None
            and (key_of(row.data or {}, options), row.change_seq) not in opened
            and _open_at(history, row, options)
            for row in changes
        ),
        "R5": any(v.closed_by == "D" for v in history),
        "R6": any(v.closed_by == "T" for v in history),
        "R7": any(v.opened_by == "K" for v in history),
        "R7 permutation": any(
            # a departure, after which another row is still open on the key
            previous_key_of(row, options) is not None
            and _open_at(history, row, options, previous_key_of(row, options))
            for row in changes
        ),
        "R8": any(row.change_oper == "L" and row.data is not None for row in stream.log),
        "R9": any(
            row.known_columns is not None
            and row.change_oper == "U"
            and (key_of(row.data or {}, options), row.change_seq) in opened
            for row in changes
        ),
        "R10": any(
            row.changed_at is not None
            and (key_of(row.data or {}, options), row.change_seq) in opened
            and _valid_from(history, row, options) != row.changed_at
            for row in changes
        ),
        "R11": _has_late(stream),
    }
    return {rule for rule, is_exercised in found.items() if is_exercised}


def _open_at(
    history: Iterable[Version], row: LogRow, options: TableOptions, key: object = None
) -> bool:
    """Whether a version of the key, by default the row's, goes on over the row's position."""
    key = key or key_of(row.data or {}, options)
    return any(
        key_of(version.data, options) == key
        and version.valid_from_seq < row.change_seq
        and (version.valid_to_seq is None or row.change_seq < version.valid_to_seq)
        for version in history
    )


def _valid_from(history: Iterable[Version], row: LogRow, options: TableOptions) -> object:
    key = key_of(row.data or {}, options)
    return next(
        version.valid_from
        for version in history
        if key_of(version.data, options) == key and version.valid_from_seq == row.change_seq
    )


def _has_late(stream: Stream) -> bool:
    """Whether a change comes in a later batch than one that is newer."""
    newest_before = ""
    for batch in range(1, max(stream.batches, default=0) + 1):
        own = [
            row.change_seq
            for row, of_batch in zip(stream.log, stream.batches, strict=True)
            if of_batch == batch
        ]
        if own and min(own) < newest_before:
            return True
        newest_before = max([newest_before, *own])
    return False


class RuleCounts:
    """How many streams exercise each rule, and each pair of rules."""

    def __init__(self) -> None:
        self.streams = 0
        self.changes: list[int] = []
        self.single: Counter[str] = Counter()
        self.pairs: Counter[tuple[str, str]] = Counter()

    def add(self, stream: Stream, rules: set[str]) -> None:
        """Count a stream."""
        self.streams += 1
        self.changes.append(len(stream.log))
        self.single.update(rules)
        self.pairs.update(combinations([rule for rule in RULES if rule in rules], 2))

    def table(self) -> str:
        """One line per rule: its number of streams, and those with each of the other rules."""
        lines = [
            f"{self.streams} streams of {min(self.changes)} to {max(self.changes)} changes;"
            " streams that exercise a rule, and both of two rules",
            " " * 16 + "".join(f"{rule[:6]:>7}" for rule in RULES),
        ]
        for rule in RULES:
            cells = [
                self.single[rule]
                if rule == other
                else self.pairs[
                    min(rule, other, key=RULES.index), max(rule, other, key=RULES.index)
                ]
                for other in RULES
            ]
            lines.append(f"{rule:<16}" + "".join(f"{cell:>7}" for cell in cells))
        return "\n".join(lines)

    def _both(self, one: str, other: str) -> int:
        return self.pairs[one, other] + self.pairs[other, one]

    def too_rare(self, single: float, pair: float) -> list[str]:
        """Rules and pairs that fewer than these shares of all streams exercise."""
        rare = [rule for rule in RULES if self.single[rule] < single * self.streams]
        rare += [
            f"{one} with {other}"
            for one, other in combinations(RULES, 2)
            if self.pairs[one, other] < pair * self.streams
        ]
        return rare
