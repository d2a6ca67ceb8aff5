"""A mart batch as one MERGE, which every format understands."""

from __future__ import annotations

from pyspark.sql import SparkSession

from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.storage.mart_batch import ACTION, MartBatch
from dbt_afterimage.storage.temp_view import temporary_view


def merge_batch(session: SparkSession, table: str, batch: MartBatch) -> None:
    """Insert, update and delete the rows of a batch in one commit."""
    columns = [quoted(column) for column in session.table(table).columns]
    identity = [quoted(column) for column in batch.identity]
    updates = ", ".join(f"target.{c} = source.{c}" for c in columns if c not in identity)
    with temporary_view(batch.rows) as view:
        session.sql(
            f"merge into {table} as target using {view} as source "
            f"on {batch.matches()} and source.{ACTION} <> 'insert' "
            f"when matched and source.{ACTION} = 'delete' then delete "
            f"when matched then update set {updates} "
            f"when not matched and source.{ACTION} <> 'delete' then insert "
            f"({', '.join(columns)}) values ({', '.join(f'source.{c}' for c in columns)})"
        )
