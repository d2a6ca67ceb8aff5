"""Names of columns and relations, as the SQL and the settings of macros have them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.macro_renderer import CompilationError, MacroRenderer


@pytest.mark.parametrize(
    ("name", "sql"),
    [
        ("order_id", "order_id"),
        ("order-id", "`order-id`"),
        ("1st", "`1st`"),
        # values, not names, where they are alone
        ("null", "`null`"),
        ("True", "`True`"),
        ("false", "`false`"),
    ],
)
def test_a_column_is_quoted_where_it_must_be(name: str, sql: str) -> None:
    assert MacroRenderer()("_quoted", name) == sql


@pytest.mark.parametrize(
    ("schema", "recorded"), [("plant", "orders_changes"), ("plant_crm", "plant_crm.orders_changes")]
)
def test_staging_reads_its_log_by_the_name_in_the_progress_table(
    schema: str, recorded: str
) -> None:
    """With its schema, where that is not the target's."""
    log: Any = SimpleNamespace(
        schema=schema,
        alias="orders_changes",
        config=SimpleNamespace(materialized="change_log"),
        depends_on=SimpleNamespace(nodes=["model.stg_orders"]),
    )
    named = MacroRenderer(target=SimpleNamespace(schema="plant"))
    render = MacroRenderer(
        graph=SimpleNamespace(nodes={"model.orders_changes": log}),
        model=SimpleNamespace(unique_id="model.stg_orders"),
        target=SimpleNamespace(schema="plant"),
        api=SimpleNamespace(Relation=SimpleNamespace(create=SimpleNamespace)),
        load_relation=lambda relation: relation,
        _read_progress=lambda relation: f"progress of {named('_progress_name', relation)}",
    )
    assert render("_openedge_progress") == f"progress of {recorded}"


@pytest.mark.parametrize("kind", ["map<string,string>", "array<map<int,int>>", "variant"])
def test_a_raw_column_that_cannot_be_compared_is_named(kind: str) -> None:
    columns = [{"name": "id", "data_type": "int"}, {"name": "tags", "data_type": kind}]
    with pytest.raises(CompilationError, match=r"raw column `tags` is .*Fix: "):
        MacroRenderer()("_record_hash", columns)


def settings_of(relation: str, *models: str) -> Any:
    """The model whose settings hold for a relation, both as schema.table."""

    def parts(name: str) -> dict[str, Any]:
        schema, table = name.split(".")
        return {"schema": schema, "alias": table, "identifier": table, "resource_type": "model"}

    graph = SimpleNamespace(nodes={name: SimpleNamespace(**parts(name)) for name in models})
    render = MacroRenderer(graph=graph, _settings_of=lambda node: f"{node.schema}.{node.alias}")
    return render("_settings_of_relation", SimpleNamespace(**parts(relation)))


def test_settings_of_a_relation_are_those_of_its_model() -> None:
    models = ("sales.orders_history", "crm.orders_history", "sales.orders_current")
    assert settings_of("crm.orders_history", *models) == "crm.orders_history"


def test_with_defer_a_relation_is_in_another_schema() -> None:
    assert settings_of("prod.orders_history", "ci.orders_history") == "ci.orders_history"


def test_a_relation_of_another_project_has_no_settings() -> None:
    with pytest.raises(CompilationError, match="is not a model of this project"):
        settings_of("prod.orders_history", "ci.orders_current")
