"""Which tables the var `complete_load` names."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_afterimage.sources.qlik_messages.named_tables import NamedTables, named_tables
from tests.run_contexts import run_context

TABLES = [
    {"name": "carts", "table_schema": None, "message_table": "shop.carts"},
    {"name": "people", "table_schema": "hr", "message_table": "people"},
]


def named(given: Any) -> NamedTables:
    return named_tables(
        run_context(
            model="messages",
            complete_load=given,
            tables=TABLES,
            message_tables=["carts", "people", "of_another_source"],
        )
    )


def test_a_table_of_no_schema_is_one_of_any() -> None:
    tables = named(["carts", "people"])
    assert all(table in tables for table in [(None, "shop.carts"), ("sales", "shop.carts")])
    assert ("hr", "people") in tables
    assert all(table not in tables for table in [("sales", "people"), (None, "carts")])


def test_a_name_may_have_no_schema_or_be_of_another_source() -> None:
    assert (None, "shop.carts") in named("carts")
    for nothing in (["of_another_source"], [], None):
        assert named(nothing).tables == frozenset()


@pytest.mark.parametrize("given", ["cart", ["carts", "cart"], {"carts": 1}, [1], 1])
def test_anything_else_is_refused(given: Any) -> None:
    with pytest.raises(
        ValueError, match=r"messages: the var `complete_load` names .*Allowed: a li"
    ):
        named(given)
