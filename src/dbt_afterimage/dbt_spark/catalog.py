"""What `dbt docs` shows of a table: types that a page can break, rows that a query would find."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_ROWS = "stats:rows:"


def make_catalog_readable(adapter: type[Any]) -> None:
    """Correct what ``SparkAdapter`` gives to the catalog, in place."""
    of_catalog = adapter._get_columns_for_catalog

    def _get_columns_for_catalog(self: Any, relation: Any) -> Iterator[dict[str, Any]]:
        columns = list(of_catalog(self, relation))
        # what dbt-spark knows of the table is repeated with each column
        if columns and f"{_ROWS}value" in columns[0]:
            rows = _rows(str(relation), columns[0][f"{_ROWS}value"])
            columns = [_with_rows(column, rows) for column in columns]
        for column in columns:
            # The column `before` is a struct of the whole row. In one line it is so wide that the
            # descriptions of the columns are beyond the edge of the page.
            yield {**column, "column_type": re.sub(r",\s*", ", ", str(column["column_type"]))}

    adapter._get_columns_for_catalog = _get_columns_for_catalog


def _with_rows(column: dict[str, Any], rows: int | None) -> dict[str, Any]:
    """The column's entry with this number of rows, or without any where it is not known."""
    if rows is None:
        return {name: value for name, value in column.items() if not name.startswith(_ROWS)}
    return {**column, f"{_ROWS}value": rows}


def _rows(table: str, shown: int) -> int | None:
    """Rows of an Iceberg table as its newest snapshot counts them; None where it does not.

    Args:
        table: any table.
        shown: Spark's own figure. On Iceberg it has rows that were deleted by position, too; of
            other tables it is what someone had counted by ANALYZE TABLE, and stays.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql import SparkSession

    from dbt_afterimage.storage.formats import format_named

    session = SparkSession.builder.getOrCreate()
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
