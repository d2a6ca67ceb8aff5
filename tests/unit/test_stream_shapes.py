"""The random streams have the content that they declare; tested without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from itertools import combinations, product

import pytest

from tests.oracle.base_tables import tells_moved_rows
from tests.oracle.history import LogRow
from tests.oracle.streams import START
from tests.streams.rule_counts import RuleCounts, rules_of
from tests.streams.selection import chosen_shapes, stream_count, stream_table
from tests.streams.shapes import FEW, MIXED, SHAPES, Shape

STREAMS = 60


def features(shape: Shape) -> dict[str, object]:
    """What the issue of combinations is about: the kinds of things that tables have."""
    return {
        "base": shape.base,
        "selection": "track" if shape.tracks else "ignore" if shape.ignores else None,
        "loads": "load" in dict(shape.events).values(),
        "keep_deleted": shape.keep_deleted,
        "lobs": bool(shape.lobs),
        "columns": bool(shape.gains and shape.drops),
    }


def circumstances(shape: Shape) -> dict[str, object]:
    """Under which their changes come."""
    return {
        "late events": shape.has_late_events,
        "clocks": shape.good_clocks,
        "cut transactions": shape.cuts_transactions,
        "transaction ids": shape.with_transaction_ids,
        "scopes": "truncate some" in dict(shape.events).values(),
    }


def test_every_three_features_meet_in_a_shape() -> None:
    found = [features(shape) for shape in MIXED]
    for names in combinations(found[0], 3):
        values = [{shape[name] for shape in found} for name in names]
        meeting = {tuple(shape[name] for name in names) for shape in found}
        assert meeting == set(product(*values)), names


def test_every_feature_meets_every_circumstance() -> None:
    found = [features(shape) | circumstances(shape) for shape in MIXED]
    for names in combinations(found[0], 2):
        values = [{shape[name] for shape in found} for name in names]
        meeting = {tuple(shape[name] for name in names) for shape in found}
        assert meeting == set(product(*values)), names


def test_the_small_suite_has_a_shape_of_each_kind() -> None:
    few = [shape for shape in SHAPES if shape.name in FEW]
    assert len(few) == len(FEW)
    for name, values in kinds(few).items():
        assert values == kinds(SHAPES)[name], name
    # late changes, which replay keys, and changes in order, which do not, with and without a base
    assert {(shape.base, shape.has_late) for shape in few} >= {
        (None, True),
        (None, False),
        ("frozen", True),
        ("live", True),
    }


def kinds(shapes: Iterable[Shape]) -> dict[str, set[object]]:
    """The values that each feature and circumstance has among shapes."""
    found: dict[str, set[object]] = {}
    for shape in shapes:
        others = {"before images": shape.before_images, "moves": shape.moves, "hides": shape.hides}
        for name, value in (features(shape) | circumstances(shape) | others).items():
            found.setdefault(name, set()).add(value)
    return found


def test_every_mixed_shape_has_late_changes_and_truncates_and_every_feature_key_changes() -> None:
    for shape in MIXED:
        assert shape.has_late
        assert any(event.startswith("truncate") for event in dict(shape.events).values())
    moving = [features(shape) for shape in MIXED if shape.moves]
    for names in combinations(moving[0], 2):
        meeting = {tuple(shape[name] for name in names) for shape in moving}
        every = {tuple(features(shape)[name] for name in names) for shape in MIXED}
        assert meeting == every, names


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_the_oracle_gives_what_the_simulated_database_held(shape: Shape) -> None:
    table = stream_table(shape, STREAMS)
    with_states = [stream for stream in table.streams if stream.states]
    for stream in with_states:
        assert not table.differing_state(stream, table.history_of(stream))
    if shape in MIXED and not (shape.gains and shape.cuts_transactions):
        assert len(with_states) > STREAMS / 3


def test_every_rule_and_every_pair_of_rules_is_exercised(pytestconfig: pytest.Config) -> None:
    """Two rules meet in at least one of 200 streams."""
    counts = RuleCounts()
    for shape in chosen_shapes(pytestconfig):
        table = stream_table(shape, stream_count(pytestconfig))
        for stream in table.streams:
            history = table.history_of(stream)
            counts.add(stream, rules_of(table, stream, history))
            assert not table.differing_state(stream, history)
    assert not counts.too_rare(single=0.05, pair=0.005), "\n" + counts.table()


def moved(seq: str, old: int, new: int, value: int) -> LogRow:
    """A row that moves from one key to another one."""
    before, after = ({"id": id, "a": value, "b": 1, "c": 1} for id in (old, new))
    return LogRow(seq, "U", after, START, before=before)


def test_a_truncate_with_a_scope_hides_whether_an_equal_row_leaves_the_key_of_a_move() -> None:
    named = LogRow("0", "I", {"id": 2, "a": 0, "b": 1, "c": 1}, START)
    arrives, leaves = moved("1", 1, 2, 5), moved("2", 2, 3, 5)
    truncate = LogRow("5", "T", None, START, truncate_scope={"a": "5"})
    assert not tells_moved_rows([truncate, leaves, arrives])
    assert tells_moved_rows([arrives, leaves])
    assert tells_moved_rows([named, arrives, leaves, truncate])
    assert tells_moved_rows([arrives, moved("2", 2, 3, 6), truncate])
    assert tells_moved_rows([arrives, moved("2", 4, 5, 5), truncate])
    later = START + timedelta(seconds=1)
    assert tells_moved_rows([arrives, replace(leaves, changed_at=later), truncate])
    changes = [arrives, leaves, replace(moved("3", 2, 6, 5), changed_at=later), truncate]
    assert tells_moved_rows(changes)
