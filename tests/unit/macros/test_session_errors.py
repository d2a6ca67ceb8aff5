"""What stops a command before its first model: table, setting, fix."""

from __future__ import annotations

from datetime import date, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from dbt_afterimage import __version__
from tests.macro_renderer import CompilationError, MacroRenderer


def check(*models: tuple[str, str, str]) -> None:
    """Models as schema, alias and materialization."""
    nodes = {
        f"model.shop.{schema}_{alias}": SimpleNamespace(
            resource_type="model",
            unique_id=f"model.shop.{schema}_{alias}",
            schema=schema,
            alias=alias,
            config=SimpleNamespace(materialized=materialized),
        )
        for schema, alias, materialized in models
    }
    graph: Any = SimpleNamespace(nodes=nodes)
    MacroRenderer(graph=graph, target=SimpleNamespace(schema="shop"))("_check_aliases")


@pytest.mark.parametrize("materialized", ["change_log", "staging_log", "scd2_history"])
def test_two_models_with_one_alias(materialized: str) -> None:
    with pytest.raises(CompilationError) as caught:
        check(("sales", "orders", materialized), ("crm", "orders", "scd2_history"))
    message = str(caught.value)
    parts = [
        "model.shop.sales_orders (sales.orders)",
        "model.shop.crm_orders (crm.orders)",
        "`orders`",
        "Fix: ",
    ]
    assert [part for part in parts if part not in message] == []


def test_one_alias_in_two_schemas_where_only_one_records_progress() -> None:
    check(("sales", "orders", "scd2_history"), ("crm", "orders", "view"), ("crm", "bills", "table"))


def test_macros_and_package_of_two_versions() -> None:
    methods = SimpleNamespace(installed_version=lambda: "9.0.0")
    render = MacroRenderer(adapter=SimpleNamespace(afterimage=methods))
    with pytest.raises(CompilationError) as caught:
        render("_check_version")
    for part in (f"has version {__version__}", "version 9.0.0", "Fix: ", "packages.yml"):
        assert part in str(caught.value)


def test_macros_and_package_of_one_version() -> None:
    methods = SimpleNamespace(installed_version=lambda: __version__)
    MacroRenderer(adapter=SimpleNamespace(afterimage=methods))("_check_version")


@pytest.mark.parametrize(
    ("given", "becomes"),
    [
        (date(1900, 1, 1), "1900-01-01"),
        (datetime(2000, 1, 1, 7, 30), "2000-01-01 07:30:00"),
        ("1970-01-01 00:00:00.5", "1970-01-01 00:00:00.5"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
    ],
)
def test_beginning_of_time_is_text_however_yaml_reads_it(given: object, becomes: str) -> None:
    assert MacroRenderer(var=lambda name, default: given)("_var", "beginning_of_time") == becomes


@pytest.mark.parametrize("given", ["01.01.1900", "yesterday", "1900-02-30", None])
def test_beginning_of_time_that_is_no_time(given: object) -> None:
    with pytest.raises(CompilationError, match=r"`beginning_of_time` is .*Allowed: .*Fix: "):
        MacroRenderer(var=lambda name, default: given)("_var", "beginning_of_time")
