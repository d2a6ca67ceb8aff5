"""What stops a command before its first model: table, setting, fix."""

from __future__ import annotations

from datetime import date, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from dbt_afterimage import __version__
from tests.macro_renderer import CompilationError, MacroRenderer


def graph_of(*models: tuple[str, str, str], **config: str) -> Any:
    """The graph of a project with models, given as schema, alias and materialization."""
    nodes = {
        f"model.shop.{schema}_{alias}": SimpleNamespace(
            resource_type="model",
            unique_id=f"model.shop.{schema}_{alias}",
            schema=schema,
            alias=alias,
            config=SimpleNamespace(materialized=materialized, **config),
        )
        for schema, alias, materialized in models
    }
    return SimpleNamespace(nodes=nodes)


def check(*models: tuple[str, str, str]) -> None:
    graph = graph_of(*models)
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


def published(
    *models: tuple[str, str, str], file_format: str = "iceberg", table_format: str = "iceberg"
) -> Any:
    """What `_publication` says of models."""
    render = MacroRenderer(
        graph=graph_of(*models, file_format=file_format),
        target=SimpleNamespace(schema="shop"),
        adapter=SimpleNamespace(afterimage=SimpleNamespace(table_format=lambda: table_format)),
        var=lambda name, default: "readers",
        generate_schema_name=lambda custom, node: f"shop_{custom}\n",
        _relation_of=lambda node: f"{node.schema}.{node.alias}",
        _progress_relation=lambda: "shop.afterimage_progress",
    )
    return render("_publication")


def test_tables_that_readers_query_are_published() -> None:
    kinds = ("staging_view", "change_log", "scd2_history", "table", "view")
    found = published(*(("shop", f"orders_{kind}", kind) for kind in kinds))
    assert (found["schema"], found["progress"]) == ("shop_readers", "shop.afterimage_progress")
    assert list(found["tables"].values()) == ["shop.orders_scd2_history", "shop.orders_table"]


@pytest.mark.parametrize(
    ("models", "formats", "said"),
    [
        ([("shop", "orders", "scd2_history")], {"table_format": "delta"}, "which have no tags"),
        ([("shop", "totals", "table")], {"file_format": "parquet"}, "`+file_format: iceberg`"),
        (
            [("crm", "orders", "scd2_history"), ("sales", "orders", "current_state")],
            {},
            "of model.shop.sales_orders and of model.shop.crm_orders",
        ),
        ([("shop_readers", "orders", "scd2_history")], {}, "whose table has that name"),
    ],
)
def test_what_cannot_be_published(
    models: list[tuple[str, str, str]], formats: dict[str, str], said: str
) -> None:
    with pytest.raises(CompilationError) as caught:
        published(*models, **formats)
    for part in (said, "Nothing was written. Fix: "):
        assert part in str(caught.value)
