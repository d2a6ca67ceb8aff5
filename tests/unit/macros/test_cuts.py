"""The macros of cuts: what reads them, and which tasks have one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.macro_renderer import CompilationError, MacroRenderer, normalised

HISTORY = SimpleNamespace(identifier="orders_history")


def reader(seq: str | None, task: str | None = "shop") -> MacroRenderer:
    """Macros of a model that reads a cut."""
    return MacroRenderer(
        _settings_of_relation=lambda relation: {"task": task, "source_table": "raw.orders"},
        load_relation=lambda relation: None if seq is None else relation,
        run_query=lambda sql: SimpleNamespace(rows=[(seq or None,)]),
    )


def test_the_last_cut_is_a_position() -> None:
    assert normalised(reader("0042")("as_of", "orders_history", cut="latest")) == (
        "(select *, '0042' as cut_seq from orders_history where valid_from_seq <= '0042'"
        " and (valid_to_seq > '0042' or valid_to_seq is null))"
    )


@pytest.mark.parametrize("seq", [None, ""])
def test_before_the_first_cut_there_are_no_rows(seq: str | None) -> None:
    with pytest.warns(UserWarning, match="the task 'shop' has no cut yet"):
        sql = reader(seq)("as_of", "orders_history", cut="latest")
    assert "valid_from_seq <= ''" in sql


@pytest.mark.parametrize(
    ("given", "task", "parts"),
    [
        ({"cut": "first"}, "shop", ["`cut` is 'first'. Allowed: cut='latest'"]),
        ({"cut": "latest", "at": "2026-03-02"}, "shop", ["and `at` is '2026-03-02'"]),
        ({"cut": "latest"}, None, ["raw.orders has no setting `task`", "Fix: set `task`"]),
    ],
)
def test_what_names_no_cut_is_an_error(
    given: dict[str, str], task: str | None, parts: list[str]
) -> None:
    with pytest.raises(CompilationError) as caught:
        reader("0042", task)("as_of", "orders_history", **given)
    assert [part for part in parts if part not in str(caught.value)] == []


def test_several_histories_are_ctes() -> None:
    sql = reader("0042")("at_cut", [HISTORY, SimpleNamespace(identifier="lines_history")])
    assert sql.startswith("orders_history as (")
    assert "),\n\nlines_history as (" in sql
    wrong: list[Any] = ["orders_history", [], {"a": 1}]
    for given in wrong:
        with pytest.raises(CompilationError, match="`relations` is a list of histories"):
            reader("0042")("at_cut", given)


def tasks(transactions: dict[str, str], **tables: dict[str, Any]) -> Any:
    """The tasks that have cuts, of tables with these settings."""
    nodes = {}
    for name, settings in tables.items():
        settings["source_table"] = f"raw.{name}"
        nodes[f"{name}_changes"] = SimpleNamespace(
            name=f"{name}_changes", config=SimpleNamespace(materialized="change_log")
        )
        nodes[f"{name}_history"] = SimpleNamespace(
            settings=settings,
            config=SimpleNamespace(materialized="scd2_history"),
            depends_on=SimpleNamespace(nodes=[f"{name}_changes"]),
        )
    render = MacroRenderer(
        graph=SimpleNamespace(nodes=nodes),
        model=SimpleNamespace(name="afterimage_cuts", depends_on=SimpleNamespace(nodes=[*nodes])),
        _settings_of=lambda node: node.settings,
        _relation_of=lambda node: None,
    )
    found = render("_tasks_with_cuts", transactions)
    return {task: [table["table"] for table in of] for task, of in found.items()}


def test_tasks_with_a_delay_or_with_transactions_have_cuts() -> None:
    delayed = {"task": "shop", "landing_delay": "1 minute"}
    assert tasks(
        {"bank": "topic"},
        orders={**delayed},
        lines={**delayed},
        accounts={"task": "bank", "landing_delay": None},
        prices={"task": "other", "landing_delay": None},
        notes={"task": None, "landing_delay": None},
    ) == {"bank": ["accounts"], "shop": ["lines", "orders"]}


@pytest.mark.parametrize(
    ("transactions", "tables", "parts"),
    [
        (
            {},
            {
                "orders": {"task": "shop", "landing_delay": "1 minute"},
                "lines": {"task": "shop", "landing_delay": None},
            },
            ["raw.orders has the setting `landing_delay`", "raw.lines lacks it", "Fix: "],
        ),
        (
            {"sho": "topic"},
            {"orders": {"task": "shop", "landing_delay": "1 minute"}},
            ["`transactions` names the task 'sho'", "Allowed: shop", "Fix: "],
        ),
        (
            {},
            {"orders": {"task": None, "landing_delay": None}},
            ["no task has cuts", "Fix: set `task` and `landing_delay`"],
        ),
    ],
)
def test_which_settings_a_cut_lacks(
    transactions: dict[str, str], tables: dict[str, Any], parts: list[str]
) -> None:
    with pytest.raises(CompilationError) as caught:
        tasks(transactions, **tables)
    assert [part for part in parts if part not in str(caught.value)] == []
