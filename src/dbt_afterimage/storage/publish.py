"""Puts what a run changes of a mart into its table: readers see all of it or nothing.

On Iceberg a branch takes two cheap commits, the positions of rows that go and an append of rows
that come, and is published by moving `main` to it (docs/decisions/0016). Delta has no branches:
there it is one MERGE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.errors import ConcurrentRunError, conflicts_explained
from dbt_afterimage.storage.checkpoint import keep, release
from dbt_afterimage.storage.create import EACH_TASK_WRITES
from dbt_afterimage.storage.schema_contract import quoted
from dbt_afterimage.storage.table_version import current_state
from dbt_afterimage.storage.temp_view import temporary_view

ACTION = "_write_action"
"""Column of a batch. `insert`: a new row. `update`: it replaces the row of its identity, or is new.
`delete`: the row of its identity goes."""

BRANCH_PREFIX = "afterimage_"

_FEW = 100_000
"""So many identities are sent to every task, which spares a shuffle of the whole table."""


@dataclass(frozen=True)
class Batch:
    """What a run changes of a table.

    Attributes:
        rows: the table's columns and `ACTION`; of `delete` only the identity counts.
        identity: columns that tell which row is meant; never NULL.
        where: condition on `target`, the table, so that other rows are not read; "" for none.
        after: the state of the table before `rows` were worked out: `state_of`.
    """

    rows: DataFrame
    identity: Sequence[str]
    where: str
    after: str | None


def state_of(session: SparkSession, table: str, table_format: str) -> str | None:
    """`current_state`, and from now on Spark reads the table no older than that."""
    session.sql(f"refresh table {table}")
    return current_state(session, table, table_format)


def publish(session: SparkSession, table: str, batch: Batch, table_format: str) -> None:
    """Write a batch, so that readers see it whole or not at all.

    Args:
        session: the live Spark session.
        table: an existing table.
        batch: what to write.
        table_format: `iceberg` or `delta`.

    Raises:
        ConcurrentRunError: another run has written to the table since. Nothing was written.
    """
    with conflicts_explained(table):
        if table_format == "iceberg" and batch.after is not None:
            _publish_branch(session, table, batch)
        elif state_of(session, table, table_format) != batch.after:
            raise ConcurrentRunError.of(table)
        else:
            # Delta notices what is committed once the MERGE has begun, at the table as it is then:
            # a commit in the milliseconds in between goes unnoticed
            _merge(session, table, batch)


def _publish_branch(session: SparkSession, table: str, batch: Batch) -> None:
    rows = keep(batch.rows)
    goes, comes = F.col(ACTION) != "insert", F.col(ACTION) != "delete"
    try:
        found = rows.agg(F.count_if(goes).alias("going"), F.count_if(comes).alias("coming")).first()
        going = rows.filter(goes).select(*map(quoted, batch.identity))
        if found is not None and found["going"] <= _FEW:
            going = F.broadcast(going)
        coming = rows.filter(comes).select(*map(quoted, session.table(table).columns))
        if found is not None and any(found):
            _write_branch(
                session,
                table,
                batch,
                going if found["going"] else None,
                coming if found["coming"] else None,
            )
    finally:
        release(rows)


def _write_branch(
    session: SparkSession,
    table: str,
    batch: Batch,
    going: DataFrame | None,
    coming: DataFrame | None,
) -> None:
    name = f"{BRANCH_PREFIX}{uuid4().hex}"
    branch = f"{table}.branch_{name}"
    session.sql(f"alter table {table} create branch {name} as of version {batch.after}")
    try:
        if going is not None:
            with temporary_view(going) as view:
                session.sql(
                    f"merge into {branch} as target using {view} as source on {_is_same(batch)} "
                    "when matched then delete"
                )
        if coming is not None:
            # Each task writes what it has: gathering rows by partition would leave one task per
            # partition, and history has two.
            coming.writeTo(branch).options(**EACH_TASK_WRITES).append()
        session.sql(
            f"call system.fast_forward(table => '{table}', branch => 'main', to => '{name}')"
        )
    finally:
        session.sql(f"alter table {table} drop branch if exists {name}")


def _merge(session: SparkSession, table: str, batch: Batch) -> None:
    columns = [quoted(column) for column in session.table(table).columns]
    identity = [quoted(column) for column in batch.identity]
    updates = ", ".join(f"target.{c} = source.{c}" for c in columns if c not in identity)
    with temporary_view(batch.rows) as view:
        session.sql(
            f"merge into {table} as target using {view} as source "
            f"on {_is_same(batch)} and source.{ACTION} <> 'insert' "
            f"when matched and source.{ACTION} = 'delete' then delete "
            f"when matched then update set {updates} "
            f"when not matched and source.{ACTION} <> 'delete' then insert "
            f"({', '.join(columns)}) values ({', '.join(f'source.{c}' for c in columns)})"
        )


def _is_same(batch: Batch) -> str:
    """Condition: a row of the table is the one that a row of the batch means."""
    same = [f"target.{quoted(column)} = source.{quoted(column)}" for column in batch.identity]
    return " and ".join([*same, batch.where] if batch.where else same)
