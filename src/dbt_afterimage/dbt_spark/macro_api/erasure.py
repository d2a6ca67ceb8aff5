"""Which tables hold data of a source table, for `afterimage erase`."""

from __future__ import annotations

from typing import Any

from dbt_afterimage.dbt_spark.macro_api.registry import macro_method

_handed_over: list[dict[str, Any]] = []


@macro_method()
def hand_over_erasable_tables(adapter: Any, tables: dict[str, Any]) -> None:
    """Keep what the macro `erasable_tables` found for the command that called it.

    Args:
        adapter: dbt's adapter.
        tables: fields of `erasure.tables.ErasableTables`.
    """
    _handed_over[:] = [tables]


def take_erasable_tables() -> dict[str, Any]:
    """What the macro has handed over in this process."""
    return _handed_over.pop()
