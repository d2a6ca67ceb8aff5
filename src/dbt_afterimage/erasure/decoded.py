"""Erases keys from the tables of decoded records that a change log is read from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.erased.erased_decoded import (
    erased_values,
    has_values,
    is_of_erasure,
    record_identity,
)
from dbt_afterimage.erased.erasures import Erasure
from dbt_afterimage.erased.key_hash import key_hash_sql
from dbt_afterimage.erasure.keys import Scope
from dbt_afterimage.erasure.tables import DecodedLog
from dbt_afterimage.errors import conflicts_explained
from dbt_afterimage.internal_columns import PREFIX
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.storage.checkpoint import checkpoint, unpersist
from dbt_afterimage.storage.local_relation import local_rows
from dbt_afterimage.storage.schema_evolution import column_types
from dbt_afterimage.storage.stored_view import readable_name
from dbt_afterimage.storage.temp_view import temporary_view

_IDENTITY = f"{PREFIX}identity"


def record_hashes(
    session: SparkSession, scope: Scope, log: DecodedLog, up_to: str
) -> Mapping[str, list[int]]:
    """The identity of the decoded records of each key, by the hash of the key.

    The staging view gives the key of each: only it contains how a decoded record is read.
    """
    tables = scope.tables
    staged = session.table(readable_name(session, log.staging))
    types = column_types(staged.schema)
    of_keys = scope.rows_of_keys(staged)
    rows = of_keys.filter(F.col("change_seq").isNull() | (F.col("change_seq") <= up_to))
    if session.catalog.tableExists(tables.rejected):
        # these are erased wherever they claim to be
        rejected = session.table(tables.rejected).select("record_hash")
        rows = rows.unionByName(of_keys.join(rejected, "record_hash", "left_semi"))
    key_hash = F.expr(key_hash_sql(tables.change_log, tables.key, types)).alias("key_hash")
    hashes = rows.select(key_hash, "record_hash").distinct()
    decoded = session.table(log.table).filter(log.records)
    identity = record_identity(decoded.columns).alias("identity")
    rows = decoded.join(F.broadcast(hashes), "record_hash").select("key_hash", identity).distinct()
    found: dict[str, list[int]] = defaultdict(list)
    for row in rows.collect():
        found[row["key_hash"]].append(row["identity"])
    return found


def decoded_rows(
    session: SparkSession,
    log: DecodedLog,
    erasures: Sequence[Erasure],
    columns: Sequence[str] | None,
) -> DataFrame:
    """Rows of a decoded log that hold data to erase."""
    rows = _of_hashes(session, log, erasures)
    return rows if columns is None else rows.filter(has_values(rows.schema, columns))


def erase_from_decoded(session: SparkSession, log: DecodedLog, erasures: Sequence[Erasure]) -> None:
    """Delete the records of erasures, or set their columns to NULL; one commit.

    Raises:
        ConcurrentRunError: a run wrote to the table meanwhile.
    """
    rows = _of_hashes(session, log, erasures)
    if rows.isEmpty():
        return
    columns = erasures[0].columns
    action = "delete"
    if columns is not None:
        names = F.array(*[F.lit(name.lower()) for name in columns])
        nulled = erased_values(rows.schema, names)
        rows = rows.select(
            *[nulled.get(name, F.col(quoted(name))).alias(name) for name in rows.columns]
        )
        updates = ", ".join(f"target.{quoted(name)} = source.{quoted(name)}" for name in nulled)
        action = f"update set {updates}"
    changed = checkpoint(rows.select(*_place(rows)).distinct() if columns is None else rows)
    try:
        with temporary_view(changed) as view, conflicts_explained(log.table):
            same = [f"target.{quoted(name)} <=> source.{quoted(name)}" for name in _place(changed)]
            session.sql(
                f"merge into {log.table} as target using {view} as source "
                f"on {' and '.join(same)} when matched then {action}"
            )
    finally:
        unpersist(changed)


def _of_hashes(session: SparkSession, log: DecodedLog, erasures: Sequence[Erasure]) -> DataFrame:
    hashes = {each for erasure in erasures for each in erasure.record_hashes}
    named = local_rows(session, [(each,) for each in sorted(hashes)], f"{_IDENTITY} bigint")
    session.sql(f"refresh table {log.table}")
    rows = session.table(log.table)
    if erasures:
        rows = rows.filter(is_of_erasure(rows.columns, F.lit(erasures[0].up_to)))
    same = record_identity(rows.columns) == F.col(_IDENTITY)
    return rows.join(F.broadcast(named), same, "left_semi")


def _place(rows: DataFrame) -> list[str]:
    """Columns that identify a decoded record: its place at the source, and its content."""
    places = ("topic", "partition", "offset", "table_name", "load_id", "log_address", "record_hash")
    return [name for name in places if name in rows.columns]
