"""Stages change feeds without dbt: the rendered SQL of stage_change_feed on a temporary view."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from dbt_afterimage.settings import parse_settings
from tests.macro_renderer import MacroRenderer
from tests.openedge_staging import create_views, quick_queries

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

_CASE: dict[str, Any] = {}


def settings_of(
    preset: str | None, settings: dict[str, Any], types: dict[str, str] | None = None
) -> dict[str, Any]:
    """Validated settings of the source table shop.feed."""
    given = {"system": "change_feed", **({"preset": preset} if preset else {}), **settings}
    columns = {name: {"name": name, "data_type": kind} for name, kind in (types or {}).items()}
    entry = {"source_name": "shop", "name": "feed", "meta": {"afterimage": given}}
    return parse_settings({**entry, "columns": columns})


def staging_sql(settings: dict[str, Any], columns: dict[str, str], relation: str = "feed") -> str:
    """The SQL of stage_change_feed('shop', 'feed') for a relation of these columns and types."""
    _CASE.update(settings=settings, columns=columns, relation=relation)
    return str(_renderer()("stage_change_feed", "shop", "feed"))


@cache
def _renderer() -> MacroRenderer:
    return MacroRenderer(
        source=lambda source_name, name: _CASE["relation"],
        _raw_columns=lambda relation: [
            {"name": name, "data_type": kind} for name, kind in _CASE["columns"].items()
        ],
        _settings=lambda source_name, name: _CASE["settings"],
    )


def staged(
    spark: SparkSession,
    settings: dict[str, Any],
    columns: dict[str, str],
    rows: list[tuple[Any, ...]],
    result: list[str],
) -> list[Row]:
    """Columns of the staged rows of a feed, as text where JSON has no type for them."""
    create_views(spark, {"feed": (columns, rows)})
    with quick_queries(spark):
        found = spark.sql(staging_sql(settings, columns))
        names = [
            f"cast(`{name}` as string) as `{name}`"
            if found.schema[name].dataType.typeName() in ("timestamp", "date")
            else f"`{name}`"
            for name in result
        ]
        return found.selectExpr(*names).collect()
