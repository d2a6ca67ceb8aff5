"""The macro temporal_join: its statement, its errors, and on DuckDB its rows, against an oracle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tests.macro_renderer import CompilationError, normalised
from tests.temporal_joins import (
    JOINS,
    TABLES,
    Histories,
    Relation,
    assert_equals_oracle,
    random_histories,
    renderer,
)

TASK = {"orders_history": "sales", "customers_history": "sales"}
ORDERS, CUSTOMERS = Relation("orders_history"), Relation("customers_history")
OF_ORDERS = ["order_id", "customer_id", "status"]
OF_CUSTOMERS = ["customer_id", "city", "valid_from"]


def joined(tasks: Mapping[str, str | None] = TASK, by: str | None = None, **join: Any) -> str:
    keys = {"orders_history": ["order_id"], "customers_history": ["customer_id"]}
    columns = {"orders_history": OF_ORDERS, "customers_history": OF_CUSTOMERS}
    render = renderer(tasks, keys, columns)
    side = {"relation": CUSTOMERS, "on": {"customer_id": "customer_id"}, "prefix": "c_", **join}
    return normalised(render("temporal_join", ORDERS, [side], by=by))


@pytest.mark.parametrize(
    ("tasks", "by", "comment"),
    [
        (TASK, None, "change_seq: all tables are of the task sales"),
        (TASK, "time", "time: the argument `by`"),
        ({**TASK, "orders_history": None}, "change_seq", "change_seq: the argument `by`"),
        (
            {**TASK, "orders_history": None},
            None,
            "time: the setting `task` is not the same on all sides",
        ),
        (
            dict.fromkeys(TASK),
            None,
            "time: the setting `task` is not the same on all sides",
        ),
    ],
)
def test_tables_of_one_task_are_joined_by_change_seq(
    tasks: dict[str, str | None], by: str | None, comment: str
) -> None:
    statement = joined(tasks, by)
    assert statement.startswith(f"(-- temporal_join by {comment} with base_versions as (")
    assert ("valid_from_seq" in statement) == comment.startswith("change_seq")


def test_columns_of_the_result() -> None:
    """By default the versions' ids and all data columns; the key of a side is that of the base."""
    result = joined().rpartition(" select ")[2].partition(" from ")[0]
    names = "orders_history_id, order_id, customer_id, status, c_customers_history_id, c_city"
    assert result.startswith(f"{names}, valid_from, -- not before")
    result = joined(columns=["city", "valid_from"]).rpartition(" select ")[2]
    assert "c_city, c_valid_from, valid_from" in result


@pytest.mark.parametrize(
    ("join", "parts"),
    [
        ({"relation": "customers"}, ["`relation` is a relation", "customers", "ref("]),
        ({"on": "customer_id"}, ["`on` maps columns", "customer_id", "Fix: write 'on': {"]),
        ({"on": {"customer_id": "id"}}, ["`on` names the column 'id'", "Allowed: customers_h"]),
        ({"on": {"customer": "customer_id"}}, ["`on` has 'customer'", "orders_history", "Fix: "]),
        ({"on": {"status": "city"}}, ["`on` lacks customer_id", "'many': true"]),
        ({"how": "outer"}, ["`how` is 'outer'", "Allowed: left, inner", "Fix: "]),
        ({"columns": "city"}, ["`columns` is a list", "city", "Fix: "]),
        ({"columns": ["town"]}, ["`columns` names the column 'town'", "Allowed: ", "city"]),
        ({"columns": ["customer_id"], "prefix": ""}, ["two columns `customer_id`", "'prefix'"]),
        ({"columns": ["valid_from"], "prefix": ""}, ["two columns `valid_from`", "'prefix'"]),
        ({"type": "left"}, ["has 'type'", "Allowed: relation, on, how, columns, prefix, many"]),
        ({"by": "seq"}, ["`by` is 'seq'", "Allowed: change_seq, time", "Fix: "]),
    ],
)
def test_errors(join: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(CompilationError) as caught:
        joined(**join)
    message = str(caught.value)
    assert [part for part in ["`temporal_join`", *parts] if part not in message] == [], message


def sides(how: str, on: str) -> list[dict[str, Any]]:
    """Orders, their customers, and a third side that is joined on a column of one of the two."""
    outputs = {ORDERS: "order_id", CUSTOMERS: "c_region_id", Relation("regions_history"): "name"}
    found = [
        {"relation": relation, "on": {}, "is_left": True, "output": {"any": output}}
        for relation, output in outputs.items()
    ]
    return [*found[:2], {**found[2], "on": {on: "region_id"}, "is_left": how == "left"}]


@pytest.mark.parametrize(("how", "on"), [("left", "c_region_id"), ("inner", "order_id")])
def test_joins_that_a_joined_table_can_keep(how: str, on: str) -> None:
    assert not str(renderer(TASK)("_check_joined_sides", sides(how, on)) or "").strip()


def test_a_joined_table_refuses_an_inner_join_on_columns_of_another_side() -> None:
    with pytest.raises(CompilationError) as caught:
        renderer(TASK)("_check_joined_sides", sides("inner", "c_region_id"))
    message = str(caught.value)
    parts = ["`joined_history` of regions_history", "(c_region_id)", "'how': 'left'"]
    assert [part for part in parts if part not in message] == [], message


def test_tables_of_two_tasks_are_not_joined_by_change_seq() -> None:
    with pytest.raises(CompilationError, match=r"tasks hr, sales|tasks sales, hr.*Fix: "):
        joined({**TASK, "orders_history": "hr"}, by="change_seq")


@pytest.mark.parametrize("joins", [None, [], {"relation": CUSTOMERS}, "customers", ["customers"]])
def test_joins_that_are_no_list_of_sides(joins: Any) -> None:
    with pytest.raises(CompilationError, match=r"`temporal_join` of orders_history.*Fix: "):
        renderer(TASK)("temporal_join", ORDERS, joins)


@pytest.fixture(scope="module", params=[False, True], ids=["clock", "clock_runs_back"])
def streams(request: pytest.FixtureRequest) -> list[Histories]:
    return [random_histories(seed, seed, request.param) for seed in range(250)]


@pytest.fixture(scope="module")
def database(streams: list[Histories]) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for table in TABLES:
            rows = pa.Table.from_pylist([row for one in streams for row in one[table]])
            connection.register(f"{table}_rows", rows)
            connection.execute(f"create table {table}_history as from {table}_rows")
        yield connection


@pytest.mark.parametrize("by", ["time", "change_seq"])
@pytest.mark.parametrize("name", JOINS)
def test_random_streams_on_duckdb(
    database: duckdb.DuckDBPyConnection, streams: list[Histories], name: str, by: str
) -> None:
    count = assert_equals_oracle(streams, name, by, lambda sql: database.execute(sql).fetchall())
    assert count > len(streams)
