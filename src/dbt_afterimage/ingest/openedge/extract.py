"""Extracts OpenEdge's tracking and change tables over JDBC, incrementally, names kept.

Each extract begins `look_back` sequences before the last one that was landed, since there is no
commit marker and a lower sequence may become visible after a higher one. What was landed already is
left out again. A change whose halves come in two extracts is safe: staging waits for the other.

Sequences count for one policy: the tracking table, which names policies, is extracted for each of
them. A change table does not name them; where a later policy has restarted it is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.errors import without_plan
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.storage.checkpoint import checkpoint, unpersist
from dbt_afterimage.storage.create import table_writer
from dbt_afterimage.storage.schema_contract import Alterations
from dbt_afterimage.storage.schema_evolution import alter_table, column_types

TRACKING = "_Cdc-Change-Tracking"
SEQUENCE = "_Change-Sequence"
TABLE_NUMBER = "_Source-Table-Number"
POLICY = "_Policy-Id"
# What identifies a row of either table: its primary index, and the policy, since under another
# policy a purged number may come again.
TRACKING_KEY = (TABLE_NUMBER, POLICY, SEQUENCE, "_Operation")
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
        other_policies: ids of policies whose changes belong to another table.
    """

    name: str
    landed: str
    number: int
    look_back: int
    has_values: bool
    other_policies: Sequence[str] = ()


