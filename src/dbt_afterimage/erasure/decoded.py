"""Erases keys from the tables of decoded records that a change log is read from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.change_log.erased_decoded import erased_values, has_values, is_up_to
from dbt_afterimage.change_log.erasures import Erasure
from dbt_afterimage.change_log.key_hash import key_hash_sql
from dbt_afterimage.erasure.keys import Keys
from dbt_afterimage.erasure.tables import DecodedLog, ErasableTables
from dbt_afterimage.errors import conflicts_explained
from dbt_afterimage.storage.checkpoint import checkpoint, unpersist
from dbt_afterimage.storage.local_relation import local_rows
from dbt_afterimage.storage.schema_contract import quoted
from dbt_afterimage.storage.schema_evolution import column_types
from dbt_afterimage.storage.temp_view import temporary_view


def record_hashes(
    session: SparkSession, tables: ErasableTables, log: DecodedLog, keys: Keys, up_to: str
) -> Mapping[str, list[int]]:
    """`record_hash` of the decoded records of each key, by the hash of the key.

    The staging view tells whose they are: it alone knows how a decoded record is read.
    """
    staged = session.table(log.staging)
    types = column_types(staged.schema)
    rows = (
        staged.join(F.broadcast(keys.rows), tables.key, "left_semi")
        .filter(is_up_to(F.lit(up_to)))
        .select(F.expr(key_hash_sql(tables.change_log, tables.key, types)), "record_hash")
        .distinct()
    )
    found: dict[str, list[int]] = defaultdict(list)
    for key_hash, record_hash in rows.collect():
        found[key_hash].append(record_hash)
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
    named = local_rows(session, [(each,) for each in sorted(hashes)], "record_hash bigint")
    session.sql(f"refresh table {log.table}")
    rows = session.table(log.table)
    if erasures:
        rows = rows.filter(is_up_to(F.lit(erasures[0].up_to)))
    return rows.join(F.broadcast(named), "record_hash", "left_semi")


def _place(rows: DataFrame) -> list[str]:
    """Columns that tell decoded records apart: their place at the source, and their content."""
    places = ("topic", "partition", "offset", "load_id", "log_address", "record_hash")
    return [name for name in places if name in rows.columns]
