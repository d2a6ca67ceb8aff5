"""Which names in the text of a staging view are relations: the others stay as they are."""

from __future__ import annotations

import pytest

from dbt_afterimage.change_log.reading.new_rows import _with_names

NAMES = {"raw.orders": "new", "raw.orders.v2": "other", "raw.`it's`": "quoted"}


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("from raw.orders\nwhere x = 'raw.orders'", "from new as orders\nwhere x = 'raw.orders'"),
        ("from raw.orders where 'a''raw.orders'", "from new as orders where 'a''raw.orders'"),
        ("r'\\', raw.orders where 'raw.orders'", "r'\\', new as orders where 'raw.orders'"),
        ("'\\'raw.orders', \"raw.orders\", `raw.orders`", None),
        ("-- it's raw.orders\nfrom raw.orders", "-- it's raw.orders\nfrom new as orders"),
        ("/* /* b */ raw.orders' */ raw.orders", "/* /* b */ raw.orders' */ new as orders"),
        ("(select * from raw.orders)", "(select * from new as orders)"),
        ("from raw.orders as o, raw.orders.v2 b", "from new as o, other b"),
        ("from raw.`it's` where 'raw.orders'", "from quoted as `it's` where 'raw.orders'"),
        ("select raw.orders.topic, xraw.orders, raw.orders_x", None),
    ],
)
def test_only_relations_are_replaced(statement: str, expected: str | None) -> None:
    assert _with_names(statement, NAMES) == (statement if expected is None else expected)
