"""Rebuilds the marts' rows of erased keys from the erased change log."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.erasure.keys import Scope
from dbt_afterimage.erasure.tables import ErasableTables, Mart
from dbt_afterimage.history.run import HistoryRows, rebuilt_keys
from dbt_afterimage.history.table import history_table, missing_columns
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.storage.checkpoint import unpersist
from dbt_afterimage.storage.mart_batch import ACTION, MartBatch
from dbt_afterimage.storage.progress import read_progress, spark_text, write_progress
from dbt_afterimage.storage.progress_cache import batch_json
from dbt_afterimage.storage.publish import current_version, publish
from dbt_afterimage.storage.schema_contract import Alterations
from dbt_afterimage.storage.schema_evolution import alter_table


def mart_rows(session: SparkSession, scope: Scope, mart: Mart) -> DataFrame:
    """Rows of a mart that hold data to erase."""
    rows = scope.rows_of_keys(session.table(mart.table))
    if scope.columns is None:
        return rows
    if mart.kind == "field_changes":
        return rows.filter(F.col("column_name").isin(*scope.columns))
    present = {name.lower() for name in rows.columns}
    has_data = F.lit(False)
    for name in scope.columns:
        if name.lower() in present:
            has_data = has_data | F.col(quoted(name)).isNotNull()
    return rows.filter(has_data)


def rebuild_mart_rows(session: SparkSession, scope: Scope, mart: Mart) -> None:
    """Replace a mart's rows of the keys by those that the erased log gives; one commit.

    Adjacent versions that differed only in an erased column become one version. The rows of a feed,
    which the log does not give, are deleted, or lose their values in the columns.

    Raises:
        ConcurrentRunError: a run wrote to the mart meanwhile.
    """
    tables = scope.tables
    if mart.kind == "scd2_history":
        added = missing_columns(session.table(mart.table).columns)
        alter_table(session, mart.table, Alterations(added), tables.table_format)
    version = current_version(session, mart.table, tables.table_format)
    if version is None:
        return
    for table in (tables.log, mart.history):
        if table:
            session.sql(f"refresh table {table}")
    checkpoints: list[DataFrame] = []
    try:
        if mart.kind == "scd2_history":
            found = _history_rows(session, scope, mart)
            checkpoints = found.checkpoints
            batch = MartBatch(found.rows, found.identity, "", version)
            if found.applied.unknown_columns:
                _reset_unknown_columns(session, tables, mart)
        elif mart.kind == "history_feed":
            batch = _batch_of_feed(session, scope, mart, version)
        else:
            batch = _batch_of_select(session, scope, mart, version)
        publish(session, mart.table, batch, tables.table_format)
    finally:
        for rows in checkpoints:
            unpersist(rows)


def _reset_unknown_columns(session: SparkSession, tables: ErasableTables, mart: Mart) -> None:
    """The next run queries the open versions for the columns that they do not know."""
    progress = read_progress(session, tables.progress, mart.name)
    batch = batch_json(spark_text(progress.recorded_at))
    write_progress(session, tables.progress, mart.name, progress, batch=batch)


def _history_rows(session: SparkSession, scope: Scope, mart: Mart) -> HistoryRows:
    tables = scope.tables
    log, history = session.table(tables.log), session.table(mart.table)
    table = history_table(
        name=mart.model,
        settings=tables.settings,
        log=tables.log,
        data_columns=tables.data_columns,
        log_columns=log.columns,
        beginning_of_time=tables.beginning_of_time,
        stored_columns=history.columns,
    )
    recorded_at = read_progress(session, tables.progress, mart.name).recorded_at
    return rebuilt_keys(log, history, table, scope.keys.rows, recorded_at)


def _batch_of_select(session: SparkSession, scope: Scope, mart: Mart, version: str) -> MartBatch:
    """All rows of a key are deleted, and those that the mart's statement yields are inserted."""
    stored = scope.rows_of_keys(session.table(mart.table))
    deleted = stored.select(*map(quoted, scope.tables.key)).distinct()
    made = scope.rows_of_keys(session.sql(str(mart.select)))
    rows = made.withColumn(ACTION, F.lit("insert")).unionByName(
        deleted.withColumn(ACTION, F.lit("delete")), allowMissingColumns=True
    )
    return MartBatch(rows, scope.tables.key, "", version)


def _batch_of_feed(session: SparkSession, scope: Scope, mart: Mart, version: str) -> MartBatch:
    """The images of the keys' versions; what happened to the versions remains if they do."""
    rows = mart_rows(session, scope, mart)
    identity = (f"{mart.model}_id", "feed_at", "feed_image")
    if scope.columns is None:
        return MartBatch(rows.withColumn(ACTION, F.lit("delete")), identity, "", version)
    erased = {name.lower() for name in scope.columns}
    nulled = {
        each.name: F.lit(None).cast(each.dataType)
        for each in rows.schema
        if each.name.lower() in erased
    }
    return MartBatch(
        rows.withColumns(nulled).withColumn(ACTION, F.lit("update")), identity, "", version
    )
