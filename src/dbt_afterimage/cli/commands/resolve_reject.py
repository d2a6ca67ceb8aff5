"""Marks a rejected record as resolved by hand, and keeps who did it and why."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dbt_afterimage.errors import conflicts_explained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESOLUTIONS = "afterimage_resolutions"


def resolve_reject(session: SparkSession, schema: str, table: str, record: int, why: str) -> str:
    """Resolve a record of `<table>_changes_rejected`.

    A call that was killed can be repeated: nothing is kept twice.

    Args:
        table: the table, without `_changes`.
        why: the reason, for `afterimage_resolutions`.

    Returns:
        What was done, in words.

    Raises:
        ConcurrentRunError: a run wrote to the table meanwhile; nothing is resolved.
    """
    place, _, name = table.rpartition(".")
    rejected = f"`{place or schema}`.`{name}_changes_rejected`"
    resolutions = f"`{schema}`.{RESOLUTIONS}"
    is_record = F.col("record_hash") == record
    open_records = session.table(rejected).filter(is_record & F.col("resolved_at").isNull())
    if open_records.isEmpty():
        return f"{table}: record {record} is resolved already; nothing was changed"
    provider = session.sql(f"describe table extended {rejected}").filter("col_name = 'Provider'")
    kind = provider.first()
    session.sql(
        f"create table if not exists {resolutions} ("
        "table_name string comment 'table whose record was resolved, without _changes', "
        "record_hash bigint comment 'record_hash of the record', "
        "why string comment 'the reason, as the user gave it', "
        "resolved_by string comment 'login name of the user', "
        "resolved_at timestamp comment 'when, UTC') "
        f"using {kind['data_type'] if kind else 'iceberg'} "
        "comment 'One row per rejected record that was resolved by hand'"
    )
    is_known = is_record & (F.col("table_name") == table)
    # the reason first: a call that ends in between leaves the record unresolved, and is repeated
    with conflicts_explained(RESOLUTIONS):
        if session.table(resolutions).filter(is_known).isEmpty():
            session.range(1).select(
                F.lit(table).alias("table_name"),
                F.lit(record).cast("bigint").alias("record_hash"),
                F.lit(why).alias("why"),
                F.lit(getpass.getuser()).alias("resolved_by"),
                F.current_timestamp().alias("resolved_at"),
            ).writeTo(resolutions).append()
    with conflicts_explained(f"{table}_changes_rejected"):
        session.sql(
            f"update {rejected} set resolved_at = current_timestamp() "
            f"where record_hash = {record} and resolved_at is null"
        )
    return f"{table}: record {record} is resolved; {RESOLUTIONS} has the reason"
