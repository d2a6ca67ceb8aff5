"""Erases keys from a change log and from its rejected records."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from dbt_afterimage.change_log.deciding.quarantine import record_key
from dbt_afterimage.erasure.keys import Scope
from dbt_afterimage.erasure.tables import ErasableTables
from dbt_afterimage.errors import conflicts_explained
from dbt_afterimage.internal_columns import PREFIX
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.spark.literals import text
from dbt_afterimage.storage.mart_batch import ACTION, MartBatch
from dbt_afterimage.storage.publish import current_version, publish
from dbt_afterimage.storage.temp_view import temporary_view

_IS_OWN = f"{PREFIX}is_own_key"
_IS_BEFORE = f"{PREFIX}is_before_key"


def log_rows(session: SparkSession, scope: Scope) -> DataFrame:
    """Rows of the change log that hold data to erase, with a flag for each of their two images."""
    log = session.table(scope.tables.log)
    rows = _flagged(_flagged(log, scope, _IS_OWN, ""), scope, _IS_BEFORE, "before")
    is_own, is_before = (F.coalesce(F.col(flag), F.lit(False)) for flag in (_IS_OWN, _IS_BEFORE))
    if scope.columns is None:
        return rows.filter(is_own | is_before)
    has_own, has_before = F.lit(False), F.lit(False)
    for name in scope.columns:
        has_own = has_own | F.col(quoted(name)).isNotNull()
        has_before = has_before | F.col("before")[name].isNotNull()
    return rows.filter((is_own & has_own) | (is_before & has_before))


def erase_from_log(session: SparkSession, scope: Scope) -> None:
    """Delete the rows of the keys, or set columns to NULL in both images; one commit.

    Raises:
        ConcurrentRunError: a run wrote to the log meanwhile.
    """
    tables, columns = scope.tables, scope.columns
    version = current_version(session, tables.log, tables.table_format)
    if version is None:
        return
    rows = log_rows(session, scope)
    if columns is not None:
        rows = rows.withColumns(_erased_images(rows.schema, columns))
    action = F.lit("delete" if columns is None else "update").alias(ACTION)
    identity = ["change_seq", "change_oper", "record_hash", *tables.key]
    batch = MartBatch(rows.drop(_IS_OWN, _IS_BEFORE).select("*", action), identity, "", version)
    publish(session, tables.log, batch, tables.table_format)


def correct_load_markers(session: SparkSession, tables: ErasableTables) -> None:
    """Set the row count of each full load to the rows that are left of it."""
    session.sql(f"refresh table {tables.log}")
    loads = session.table(tables.log).filter("change_oper = 'L'")
    counts = loads.groupBy("load_id").agg(
        F.count_if(F.col("load_rows").isNull()).alias("left"), F.max("load_rows").alias("marked")
    )
    for row in counts.filter("left < marked").collect():
        with conflicts_explained(tables.log):
            session.sql(
                f"update {tables.log} set load_rows = {row['left']} "
                f"where load_rows is not null and load_id = {text(row['load_id'])}"
            )


def rejected_rows(session: SparkSession, scope: Scope) -> DataFrame | None:
    """Rejected records of the keys that still have their text; None without such a table."""
    if not session.catalog.tableExists(scope.tables.rejected):
        return None
    rejected = session.table(scope.tables.rejected).filter("raw_record is not null")
    return rejected.join(F.broadcast(_rejected_keys(scope)), "record_key", "left_semi")


def erase_from_rejected(session: SparkSession, scope: Scope) -> None:
    """Set the text of rejected records of the keys to NULL, and with whole records their key.

    The rows stay, without data: by its hash a record that is read again is known as rejected.

    Raises:
        ConcurrentRunError: a run wrote to the table meanwhile.
    """
    rejected = scope.tables.rejected
    if not session.catalog.tableExists(rejected):
        return
    changes = "target.raw_record = null"
    if scope.columns is None:
        changes += (
            ", target.record_key = null, "
            "target.resolved_at = coalesce(target.resolved_at, current_timestamp())"
        )
    with temporary_view(_rejected_keys(scope)) as view, conflicts_explained(rejected):
        session.sql(
            f"merge into {rejected} as target using {view} as source "
            "on target.record_key = source.record_key and "
            f"{'true' if scope.columns is None else 'target.raw_record is not null'} "
            f"when matched then update set {changes}"
        )


def rejected_without_key(session: SparkSession, tables: ErasableTables) -> int:
    """How many rejected records do not say whose they are."""
    if not session.catalog.tableExists(tables.rejected):
        return 0
    rows = session.table(tables.rejected)
    return rows.filter("record_key is null and raw_record is not null").count()


def _rejected_keys(scope: Scope) -> DataFrame:
    return scope.keys.rows.select(record_key(scope.tables.key).alias("record_key"))


def _flagged(rows: DataFrame, scope: Scope, flag: str, image: str) -> DataFrame:
    """Rows with a flag that is true where the key of an image, or of the row, is to be erased."""
    key = scope.tables.key
    names = [f"{flag}_{number}" for number in range(len(key))]
    given = scope.keys.rows.toDF(*names).withColumn(flag, F.lit(True))
    same = F.lit(True)
    for name, other in zip(key, names, strict=True):
        value = F.col(image)[name] if image else F.col(quoted(name))
        same = same & (value == F.col(other))
    return rows.join(F.broadcast(given), same, "left").drop(*names)


def _erased_images(schema: StructType, columns: Sequence[str]) -> dict[str, Column]:
    """The columns as NULL where the row's key is erased, and in `before` where its key is."""
    images = schema["before"].dataType
    assert isinstance(images, StructType)
    before = F.struct(
        *[
            (
                F.lit(None).cast(field.dataType)
                if field.name in columns
                else F.col("before")[field.name]
            ).alias(field.name)
            for field in images.fields
        ]
    )
    erased = {name: F.when(F.col(_IS_OWN).isNull(), F.col(quoted(name))) for name in columns}
    return {
        **erased,
        "before": F.when(F.col(_IS_BEFORE).isNull(), F.col("before")).when(
            F.col("before").isNotNull(), before
        ),
    }
