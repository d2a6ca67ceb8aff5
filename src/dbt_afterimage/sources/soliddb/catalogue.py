"""The catalogue, SYS_COLUMNS, with validity by log address: which columns a record was written by.

The catalogue is landed as snapshots: the rows of SYS_TABLES and SYS_COLUMNS, each with
`snapshot_logaddr`, the log's address when they were read. Between two DDL records that change a
table its columns are the same, so one snapshot between them gives the columns of all records there,
before the snapshot and after it. Nothing is guessed across a DDL record: a snapshot counts once the
log is landed up to it, since only then all DDL records before it are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from dbt_afterimage.sources.soliddb.raw import RawLogError, address
from dbt_afterimage.sources.soliddb.value_columns import Column
from dbt_afterimage.storage.local_relation import local_rows

_COLUMNS_COLUMNS = (
    "rel_id",
    "column_name",
    "column_number",
    "data_type",
    "data_type_number",
    "attr_type",
    "snapshot_logaddr",
)
_TABLES_COLUMNS = ("id", "table_name", "table_schema", "snapshot_logaddr")
_VALIDITY = "layout int, layout_relation_id int, valid_from string, valid_to string"
# The columns as they are: what a user has made, no part of an index.
_USER_COLUMN = 0


@dataclass(frozen=True)
class Validity:
    """The columns of a table from one log address to another, [valid_from, valid_to).

    Attributes:
        relation_id: REL_ID.
        valid_from: capital hex text; "" for the beginning.
        valid_to: None for no end.
        columns: in the order of COLUMN_NUMBER.
    """

    relation_id: int
    valid_from: str
    valid_to: str | None
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Catalogue:
    """The columns of all tables at all times that are known.

    Attributes:
        validities: numbered by their place in the list.
        newest: address of the newest snapshot, None where there is none: what a later record was
            written by may still be landed.
    """

    validities: tuple[Validity, ...]
    newest: str | None

    @property
    def layouts(self) -> dict[int, tuple[Column, ...]]:
        """Number of a validity -> its columns."""
        return {number: validity.columns for number, validity in enumerate(self.validities)}

    def frame(self, session: SparkSession) -> DataFrame:
        """The validities as rows, to join with records: they are few."""
        rows = [
            (number, validity.relation_id, validity.valid_from, validity.valid_to)
            for number, validity in enumerate(self.validities)
        ]
        return local_rows(session, rows, _VALIDITY)


def read_catalogue(
    columns: DataFrame,
    boundaries: Mapping[int, Iterable[str]],
    table: str,
    landed_to: str | None,
) -> Catalogue:
    """The catalogue with its validity.

    Args:
        columns: landed SYS_COLUMNS, all snapshots.
        boundaries: table id -> addresses of the DDL records that may have changed its columns.
        landed_to: address of the last COMMIT that is landed, None where there is none.

    Returns:
        One validity per table and stretch between two DDL records of it that has a snapshot. Where
        it has several, the newest one holds.

    Raises:
        RawLogError: a column is missing.
    """
    _check_columns(columns, table, _COLUMNS_COLUMNS)
    session = columns.sparkSession
    ordered = {relation: sorted(set(found)) for relation, found in boundaries.items()}
    places = local_rows(
        session, ordered.items(), "boundary_relation_id int, boundaries array<string>"
    )
    rows = columns.select(
        F.col("rel_id").try_cast("int").alias("relation_id"),
        _taken_at(columns),
        F.struct(
            F.col("column_number").try_cast("int").alias("number"),
            F.col("column_name").alias("name"),
            F.col("data_type_number").try_cast("int").alias("type_number"),
            F.upper(F.trim("data_type")).alias("sql_type"),
        ).alias("column"),
        F.col("attr_type").try_cast("int").alias("attr_type"),
    )
    counts = (F.col("attr_type") == _USER_COLUMN) & _is_landed(landed_to)
    of_table = rows.filter(counts).join(
        F.broadcast(places), F.col("relation_id") == F.col("boundary_relation_id"), "left"
    )
    passed = F.coalesce(
        F.size(F.filter("boundaries", lambda place: place <= F.col("taken_at"))), F.lit(0)
    )
    # one row per table and stretch reaches the driver, however often the catalogue was landed
    found = (
        of_table.withColumn("stretch", F.greatest(passed, F.lit(0)))
        .withColumn(
            "last_taken", F.max("taken_at").over(Window.partitionBy("relation_id", "stretch"))
        )
        .filter(F.col("taken_at") == F.col("last_taken"))
        .groupBy("relation_id", "stretch", "last_taken")
        .agg(F.sort_array(F.collect_set("column")).alias("columns"))
        .orderBy("relation_id", "stretch")
        .collect()
    )
    validities = []
    for row in found:
        limits = ordered.get(row["relation_id"], [])
        stretch = row["stretch"]
        validities.append(
            Validity(
                relation_id=row["relation_id"],
                valid_from=limits[stretch - 1] if stretch else "",
                valid_to=limits[stretch] if stretch < len(limits) else None,
                columns=tuple(
                    Column(column["name"], column["type_number"], column["sql_type"] or "")
                    for column in row["columns"]
                ),
            )
        )
    newest = max((row["last_taken"] for row in found), default=None)
    return Catalogue(tuple(validities), newest)


def relations_by_name(tables: DataFrame, table: str, landed_to: str | None) -> DataFrame:
    """The ids that a table name has had, for DDL records that identify a table by its name.

    Args:
        tables: landed SYS_TABLES, all snapshots.
        landed_to: as for `read_catalogue`.

    Returns:
        One row per relation_name, in capitals, with and without the schema; relations: an array of
        (first_taken, id, table_schema, gone_at), by the address of the first snapshot that has the
        id under that name. gone_at is that of the first one that has it no more, NULL without one.
    """
    _check_columns(tables, table, _TABLES_COLUMNS)
    full_name = F.concat_ws(".", F.upper("table_schema"), F.upper("table_name"))
    seen = tables.select(
        F.col("id").try_cast("int").alias("id"),
        F.upper("table_schema").alias("table_schema"),
        F.explode(F.array(F.upper("table_name"), full_name)).alias("relation_name"),
        _taken_at(tables),
    ).filter(_is_landed(landed_to))
    snapshots = seen.agg(F.sort_array(F.collect_set("taken_at")).alias("snapshots"))
    later = F.filter("snapshots", lambda taken_at: taken_at > F.col("last_taken"))
    return (
        seen.groupBy("relation_name", "id", "table_schema")
        .agg(F.min("taken_at").alias("first_taken"), F.max("taken_at").alias("last_taken"))
        .crossJoin(F.broadcast(snapshots))
        .withColumn("gone_at", F.get(later, F.lit(0)))
        .groupBy("relation_name")
        .agg(
            F.sort_array(
                F.collect_list(F.struct("first_taken", "id", "table_schema", "gone_at"))
            ).alias("relations")
        )
    )


def newest_snapshot(tables: DataFrame, landed_to: str | None) -> DataFrame:
    """One row, taken_at: address of the newest snapshot of SYS_TABLES, NULL where there is none.

    Arguments are those of `relations_by_name`, which checks the columns.
    """
    taken_at = tables.select(_taken_at(tables)).filter(_is_landed(landed_to))
    return taken_at.agg(F.max("taken_at").alias("taken_at"))


def _taken_at(snapshots: DataFrame) -> SparkColumn:
    return F.coalesce(address(snapshots, "snapshot_logaddr"), F.lit("")).alias("taken_at")


def _is_landed(landed_to: str | None) -> SparkColumn:
    return F.col("taken_at") <= F.lit(landed_to or "")


def _check_columns(frame: DataFrame, table: str, wanted: Sequence[str]) -> None:
    names = {name.lower() for name in frame.columns}
    missing = [name for name in wanted if name not in names]
    if missing:
        raise RawLogError(
            f"Source table {table} lacks the column `{'`, `'.join(missing)}`. It must have the "
            "columns of the system table and `snapshot_logaddr`, the log's address when the "
            "snapshot was read (NULL: before the first landed record). Fix: land them, or put a "
            "view over the table."
        )
