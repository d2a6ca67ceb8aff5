"""Versions of a whole log by the history chain, for tests that have a Spark session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbt_afterimage.history.names import IS_PRIOR, VERSION_ID
from dbt_afterimage.history.profile import ChangeContent
from dbt_afterimage.history.table import HistoryTable
from dbt_afterimage.history.versions import versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def versions_of(
    log: DataFrame,
    columns: list[str],
    key: list[str],
    *,
    tracked: list[str] | None = None,
    base: Any = None,
    **content: Any,
) -> DataFrame:
    """The versions of a whole log.

    Args:
        log: change log rows.
        columns: names of the data columns.
        key: names of the key columns.
        tracked: columns whose change makes a version; None for all but the key.
        base: the kind of base table.
        content: fields of `ChangeContent`.
    """
    data = [name for name in columns if name not in key]
    table = HistoryTable(
        columns=tuple(columns),
        key=tuple(key),
        tracked=tuple(data if tracked is None else tracked),
        base=base,
    )
    given = ChangeContent(has_loads=base is not None, **content)
    found = versions(log, table, given, checkpoints=[])
    return found.drop(VERSION_ID, IS_PRIOR)
