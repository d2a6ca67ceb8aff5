"""Stages change feeds without dbt: the rendered SQL of stage_change_feed on a temporary view."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from dbt_afterimage.dbt_spark.macro_api import tables
from dbt_afterimage.settings import parse_settings
from dbt_afterimage.spark.session import active
from tests.macro_renderer import MacroRenderer
from tests.openedge_staging import create_views

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

_CASE: dict[str, Any] = {}


def settings_of(
    preset: str | None, settings: dict[str, Any], types: dict[str, str] | None = None
) -> Any:
    """Validated settings of the source table shop.feed."""
    given = {"system": "change_feed", **({"preset": preset} if preset else {}), **settings}
    columns = {name: {"name": name, "data_type": kind} for name, kind in (types or {}).items()}
    entry = {"source_name": "shop", "name": "feed", "meta": {"afterimage": given}}
    return parse_settings({**entry, "columns": columns})


def staging_sql(
    settings: dict[str, Any],
    columns: dict[str, str],
    relation: str = "feed",
    fields: list[dict[str, str]] | None = None,
) -> str:
    """The SQL of stage_change_feed('shop', 'feed') for a relation of these columns and types.

    `fields` are those of the struct `after`, if that is a struct.
    """
    _CASE.update(settings=settings, columns=columns, relation=relation, fields=fields)
    return str(_renderer()("stage_change_feed", "shop", "feed"))


def _type_of(value: str, relation: str) -> str:
    column = _CASE["columns"].get(value)
    return column or (tables.type_of(None, value, relation) if active() else "")


@cache
def _renderer() -> MacroRenderer:
    return MacroRenderer(
        source=lambda source_name, name: _CASE["relation"],
        _raw_columns=lambda relation: [
            {"name": name, "data_type": kind} for name, kind in _CASE["columns"].items()
        ],
        _settings=lambda source_name, name: _CASE["settings"],
        adapter=SimpleNamespace(
            afterimage=SimpleNamespace(
                fields_of=lambda relation, struct, table: _CASE["fields"],
                type_of=_type_of,
            )
        ),
    )


def staged(
    spark: SparkSession,
    settings: dict[str, Any],
    columns: dict[str, str],
    rows: list[tuple[Any, ...]],
    result: list[str],
    fields: list[dict[str, str]] | None = None,
) -> list[Row]:
    """Columns of the staged rows of a feed, as text where JSON has no type for them."""
    create_views(spark, {"feed": (columns, rows)})
    found = spark.sql(staging_sql(settings, columns, fields=fields))
    names = [
        f"cast(`{name}` as string) as `{name}`"
        if found.schema[name].dataType.typeName() in ("timestamp", "date")
        else f"`{name}`"
        for name in result
    ]
    return found.selectExpr(*names).collect()
