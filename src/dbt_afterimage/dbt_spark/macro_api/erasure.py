"""Which tables hold data of a source table, for `afterimage erase`."""

from __future__ import annotations

from typing import Any

from dbt_afterimage.dbt_spark.macro_api.registry import macro_method

_handed_over: list[dict[str, Any]] = []


@macro_method()
def hand_over_erasable_tables(adapter: Any, tables: dict[str, Any]) -> None:
    """Keep what the macro `erasable_tables` found for the command that called it.

    Args:
        tables: fields of `erasure.tables.ErasableTables`.
    """
    _handed_over[:] = [tables]


@macro_method(while_parsing="")
def key_hash_sql(adapter: Any, change_log: str, key: list[str], staging: Any) -> str:
    """SQL: the hash of a staged record's key, as `afterimage_erasures` has it."""
    from dbt_afterimage.erased import key_hash
    from dbt_afterimage.spark.session import current
    from dbt_afterimage.storage.schema_evolution import column_types
    from dbt_afterimage.storage.stored_view import readable_name

    session = current()
    types = column_types(session.table(readable_name(session, str(staging))).schema)
    spelt = {name.lower(): name for name in types}
    return key_hash.key_hash_sql(
        change_log, key, {name: types[spelt[name.lower()]] for name in key}
    )


def take_erasable_tables() -> dict[str, Any]:
    """The request that the macro has handed over in this process."""
    return _handed_over.pop()