class LandingError(ValueError):
    """The requested extract is not possible; the text is meant for the user."""


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

    Returns:
        Landed table -> number of new rows.

    Raises:
        LandingError: there is nothing to extract, or a change table cannot be; all that can be is
            landed all the same.
    """
    if not tables:
        raise LandingError(
            "`land openedge`: no table of the source has a `table_number`. Fix: set it in the "
            "`meta.afterimage` of each change table's entry."
        )
    reader = _Reader(session, options, owner, table_format)
    places = reader.policies(tracking)
    wanted = " or ".join(_tracking_rows(table, places.get(table.number, [])) for table in tables)
    # Changes after their tracking rows: then nearly all halves of an extract find each other.
    landed = {tracking: reader.append(TRACKING, tracking, wanted, TRACKING_KEY)}
    places = reader.policies(tracking)
    problems = []
    for table in tables:
        if not table.has_values:
            continue
        try:
            _check_restart(table, places.get(table.number, []))
            condition = _change_rows(table, reader.last(table.landed), owner)
            landed[table.landed] = reader.append(table.name, table.landed, condition, CHANGE_KEY)
        except LandingError as error:
            problems.append(str(error))
        except (PySparkException, Py4JJavaError) as error:
            problems.append(
                f"`land openedge`: table {table.name} could not be landed in {table.landed}; no "
                "row is lost while the database keeps it. Fix: mend what Spark or the database "
                f"says, and land again. It says: {without_plan(str(error))}"
            )
    if problems:
        counts = ", ".join(f"{name}: {count}" for name, count in landed.items())
        raise LandingError("\n".join([*problems, f"New rows of this extract, {counts}."]))
    return landed


@dataclass(frozen=True)
class _Place:
    """How far a policy has come in the landed tracking table, for one source table."""

    policy: str
    first: int
    last: int


def _tracking_rows(table: CapturedTable, places: Sequence[_Place]) -> str:
    """Which tracking rows of a table to extract: of each policy those behind its own last one."""
    policy = f"coalesce(\"{POLICY}\", '')"
    begun = [
        f'({policy} = {_literal(place.policy)} and "{SEQUENCE}" > {place.last - table.look_back})'
        for place in places
    ]
    of_table = f'"{TABLE_NUMBER}" = {table.number}'
    if not places:
        return f"({of_table})"
    others = f"{policy} not in ({', '.join(_literal(place.policy) for place in places)})"
    return f"({of_table} and ({' or '.join([*begun, others])}))"


def _change_rows(table: CapturedTable, last: int, owner: str) -> str:
    """Which change rows of a table to extract; the tracking table knows of which policy they are.

    A number is there once: in the database the two of them identify a single tracking row.
    """
    behind = f'extracted."{SEQUENCE}" > {last - table.look_back}'
    if not table.other_policies:
        return behind
    others = ", ".join(_literal(policy) for policy in table.other_policies)
    return (
        f'{behind} and not exists (select 1 from "{owner}"."{TRACKING}" tracked '
        f'where tracked."{TABLE_NUMBER}" = {table.number} '
        f'and tracked."{SEQUENCE}" = extracted."{SEQUENCE}" '
        f'and tracked."{POLICY}" in ({others}))'
    )


def _check_restart(table: CapturedTable, places: Sequence[_Place]) -> None:
    """Stop where a later policy is not behind the one before; the macro's guard does the same.

    Args:
        places: of its policies, the oldest one first.

    Raises:
        LandingError: the sequence has restarted.
    """
    others = [policy.strip() for policy in table.other_policies]
    own = [place for place in places if place.policy.strip() not in others]
    for before, place in pairwise(own):
        if place.first <= before.last:
            raise LandingError(
                f"`land openedge`: the change sequence of table {table.name} has restarted. It "
                f"had come to {before.last} under policy {before.policy.strip()}, and under the "
                f"later policy {place.policy.strip()} it starts at {place.first}. Its tracking "
                "rows were landed, no row of the change table was. Fix: set `other_policies: "
                f"['{place.policy.strip()}']` in the table's `meta.afterimage`, and declare the "
                "change table once more in a source of its own, where it is the other way round; "
                "docs/openedge.md shows it."
            )


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class _Reader:
    def __init__(
        self, session: SparkSession, options: dict[str, str], owner: str, table_format: str
    ) -> None:
        self._session = session
        self._options = options
        self._owner = owner
        self._format = table_format

    def policies(self, tracking: str) -> dict[int, list[_Place]]:
        """Table number -> how far each of its policies was landed, by the time it began."""
        if not self._session.catalog.tableExists(tracking):
            return {}
        number, policy = F.col(f"`{TABLE_NUMBER}`"), F.coalesce(F.col(f"`{POLICY}`"), F.lit(""))
        sequence = F.col(f"`{SEQUENCE}`")
        # as text where the driver has no type for a time with a zone
        begun = F.min(F.expr("try_cast(`_Time-Stamp` as timestamp)"))
        rows = (
            self._session.table(tracking)
            .groupBy(number.alias("number"), policy.alias("policy"))
            .agg(
                begun.alias("begun"), F.min(sequence).alias("first"), F.max(sequence).alias("last")
            )
            .orderBy("begun", "first")
        )
        found: dict[int, list[_Place]] = {}
        for row in rows.collect():
            place = _Place(row["policy"], int(row["first"]), int(row["last"]))
            found.setdefault(row["number"], []).append(place)
        return found

    def last(self, landed: str) -> int:
        """The greatest sequence that was landed; 0 when none was."""
        if not self._session.catalog.tableExists(landed):
            return 0
        found = self._session.table(landed).agg(F.max(f"`{SEQUENCE}`")).first()
        return int(found[0]) if found and found[0] is not None else 0

    def append(self, name: str, landed: str, condition: str, key: Sequence[str]) -> int:
        """Append the rows of a table that meet a condition and were not landed yet."""
        query = f'(select * from "{self._owner}"."{name}" extracted where {condition}) captured'
        rows = self._extracted(query)
        exists = self._session.catalog.tableExists(landed)
        if exists:
            self._add_columns(landed, rows)
            known = self._session.table(landed)
            same: Any = F.lit(True)
            for column in [column for column in key if column in rows.columns]:
                same = same & (rows[f"`{column}`"].eqNullSafe(known[f"`{column}`"]))
            rows = rows.join(known, same, "left_anti")
        rows = checkpoint(rows.withColumn("_landed_at", F.current_timestamp()))
        try:
            count = rows.count()
            if not exists:
                table_writer(rows, landed, self._format).create()
            elif count:
                rows.writeTo(landed).append()
        finally:
            unpersist(rows)
        return count

    def _extracted(self, query: str) -> DataFrame:
        """The rows of a query.

        Times without a zone are read as text: Spark would take them for times in the zone of Java,
        and change those that summer time leaves out.
        """
        reader = self._session.read.format("jdbc").options(**self._options, dbtable=query)
        types = reader.option("preferTimestampNTZ", "true").load().dtypes
        without_zone = [name for name, kind in types if kind == "timestamp_ntz"]
        as_text = ", ".join(f"{quoted(name)} string" for name in without_zone)
        rows = reader.option("customSchema", as_text).load() if as_text else reader.load()
        return rows.withColumns(
            {name: F.col(quoted(name)).cast("timestamp") for name in without_zone}
        )

    def _add_columns(self, landed: str, rows: DataFrame) -> None:
        """A field that the policy was given later: rows that were landed before have NULL in it."""
        there = {name.lower() for name in self._session.table(landed).columns}
        new = {
            quoted(name): kind
            for name, kind in column_types(rows.schema).items()
            if name.lower() not in there
        }
        alter_table(self._session, landed, Alterations(added=new), self._format)
