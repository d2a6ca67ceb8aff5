"""Descriptions of the columns that the product adds: each has one, and no table gets another's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from dbt_afterimage.change_log.contract import LOG_COLUMNS, STAGED_COLUMNS
from dbt_afterimage.dbt_spark.documentation import document
from dbt_afterimage.settings import OPTIONAL_COLUMNS
from dbt_afterimage.sources.qlik_messages.message_columns import MESSAGE_COLUMNS
from dbt_afterimage.sources.soliddb.log_model import LOG_COLUMNS as SOLIDDB_COLUMNS

ROOT = Path(__file__).parents[2]
TEXT = "\n".join(
    path.read_text(encoding="utf-8") for path in (ROOT / "docs/dbt/columns").glob("*.md")
)
BLOCKS = dict(re.findall(r"{% docs (\w+) %}\n(.+?)\n{% enddocs %}", TEXT, re.S))


def described(kind: str) -> set[str]:
    return {name.split("__", 1)[1] for name in BLOCKS if name.startswith(f"{kind}__")}


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("staging", {*STAGED_COLUMNS, *OPTIONAL_COLUMNS}),
        ("changes", {*LOG_COLUMNS, *OPTIONAL_COLUMNS, "before"}),
        ("qlik_messages_log", {*MESSAGE_COLUMNS}),
        ("soliddb_log", {*SOLIDDB_COLUMNS}),
    ],
)
def test_every_column_has_a_description(kind: str, columns: set[str]) -> None:
    assert described(kind) == columns


def model(name: str, materialized: str, **given: Any) -> Any:
    """A model of a manifest, as far as it counts here."""
    macros, nodes = given.get("macros", []), [f"model.shop.{one}" for one in given.get("reads", [])]
    return SimpleNamespace(
        unique_id=f"model.shop.{name}",
        name=name,
        alias=name,
        resource_type="model",
        sources=given.get("sources", []),
        columns={},
        raw_code=given.get("raw_code", ""),
        docs=SimpleNamespace(node_color=None),
        depends_on=SimpleNamespace(macros=macros, nodes=nodes),
        config=SimpleNamespace(
            materialized=materialized,
            persist_docs={},
            contract=SimpleNamespace(enforced=False),
        ),
    )


def added(
    staging_macro: str,
    declared: Mapping[str, Any] = MappingProxyType({}),
    materialized: str = "staging_view",
    /,
    **settings: Any,
) -> dict[str, set[str]]:
    """Columns that are described in each table of the chain of one source table."""
    source = {
        "source_name": "raw",
        "name": "orders",
        "meta": {"afterimage": settings},
        "columns": declared,
    }
    chain = [
        model("stg", materialized, macros=[staging_macro], sources=[["raw", "orders"]]),
        model("orders_changes", "change_log", reads=["stg"]),
        model("orders_history", "scd2_history", reads=["orders_changes"]),
        model("orders_current", "current_state", reads=["orders_history"]),
        model("orders_view", "view", reads=["orders_history"], macros=["macro.afterimage.current"]),
    ]
    macro = SimpleNamespace(
        package_name="shop",
        name="own",
        depends_on=SimpleNamespace(macros=["macro.afterimage.stage_qlik_change_table"]),
    )
    manifest: Any = SimpleNamespace(
        macros={
            "macro.afterimage.history": SimpleNamespace(package_name="afterimage", name="history"),
            "macro.shop.own": macro,
        },
        docs={
            f"doc.afterimage.{name}": SimpleNamespace(block_contents=text)
            for name, text in BLOCKS.items()
        },
        sources={
            "source.shop.raw.orders": SimpleNamespace(**source, to_dict=lambda: source),
        },
        nodes={f"model.shop.{one.name}": one for one in chain},
    )
    document(manifest)
    return {one.name.removeprefix("orders_"): {*one.columns} for one in chain}


QLIK = {"system": "qlik_change_table", "key": ["id"]}
STAGE_QLIK = "macro.afterimage.stage_qlik_change_table"
IN_UPDATES, IN_LOADS = {"partner_may_follow"}, {"ends_load"}
EACH = {*STAGED_COLUMNS} - IN_UPDATES - IN_LOADS


@pytest.mark.parametrize("macro", [STAGE_QLIK, "macro.shop.own"])
def test_optional_columns_are_those_of_the_system(macro: str) -> None:
    columns = added(macro, **QLIK)
    assert columns["stg"] == {*EACH, "stream_position"}
    assert columns["changes"] == {*LOG_COLUMNS, "stream_position", "before"}
    assert not columns["history"] & {*OPTIONAL_COLUMNS}
    assert "is_deleted" not in columns["current"]
    assert columns["view"] == columns["current"] != set()


def test_models_that_read_each_other_are_left_to_dbt() -> None:
    """It refuses them once the manifest is parsed."""
    one = model("one_changes", "change_log", reads=["two_changes"])
    two = model("two_changes", "change_log", reads=["one_changes"])
    history = SimpleNamespace(package_name="afterimage", name="history")
    manifest: Any = SimpleNamespace(
        macros={"macro.afterimage.history": history},
        docs={},
        sources={},
        nodes={each.unique_id: each for each in (one, two)},
    )
    document(manifest)
    assert one.docs.node_color
    assert two.docs.node_color


def test_what_counts_all_change_logs_runs_after_all_of_them() -> None:
    logs = [model(f"{name}_changes", "change_log") for name in ("b", "a")]
    activity, named = model("activity", "change_activity"), model("named", "change_activity")
    activity.config.get = {"counts_all_change_logs": True}.get
    named.config.get = {"counts_all_change_logs": False}.get
    # a log that the project had when the manifest was saved
    activity.depends_on.nodes = ["model.shop.removed_changes"]
    history = SimpleNamespace(package_name="afterimage", name="history")
    manifest: Any = SimpleNamespace(
        macros={"macro.afterimage.history": history},
        docs={},
        sources={},
        nodes={each.unique_id: each for each in (activity, *logs, named)},
    )
    document(manifest)
    assert activity.depends_on.nodes == ["model.shop.a_changes", "model.shop.b_changes"]
    assert named.depends_on.nodes == []


def test_cuts_keep_what_they_read() -> None:
    history = SimpleNamespace(package_name="afterimage", name="history")
    cuts, ends = model("afterimage_cuts", "cuts"), model("ends", "view")
    source, removed = "source.shop.raw.transactions", "model.shop.removed_history"
    cuts.depends_on.nodes = [ends.unique_id, source, removed]
    manifest: Any = SimpleNamespace(
        macros={"macro.afterimage.history": history},
        docs={},
        sources={source: SimpleNamespace(source_name="raw", name="transactions")},
        nodes={each.unique_id: each for each in (cuts, ends)},
    )
    document(manifest)
    assert cuts.depends_on.nodes == [ends.unique_id, source]


def test_settings_add_columns() -> None:
    columns = added(STAGE_QLIK, **QLIK, history_metadata=["stream_position"], keep_deleted=True)
    assert columns["history"] & {*OPTIONAL_COLUMNS} == {"stream_position"}
    assert columns["current"] >= {"is_deleted", "deleted_at"}


@pytest.mark.parametrize(
    ("preset", "columns"),
    [
        ("debezium", IN_UPDATES | IN_LOADS),
        ("sql_server_cdc", IN_UPDATES),
        ("aws_dms", set()),
    ],
)
def test_a_change_feed_has_the_columns_that_its_settings_yield(
    preset: str, columns: set[str]
) -> None:
    settings = {"system": "change_feed", "preset": preset, "key": ["id"]}
    declared = {"id": {"name": "id", "data_type": "int"}}
    found = added("macro.afterimage.stage_change_feed", declared, **settings)
    assert found["stg"] == EACH | columns


@pytest.mark.parametrize("materialized", ["staging_view", "view"])
def test_staging_in_sql_of_the_projects_own_is_left_to_the_project(materialized: str) -> None:
    columns = added("macro.dbt.string_literal", {}, materialized, **QLIK)
    assert columns["stg"] == set()
    assert columns["changes"] == {*LOG_COLUMNS, "before"}


def test_settings_that_cannot_be_read_are_left_to_the_run() -> None:
    assert added(STAGE_QLIK, system="none")["changes"] == {*LOG_COLUMNS, "before"}


@pytest.mark.parametrize(
    ("code", "tasks", "joined_by"),
    [
        ("select * from {{ temporal_join(ref('a'), joins) }}", ["erp", "erp"], "change_seq"),
        ("{{ afterimage.temporal_join(ref('a'), joins) }}", ["erp", "hr"], "time"),
        ("SELECT * FROM {{- temporal_join(ref('a'), joins)", [None, None], "time"),
        ("{{ temporal_join(ref('a'), joins, by='time') }}", ["erp", "erp"], "time"),
        ("{{ temporal_join(ref('a'), joins, by=\"change_seq\") }}", [None, "erp"], "change_seq"),
        ("select city from {{ temporal_join(ref('a'), joins) }}", ["erp", "erp"], None),
    ],
)
def test_columns_of_a_join_say_what_it_is_joined_by(
    code: str, tasks: list[str | None], joined_by: str | None
) -> None:
    sides = [model(name, "scd2_history", sources=[("erp", name)]) for name in ("a", "b")]
    joined = model("joined", "view", reads=["a", "b"], raw_code=code)
    declared = [
        {"source_name": "erp", "name": side.name, "meta": {"afterimage": {**QLIK, "task": task}}}
        for side, task in zip(sides, tasks, strict=True)
    ]
    manifest: Any = SimpleNamespace(
        macros={"macro.afterimage.history": SimpleNamespace(package_name="shop", name="history")},
        docs={
            f"doc.afterimage.{name}": SimpleNamespace(block_contents=text)
            for name, text in BLOCKS.items()
        },
        sources={
            one["name"]: SimpleNamespace(
                source_name="erp", name=one["name"], to_dict=partial(dict, one, columns={})
            )
            for one in declared
        },
        nodes={one.unique_id: one for one in (*sides, joined)},
    )
    document(manifest)
    found = {name: column.description for name, column in joined.columns.items()}
    assert {*found} == (described(f"temporal_join_by_{joined_by}") if joined_by else set())
    assert not joined_by or f"joined by {joined_by}" in found["valid_from"]
