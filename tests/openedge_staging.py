"""Stages OpenEdge extracts without dbt: the rendered SQL of stage_openedge on temporary views.

extracts = {"tracking": (TRACKING, [...]), "changes": (CHANGES, [...])}
rows = staged(spark, extracts, {"key": ["id"]})
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from afterimage_demo.openedge import CHANGE_TYPES, TRACKING_TYPES
from dbt_afterimage.settings import parse_settings
from dbt_afterimage.storage.local_relation import local_rows
from tests.log_reader import read_rows
from tests.macro_renderer import MacroRenderer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATA = Path(__file__).parent / "data" / "openedge"

# column -> type, and rows
Extract = tuple[dict[str, str], list[tuple[Any, ...]]]

TABLE_NUMBER = 12
TRACKING, CHANGES = TRACKING_TYPES, CHANGE_TYPES


def vectors(name: str) -> list[dict[str, str]]:
    """The rows of a file of documented values."""
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def settings_of(
    settings: dict[str, Any], columns: dict[str, str] | None = None, name: str = "changes"
) -> Any:
    """Validated settings of the source table erp.<name>, with what tests do not care for."""
    given = {"system": "openedge", "table_number": TABLE_NUMBER, **settings}
    declared = {
        column: {"name": column, "data_type": kind} for column, kind in (columns or {}).items()
    }
    entry = {"source_name": "erp", "name": name, "meta": {"afterimage": given}}
    return parse_settings({**entry, "columns": declared})


def staging_sql(
    extracts: dict[str, dict[str, str]],
    settings: dict[str, Any],
    declared: dict[str, str] | None = None,
    **arguments: Any,
) -> str:
    """The SQL of stage_openedge('erp', 'changes', ...).

    Args:
        extracts: name -> columns of the raw tables.
        settings: of the change table.
        declared: declared types of its columns.
        arguments: of the macro; by default `tracking` is there if such an extract is.
    """
    _CASE.update(extracts=extracts, settings=settings, declared=declared)
    given = {"tracking": "tracking" if "tracking" in extracts else None, **arguments}
    return str(_renderer()("stage_openedge", "erp", "changes", **given))


# What the one renderer answers at the moment: to load all macros takes longer than to render one.
_CASE: dict[str, Any] = {}


def activity_sql(
    tracking: dict[str, str], settings: dict[str, Any], declared: dict[str, str] | None
) -> str:
    """The SQL of openedge_activity('erp', 'tracking', ['changes']); arguments as staging_sql's."""
    _CASE.update(extracts={"tracking": tracking}, settings=settings, declared=declared)
    return str(_renderer()("openedge_activity", "erp", "tracking", ["changes"]))


@cache
def _renderer() -> MacroRenderer:
    def raw_columns(relation: str) -> list[dict[str, str]]:
        columns = _CASE["extracts"][relation.rsplit(".", maxsplit=1)[-1]]
        return [{"name": name, "data_type": kind} for name, kind in columns.items()]

    return MacroRenderer(
        source=lambda source_name, name: name,
        _raw_columns=raw_columns,
        _settings=lambda source_name, name: settings_of(_CASE["settings"], _CASE["declared"], name),
        _check_openedge_sequences=lambda *_: "",
    )


def create_views(spark: SparkSession, extracts: dict[str, Extract]) -> dict[str, dict[str, str]]:
    """A temporary view of each extract; returns their columns."""
    for name, (columns, rows) in extracts.items():
        schema = ", ".join(f"`{column}` {kind}" for column, kind in columns.items())
        local_rows(spark, rows, schema).createOrReplaceTempView(name)
    return {name: columns for name, (columns, _) in extracts.items()}


def staged(
    spark: SparkSession,
    extracts: dict[str, Extract],
    settings: dict[str, Any],
    declared: dict[str, str] | None = None,
    **arguments: Any,
) -> list[dict[str, Any]]:
    """What stage_openedge makes of extracts, in the order of the changes."""
    columns = create_views(spark, extracts)
    found = read_rows(spark.sql(staging_sql(columns, settings, declared, **arguments)))
    return sorted(found, key=lambda row: (row["change_seq"] or "", row["change_oper"] or ""))


def field_map(*fields: int) -> bytes:
    """A field map with these fields, by a reading of its own: field 1 is the first byte's 1."""
    stored = bytearray((max(fields, default=0) + 7) // 8)
    for field in fields:
        stored[(field - 1) // 8] |= 1 << (field - 1) % 8
    return bytes(stored)
