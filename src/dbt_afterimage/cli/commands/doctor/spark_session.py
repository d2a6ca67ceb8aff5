"""Checks of the Spark session: address, time zone, generated code, catalog, rights there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import uuid4

from dbt_afterimage.cli.commands.doctor.check import Check, failed_by
from dbt_afterimage.errors import is_without_views
from dbt_afterimage.spark.connect import LOOPBACK
from dbt_afterimage.spark.launch import HOST, is_on_one_machine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WITHOUT = {
    "create views": "empty tables keep the statements of staging models",
    "create branches": "each batch of a mart is published by one MERGE, which takes longer",
}
"""The way around each thing that a catalog cannot do."""
_UTC = ("UTC", "Etc/UTC", "Z", "+00:00")
_CODE_LIMIT = "spark.sql.codegen.hugeMethodLimit"
_COMPILED_BYTES = 8000
"""Java never compiles a longer method."""


def session_checks(session: SparkSession, schema: str) -> Iterator[Check]:
    """Address, time zone, generated code, catalog, tables, views and branches."""
    master = str(session.conf.get("spark.master", ""))
    yield address_check(master, str(session.conf.get(HOST, "")))
    yield time_zone_check(str(session.conf.get("spark.sql.session.timeZone")))
    yield from code_checks(int(session.conf.get(_CODE_LIMIT) or 0))
    catalog = str(session.conf.get("spark.sql.defaultCatalog", "spark_catalog"))
    implementation = str(session.conf.get(f"spark.sql.catalog.{catalog}", ""))
    is_cached = session.conf.get(f"spark.sql.catalog.{catalog}.cache-enabled", "true") != "false"
    check = catalog_check(catalog, implementation, is_cached=is_cached)
    yield check
    if check.state != "failed":
        yield from _rights(session, catalog, schema, "iceberg" in implementation.lower())


def time_zone_check(zone: str) -> Check:
    """Every time in the product is UTC."""
    if zone in _UTC:
        return Check("time zone", "ok", zone)
    return Check(
        "time zone",
        "failed",
        f"the session's time zone is {zone}; allowed: UTC",
        "set `spark.sql.session.timeZone: UTC` in the profile's server_side_parameters",
    )


def code_checks(limit: int) -> Iterator[Check]:
    """A warning if Spark generates methods that Java only interprets.

    Args:
        limit: bytes of the longest method that Spark uses.
    """
    if limit > _COMPILED_BYTES:
        yield Check(
            "generated code",
            "warning",
            f"Spark generates methods of up to {limit:,} bytes, and Java never compiles one of "
            f"more than {_COMPILED_BYTES:,}, so runs on wide tables take longer",
            f'set `{_CODE_LIMIT}: "{_COMPILED_BYTES}"` in the profile\'s server_side_parameters',
        )


def address_check(master: str, host: str) -> Check:
    """Whether Spark on one machine listens on that machine only."""
    if not is_on_one_machine({"spark.master": master}) or host in LOOPBACK:
        return Check("address", "ok", f"{master}, the driver listens on {host}")
    return Check(
        "address",
        "warning",
        f"Spark ({master}) listens on {host}, without a login, although it needs no other machine",
        f"remove `{HOST}` from the profile, spark-defaults.conf and the arguments of spark-submit, "
        "or set it to 127.0.0.1",
    )


def catalog_check(catalog: str, implementation: str, *, is_cached: bool) -> Check:
    """Whether the default catalog has tables that can be merged into, and shows their last state.

    Args:
        is_cached: of Iceberg's catalog: whether it keeps tables in memory, as it does by default.
    """
    if "iceberg" in implementation.lower() and is_cached:
        return Check(
            "catalog",
            "warning",
            f"{catalog} (iceberg) keeps tables in memory for a while, so a run may not see what "
            "another run has just written",
            f'set `spark.sql.catalog.{catalog}.cache-enabled: "false"` in the profile\'s '
            "server_side_parameters",
        )
    for table_format in ("iceberg", "delta"):
        if table_format in implementation.lower():
            return Check("catalog", "ok", f"{catalog} ({table_format})")
    return Check(
        "catalog",
        "failed",
        f"the default catalog {catalog} is {implementation or 'of Spark itself'}; allowed: Iceberg "
        "or Delta",
        "take a catalog from profiles.yml.example",
    )


def _rights(session: SparkSession, catalog: str, schema: str, is_iceberg: bool) -> Iterator[Check]:
    """Does once what a run does to a schema, and undoes it."""
    table = f"`{schema}`.afterimage_doctor_{uuid4().hex[:12]}"
    table_format = "iceberg" if is_iceberg else "delta"
    steps = [
        ("create tables", f"create table {table} (id int) using {table_format}"),
        ("write to tables", f"insert into {table} values (1)"),
        ("create views", f"create view {table}_view as select id from {table}"),
    ]
    if is_iceberg:
        steps.append(("create branches", f"alter table {table} create branch doctor"))
    done = []
    name = "create schemas"
    try:
        session.sql(f"create schema if not exists `{schema}`")
        for name, statement in steps:
            try:
                session.sql(statement)
            except Exception as error:
                if not (name == "create branches" or is_without_views(str(error))):
                    raise
                continue
            done.append(name)
        yield Check("rights", "ok", f"schema {schema}: can {', '.join(done)}")
        for name, text in _WITHOUT.items():
            if name in dict(steps) and name not in done:
                yield Check("catalog", "ok", f"{catalog} cannot {name}: {text}")
    except Exception as error:
        yield failed_by(
            error,
            f"rights: {name} in schema {schema}",
            f"grant the user of this session the right to {name} in {schema}",
        )
    finally:
        if "create views" in done:
            session.sql(f"drop view if exists {table}_view")
        if done:
            session.sql(f"drop table if exists {table}")
