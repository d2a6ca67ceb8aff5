"""What the macros of current and change activity say when they stop: table, setting, fix."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.macro_renderer import CompilationError, MacroRenderer

PLAIN = ["order_id", "valid_from", "status"]
DELETED = [*PLAIN, "is_deleted", "deleted_at"]


def renderer(**columns: list[str]) -> MacroRenderer:
    """Macros over relations with these columns, inside the model orders_current."""
    return MacroRenderer(
        _raw_columns=lambda relation: [{"name": name} for name in columns[str(relation)]],
        model=SimpleNamespace(name="orders_current"),
    )


def settings(*, keep_deleted: bool) -> dict[str, Any]:
    return {"key": ["order_id"], "keep_deleted": keep_deleted, "history_metadata": []}


@pytest.mark.parametrize(
    ("built", "history", "keep_deleted", "parts"),
    [
        (PLAIN, PLAIN, True, ["built with `keep_deleted: false`", "is now true"]),
        (DELETED, PLAIN, False, ["built with `keep_deleted: true`", "is now false"]),
    ],
)
def test_a_changed_keep_deleted_requires_a_new_table(
    built: list[str], history: list[str], keep_deleted: bool, parts: list[str]
) -> None:
    render = renderer(shop_orders_current=built, history=history)
    with pytest.raises(CompilationError) as caught:
        render(
            "_check_keep_deleted",
            "shop_orders_current",
            "history",
            settings(keep_deleted=keep_deleted),
        )
    message = str(caught.value)
    parts = [*parts, "shop_orders_current", "--full-refresh --select orders_current", "Fix: "]
    assert [part for part in parts if part not in message] == []


@pytest.mark.parametrize(
    ("built", "history", "keep_deleted"),
    [
        (PLAIN, PLAIN, False),
        (DELETED, PLAIN, True),
        # the source's own column of that name
        (DELETED, DELETED, False),
    ],
)
def test_keep_deleted_as_it_was_is_no_error(
    built: list[str], history: list[str], keep_deleted: bool
) -> None:
    render = renderer(built=built, history=history)
    render("_check_keep_deleted", "built", "history", settings(keep_deleted=keep_deleted))


@pytest.mark.parametrize(("built", "keep_deleted"), [(PLAIN, True), (DELETED, False)])
def test_the_preflight_checks_keep_deleted_first(built: list[str], keep_deleted: bool) -> None:
    """Otherwise a column that the setting adds would be missing, or be overlooked."""

    def evolve_mart_schema(*_: Any) -> None:
        raise AssertionError("the columns come second")

    columns = {"orders_current": built, "orders_history": PLAIN}
    render = MacroRenderer(
        _raw_columns=lambda relation: [{"name": name} for name in columns[str(relation)]],
        _settings_of=lambda _: settings(keep_deleted=keep_deleted),
        adapter=SimpleNamespace(afterimage=SimpleNamespace(evolve_mart_schema=evolve_mart_schema)),
        model=SimpleNamespace(name="orders_current"),
    )
    with pytest.raises(CompilationError, match="was built with `keep_deleted"):
        render("_check_mart", "orders_current", "current", ["orders_history"])


def test_a_source_with_a_column_that_keep_deleted_adds() -> None:
    render = renderer(orders_history=[*PLAIN, "Is_Deleted"])
    relation = Relation("orders_history")
    with pytest.raises(CompilationError) as caught:
        render("_current_columns", relation, settings(keep_deleted=True))
    message = str(caught.value)
    parts = ["orders_current", "`Is_Deleted`", "`keep_deleted: true`", "Fix: ", "rename"]
    assert [part for part in parts if part not in message] == []
    assert "Is_Deleted" in render("_current_columns", relation, settings(keep_deleted=False))


class Relation(str):
    """A relation of dbt, as far as these macros look at it."""

    @property
    def identifier(self) -> str:
        return str(self)


@pytest.mark.parametrize("tables", ["orders", {"orders": 1}, []])
def test_change_activity_of_something_that_is_no_list(tables: Any) -> None:
    render = MacroRenderer(config=lambda **_: "", model=SimpleNamespace(name="change_activity"))
    with pytest.raises(CompilationError) as caught:
        render("change_activity", tables)
    message = str(caught.value)
    parts = [
        "`tables` of change_activity",
        f"got {tables}",
        "Fix: write change_activity(['orders', 'invoices'",
    ]
    assert [part for part in parts if part not in message] == []


def test_current_equals_open_of_a_table_that_was_never_built() -> None:
    render = MacroRenderer(
        _raw_columns=lambda relation: [],
        _tested_node=lambda: SimpleNamespace(name="orders_current"),
    )
    tables = [SimpleNamespace(identifier=name) for name in ("orders_current", "orders_history")]
    with pytest.raises(CompilationError) as caught:
        render("test_current_equals_open", *tables)
    message = str(caught.value)
    assert "`current_equals_open` on orders_current: " in message
    assert message.endswith("does not exist. Fix: dbt run --select orders_current")
