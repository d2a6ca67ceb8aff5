"""Which table a DDL record concerns, and whether the landed catalogue has it yet.

RELID is not documented for DDL records. Where it is missing the table is found by its name.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt_afterimage.sources.soliddb.catalogue import newest_snapshot, relations_by_name
from dbt_afterimage.sources.soliddb.raw import RawLogError
from dbt_afterimage.sources.soliddb.record_ids import CONCERNS_ROWS, CREATE_TABLE, DDL, DDL_KINDS


def relation_id() -> Column:
    """The id that a record itself gives."""
    return F.when(F.col("raw_relation_id") > 0, F.col("raw_relation_id"))


def with_tables(ddl: DataFrame, tables: DataFrame, table: str, landed_to: str | None) -> DataFrame:
    """Give DDL records the id of the table that they concern.

    Args:
        ddl: records of `raw.normal_log` with ddl_code, and ddl_name, which may be in quotes and
            have the database in front.
        landed_to: address of the last COMMIT that is landed, None where there is none.

    Returns:
        The records, with

        - relation_id: NULL where the catalogue does not have the name
        - schemas: those that have a table of the name, if that leaves more than one candidate
        - waits_for_tables: the table is not known until a snapshot newer than the record has landed
        - newest: address of the newest snapshot, NULL where there is none
    """
    name = F.upper(F.translate("ddl_name", '"', ""))
    named = F.broadcast(relations_by_name(tables, table, landed_to))
    newest = newest_snapshot(tables, landed_to).withColumnRenamed("taken_at", "newest")
    return (
        ddl.withColumn("relation_name", F.substring_index(name, ".", -2))
        .join(named, "relation_name", "left")
        .crossJoin(F.broadcast(newest))
        .withColumn("relation_id", F.coalesce(relation_id(), _relation_named()))
        .withColumn("schemas", _schemas())
        .withColumn("waits_for_tables", F.coalesce(_waits(), F.lit(False)))
        .drop("relation_name", "relations")
    )


def check_names(ddl: DataFrame, table: str) -> None:
    """Stop where a name fits tables of several schemas.

    Raises:
        RawLogError: which table a record concerns is not known.
    """
    wanted = ("log_address", "ddl_code", "ddl_name", "schemas")
    found = ddl.filter(F.col("schemas").isNotNull()).agg(F.min(F.struct(*wanted))).first()
    if found is None or found[0] is None:
        return
    log_address, code, name, schemas = found[0]
    raise RawLogError(
        f"Source table {table}: the DDL record at LOGADDR {log_address} ({DDL_KINDS[code]} {name}) "
        f"has no RELID, and the catalogue has a table of that name in the schemas "
        f"{', '.join(map(str, schemas))}: which of them it concerns is not known. Nothing was "
        "written. Fix: give the record the RELID of its table by a view over the table."
    )


def _relation_named() -> Column:
    """The id that a name had when the record was written: a table may be dropped and recreated.

    A table that is being created appears in a later snapshot, any other one in an earlier one.
    """
    newer, older, live = _newer(), _older(), _live()
    last_live, last_older = _last_id(live), _last_id(older)
    first_newer = F.get(newer, F.lit(0))["id"]
    is_new = F.col("ddl_code") == CREATE_TABLE
    return F.when(is_new, F.coalesce(first_newer, last_older)).otherwise(
        F.coalesce(last_live, first_newer, last_older)
    )


def _last_id(relations: Column) -> Column:
    return F.get(relations, F.size(relations) - 1)["id"]


def _older() -> Column:
    place = F.col("log_address")
    return F.filter("relations", lambda relation: relation["first_taken"] <= place)


def _newer() -> Column:
    place = F.col("log_address")
    return F.filter("relations", lambda relation: relation["first_taken"] > place)


def _live() -> Column:
    """The table of this name in the newest snapshot before the record."""
    place = F.col("log_address")
    return F.filter(
        _older(), lambda relation: relation["gone_at"].isNull() | (relation["gone_at"] > place)
    )


def _schemas() -> Column:
    """Schemas of the tables that a record may concern, where these are several; else NULL."""
    next_taken = F.get(_newer(), F.lit(0))["first_taken"]
    next_ones = F.filter("relations", lambda relation: relation["first_taken"] == next_taken)
    candidates = F.when(F.size(_live()) > 0, _live()).otherwise(next_ones)
    schemas = F.array_distinct(F.transform(candidates, lambda one: one["table_schema"]))
    needs_name = relation_id().isNull() & F.col("ddl_code").isin(*CONCERNS_ROWS)
    is_whole = F.col("commit_address").isNotNull()
    return F.when(needs_name & is_whole & (F.size(schemas) > 1), schemas)


def _waits() -> Column:
    """True for DDL that is read wrongly, for ever, unless a newer snapshot is there.

    A renamed table has its name in none yet. A staging view takes a recreated table for the one
    of that name only once it knows the id: what is read before then would not close the rows of
    the older id.
    """
    is_known = F.exists("relations", lambda relation: relation["id"] == relation_id())
    is_recreated = (
        (F.col("ddl_code") == CREATE_TABLE)
        & F.col("relations").isNotNull()
        & ~F.coalesce(is_known, F.lit(False))
    )
    is_unknown = F.col("ddl_code").isin(*CONCERNS_ROWS) & F.col("relation_id").isNull()
    is_newer = F.col("newest").isNull() | (F.col("log_address") > F.col("newest"))
    is_whole = F.col("commit_address").isNotNull()
    return (F.col("record_id") == DDL) & (is_recreated | is_unknown) & is_newer & is_whole
