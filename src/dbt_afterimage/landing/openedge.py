"""Extracts OpenEdge's tracking and change tables over JDBC, incrementally, names kept.

Each extract begins `look_back` sequences before the last one that was landed, since there is no
commit marker and a lower sequence may become visible after a higher one. What was landed already is
left out again. A change whose halves come in two extracts is no harm: staging waits for the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbt_afterimage.kept_rows import keep, release

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TRACKING = "_Cdc-Change-Tracking"
SEQUENCE = "_Change-Sequence"
TABLE_NUMBER = "_Source-Table-Number"
# What tells a row of either table from all others: their primary indexes.
TRACKING_KEY = (TABLE_NUMBER, SEQUENCE, "_Operation")
CHANGE_KEY = (SEQUENCE, "_Operation", "_Continuation-Position")


@dataclass(frozen=True)
class CapturedTable:
    """A source table to extract.

    Attributes:
        name: of its change table in the database, such as `CDC_Customer`.
        landed: the table that it is landed in.
        number: the source table's number.
        look_back: how many sequences an extract reads again.
        has_values: it has a change table with values (policy levels 2 and 3).
    """

    name: str
    landed: str
    number: int
    look_back: int
    has_values: bool


class LandingError(ValueError):
    """An extract cannot be made as asked; the text is meant for the user."""


def land(
    session: SparkSession,
    options: dict[str, str],
    owner: str,
    tracking: str,
    tables: Sequence[CapturedTable],
    table_format: str,
) -> dict[str, int]:
    """Append what is new to the landed tables; those that are missing are created.

    Args:
        session: the live Spark session, with the driver's jar.
        options: of Spark's JDBC reader, such as `url`, `driver`, `user` and `password`.
        owner: schema of the tables in the database, such as `PUB`.
        tracking: the table that the tracking table is landed in.
        tables: what to extract.
        table_format: `iceberg` or `delta`.

    Returns:
        Landed table -> number of new rows.

    Raises:
        LandingError: there is nothing to extract.
    """
    if not tables:
        raise LandingError(
            "`land openedge`: no table of the source has a `table_number`. Cure: set it in the "
            "`meta.afterimage` of each change table's entry."
        )
    reader = _Reader(session, options, owner, table_format)
    wanted = " or ".join(
        f'("{TABLE_NUMBER}" = {table.number} and "{SEQUENCE}" > '
        f"{reader.last(tracking, table.number) - table.look_back})"
        for table in tables
    )
    # Changes after their tracking rows: then nearly all halves of an extract find each other.
    landed = {tracking: reader.append(TRACKING, tracking, wanted, TRACKING_KEY)}
    for table in tables:
        if table.has_values:
            since = reader.last(table.landed) - table.look_back
            condition = f'"{SEQUENCE}" > {since}'
            landed[table.landed] = reader.append(table.name, table.landed, condition, CHANGE_KEY)
    return landed


class _Reader:
    def __init__(
        self, session: SparkSession, options: dict[str, str], owner: str, table_format: str
    ) -> None:
        self._session = session
        self._options = options
        self._owner = owner
        self._format = table_format

    def last(self, landed: str, number: int | None = None) -> int:
        """The greatest sequence that was landed; 0 when none was."""
        from pyspark.sql import functions as F

        if not self._session.catalog.tableExists(landed):
            return 0
        rows: DataFrame = self._session.table(landed)
        if number is not None:
            rows = rows.filter(F.col(f"`{TABLE_NUMBER}`") == number)
        found = rows.agg(F.max(f"`{SEQUENCE}`")).first()
        return int(found[0]) if found and found[0] is not None else 0

    def append(self, name: str, landed: str, condition: str, key: Sequence[str]) -> int:
        """Append the rows of a table that meet a condition and were not landed yet."""
        from pyspark.sql import functions as F

        query = f'(select * from "{self._owner}"."{name}" where {condition}) captured'
        rows = self._session.read.format("jdbc").options(**self._options, dbtable=query).load()
        exists = self._session.catalog.tableExists(landed)
        if exists:
            known = self._session.table(landed)
            same: Any = F.lit(True)
            for column in [column for column in key if column in rows.columns]:
                same = same & (rows[f"`{column}`"].eqNullSafe(known[f"`{column}`"]))
            rows = rows.join(known, same, "left_anti")
        rows = keep(rows.withColumn("_landed_at", F.current_timestamp()))
        try:
            count = rows.count()
            if not exists:
                rows.writeTo(landed).using(self._format).create()
            elif count:
                rows.writeTo(landed).append()
        finally:
            release(rows)
        return count
