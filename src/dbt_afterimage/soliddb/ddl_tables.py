"""Which table a DDL record concerns, and whether the landed catalogue can tell it yet.

RELID is not documented for DDL records. Where it is missing the table is found by its name.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt_afterimage.soliddb.catalogue import newest_snapshot, relations_by_name
from dbt_afterimage.soliddb.record_ids import CREATE_TABLE, DDL


def relation_id() -> Column:
    """The id that a record itself gives."""
    return F.when(F.col("raw_relation_id") > 0, F.col("raw_relation_id"))


def with_tables(ddl: DataFrame, tables: DataFrame, table: str, landed_to: str | None) -> DataFrame:
    """Give DDL records the id of the table that they concern.

    Args:
        ddl: records of `raw.normal_log` with ddl_code, and ddl_name, which may be in quotes and
            have the database in front.
        tables: landed SYS_TABLES, all snapshots.
        table: name of the landed log, for messages.
        landed_to: address of the last COMMIT that is landed, None where there is none.

    Returns:
        The records, with

        - relation_id: NULL where the catalogue does not have the name
        - waits_for_tables: a snapshot that is newer than the record has to tell its table first
        - newest: address of the newest snapshot, NULL where there is none
    """
    name = F.upper(F.translate("ddl_name", '"', ""))
    named = F.broadcast(relations_by_name(tables, table, landed_to))
    newest = newest_snapshot(tables, table, landed_to).withColumnRenamed("taken_at", "newest")
    return (
        ddl.withColumn("relation_name", F.substring_index(name, ".", -2))
        .join(named, "relation_name", "left")
        .crossJoin(F.broadcast(newest))
        .withColumn("relation_id", F.coalesce(relation_id(), _relation_named()))
        .withColumn("waits_for_tables", F.coalesce(_waits(), F.lit(False)))
        .drop("relation_name", "relations")
    )


def _relation_named() -> Column:
    """The id that a name had when the record was written: a table may be dropped and made anew.

    A table that is being created appears in a later snapshot, any other one in an earlier one.
    """
    place = F.col("log_address")
    older = F.filter("relations", lambda relation: relation["first_taken"] <= place)
    newer = F.filter("relations", lambda relation: relation["first_taken"] > place)
    last_older, first_newer = F.get(older, F.size(older) - 1)["id"], F.get(newer, F.lit(0))["id"]
    is_new = F.col("ddl_code") == CREATE_TABLE
    return F.when(is_new, F.coalesce(first_newer, last_older)).otherwise(
        F.coalesce(last_older, first_newer)
    )


def _waits() -> Column:
    """True for DDL that is read wrongly, for ever, unless a newer snapshot is there.

    A staging view takes a table that is made anew for the one of that name only once it knows the
    id. What is read before then would not close the rows of the older id.
    """
    is_known = F.exists("relations", lambda relation: relation["id"] == relation_id())
    is_made_anew = (
        (F.col("ddl_code") == CREATE_TABLE)
        & F.col("relations").isNotNull()
        & ~F.coalesce(is_known, F.lit(False))
    )
    is_newer = F.col("newest").isNull() | (F.col("log_address") > F.col("newest"))
    is_whole = F.col("commit_address").isNotNull()
    return (F.col("record_id") == DDL) & is_made_anew & is_newer & is_whole
