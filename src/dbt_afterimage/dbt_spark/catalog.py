"""Tables in `dbt docs`: types that a page can break, rows that a query would find."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from dbt_afterimage.spark.session import current

_ROWS = "stats:rows:"


def readable_columns(relation: Any, columns: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Corrects what dbt-spark's adapter gives to the catalog.

    Args:
        columns: the catalog's entry of each of its columns, which repeats the table's statistics.
    """
    entries = list(columns)
    if entries and f"{_ROWS}value" in entries[0]:
        rows = _rows(str(relation), entries[0][f"{_ROWS}value"])
        entries = [_with_rows(entry, rows) for entry in entries]
    for entry in entries:
        # The column `before` is a struct of the whole row. In one line it is so wide that the
        # descriptions of the columns are beyond the edge of the page.
        yield {**entry, "column_type": re.sub(r",\s*", ", ", str(entry["column_type"]))}


def _with_rows(column: dict[str, Any], rows: int | None) -> dict[str, Any]:
    """The column's entry with this number of rows, or without any where it is not known."""
    if rows is None:
        return {name: value for name, value in column.items() if not name.startswith(_ROWS)}
    return {**column, f"{_ROWS}value": rows}


def _rows(table: str, shown: int) -> int | None:
    """Rows of an Iceberg table as its newest snapshot counts them; None where it does not.

    Args:
        shown: Spark's own figure. On Iceberg it has rows that were deleted by position, too; of
            other tables it is what someone had counted by ANALYZE TABLE, and stays.
    """
    from pyspark.errors import AnalysisException

    from dbt_afterimage.storage.formats import format_named

    session = current()
    try:
        snapshot = format_named("iceberg").version(session, table)
    except AnalysisException:  # not a table of Iceberg: it has no table of its snapshots
        return shown
    if snapshot is None:
        return None
    # how many rows are deleted by equality is known to those who read the table only
    found = session.sql(
        "select cast(summary['total-records'] as bigint) "
        "- cast(summary['total-position-deletes'] as bigint) from "
        f"{table}.snapshots where snapshot_id = {snapshot} "
        "and summary['total-equality-deletes'] = '0'"
    ).first()
    return None if found is None or found[0] is None else int(found[0])
