"""Checks of raw tables: they can be read, keys are unique, clocks are right."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from dbt_afterimage.cli.commands.doctor.check import Check, failed_by
from dbt_afterimage.cli.commands.doctor.project import DeclaredTable
from dbt_afterimage.cli.support.raw_schema import qlik_change_table as qlik
from dbt_afterimage.cli.support.raw_schema.read_schema import (
    read_schema,
    readable,
    relation_of,
    unique_keys,
)
from dbt_afterimage.cli.support.raw_schema.schema import RawSchema, RawTable
from dbt_afterimage.errors import AfterimageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TOLERATED_SKEW = timedelta(minutes=5)
ONE_RAW_TABLE_FOR_ALL = ("qlik_messages", "soliddb")
"""Systems whose source tables are names within messages or a log, not tables in Spark."""


def raw_table_checks(session: SparkSession, tables: list[DeclaredTable]) -> Iterator[Check]:
    """A line per table, and one for each finding."""
    from dbt_afterimage.storage.missing_relation import describe_missing

    schemas: dict[str, RawSchema] = {}
    for table in tables:
        if table.settings is None or table.settings["system"] in ONE_RAW_TABLE_FOR_ALL:
            continue
        try:
            # queries the catalog
            _ = session.table(relation_of(table.schema, table.identifier)).schema
        except Exception:
            yield Check(
                f"raw table {table.name}",
                "failed",
                describe_missing(session, f"{table.schema}.{table.identifier}"),
                "land it, or correct `schema` or `identifier` of the source",
            )
            continue
        try:
            if table.schema not in schemas:
                schemas[table.schema] = read_schema(session, table.schema)
            with readable(f"{table.schema}.{table.identifier}"):
                found = list(_findings(session, table, schemas[table.schema]))
        except AfterimageError as error:
            yield failed_by(error, f"raw table {table.name}")
            continue
        yield from found or [Check(f"raw table {table.name}", "ok", "readable, settings fit")]


def _findings(session: SparkSession, table: DeclaredTable, schema: RawSchema) -> Iterator[Check]:
    raw, settings = schema.find(table.identifier), table.settings
    if raw is None or settings is None or settings["system"] != "qlik_change_table":
        return
    yield from key_findings(session, table.name, settings["key"], schema, raw)
    seq = qlik.header(raw, "change_seq")
    if seq is not None:
        newest = session.sql(
            f"select max(cast(`{seq.name}` as string)) "
            f"from {relation_of(table.schema, table.identifier)}"
        ).collect()[0][0]
        yield from clock_findings(table.name, newest, datetime.now(timezone.utc))


def key_findings(
    session: SparkSession, table: str, key: list[str], schema: RawSchema, raw: RawTable
) -> Iterator[Check]:
    """Whether the key identifies a row of the base table, if that declares none.

    Args:
        key: its key; empty for none.
    """
    base = qlik.base_table(raw, schema)
    if base is None or not key or base.declared_key:
        return
    name = f"{schema.name}.{base.name}"
    there = [column.lower() for column in base.names()]
    missing = [column for column in key if column.lower() not in there]
    problem = None
    if missing:
        problem = (
            f"`key: {key}` names {', '.join(missing)}, which the base table {name} does not have; "
            f"it has {', '.join(base.names())}"
        )
    elif not unique_keys(session, relation_of(schema.name, base.name), [tuple(key)], least_rows=0):
        problem = f"`key: {key}` is not unique in the base table {name}"
    if problem:
        yield Check(
            f"key of {table}",
            "failed",
            problem,
            "set `key` to the columns that identify a row at the source",
        )


def clock_findings(table: str, newest: str | None, now: datetime) -> Iterator[Check]:
    """Whether the newest change has a time in the future.

    Args:
        newest: the greatest change_seq, which begins with a time: YYYYMMDDhhmmss.
    """
    try:
        at = datetime.strptime(str(newest)[:14], "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc)
    except ValueError:
        return
    ahead = at - now
    if ahead > _TOLERATED_SKEW:
        yield Check(
            f"clock of {table}",
            "warning",
            f"its newest change is {ahead} ahead of this machine",
            "compare the clocks of the source, of the replication server and of this machine",
        )
