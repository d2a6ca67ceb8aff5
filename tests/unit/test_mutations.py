"""The mutations fit the project: their text is there, once, and every rule has one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutations.mutations import MUTATIONS, Mutation

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.breaks)
def test_the_text_to_replace_is_there_once(mutation: Mutation) -> None:
    text = (ROOT / mutation.path).read_text(encoding="utf-8")
    assert text.count(mutation.old) == 1
    assert mutation.new != mutation.old
    assert (ROOT / mutation.test.split()[0]).is_file()


def test_every_rule_has_a_mutation() -> None:
    assert {mutation.rule for mutation in MUTATIONS} == {f"R{number}" for number in range(1, 14)}
