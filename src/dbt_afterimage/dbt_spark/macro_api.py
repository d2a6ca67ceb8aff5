"""The adapter methods that macros call, and what each answers while dbt only parses."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt_afterimage.errors import ConcurrentRunError, explained
from dbt_afterimage.settings import SettingsError, moment_kind, parse_settings, positions
from dbt_afterimage.storage.descriptions import describe_columns
from dbt_afterimage.storage.schema_contract import GuardError, Origin, Wanted
from dbt_afterimage.storage.schema_evolution import alter_table, check_table, column_types

logger = AdapterLogger("afterimage")

KAFKA_OPTIONS = "AFTERIMAGE_KAFKA_OPTIONS"
"""Environment variable with options of the Kafka client as JSON: they may be secret."""


@contextmanager
def _dbt_errors(*ours: type[Exception]) -> Iterator[None]:
    """While this lasts, errors of ours and of Spark are raised as `DbtRuntimeError`."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except ours as error:
        raise DbtRuntimeError(str(error)) from error
    except (PySparkException, Py4JJavaError) as error:
        raise DbtRuntimeError(explained(str(error))) from error


def afterimage_settings(self: Any, source: Any) -> dict[str, Any]:
    """Validated settings of one source table, all defaults filled in.

    Args:
        self: dbt's adapter.
        source: the table's entry in dbt's graph (a source definition as a mapping).

    Returns:
        The settings by name, with ``declared_columns`` (name and data_type) of the entry's columns.

    Raises:
        DbtRuntimeError: a setting is missing, misspelt or not allowed; names table, key and cure.
    """
    try:
        return parse_settings(source)
    except SettingsError as error:
        raise DbtRuntimeError(str(error)) from error


def afterimage_moment_kind(self: Any, text: str, system: str) -> str | None:
    """What names a moment: `change_seq`, `timestamp`, or None for text that is neither.

    Args:
        self: dbt's adapter.
        text: the moment.
        system: the system whose positions are meant.
    """
    return moment_kind(text, system)


def afterimage_before_look_back_sql(self: Any, settings: Any, seq: str) -> str:
    """SQL: the greatest position that the look-back from a change_seq no longer covers, or ''."""
    return positions(settings).before_look_back_sql(seq)


def afterimage_columns(self: Any, relation: Any) -> list[dict[str, str]]:
    """Columns of a table or view, `name` and `data_type`; none where there is no such.

    Args:
        self: dbt's adapter.
        relation: the table or view.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql import SparkSession

    from dbt_afterimage.storage.missing_relation import is_missing

    session = SparkSession.builder.getOrCreate()
    try:
        types = column_types(session.table(str(relation)).schema)
    except AnalysisException as error:
        if is_missing(error):
            return []
        raise DbtRuntimeError(explained(str(error))) from error
    return [{"name": name, "data_type": kind} for name, kind in types.items()]


def afterimage_describe_missing(self: Any, relation: Any) -> str:
    """That a relation does not exist, where it was looked for, and similar names there.

    Args:
        self: dbt's adapter.
        relation: the table or view.
    """
    from pyspark.sql import SparkSession

    from dbt_afterimage.storage.missing_relation import describe_missing

    return describe_missing(SparkSession.builder.getOrCreate(), str(relation))


def afterimage_table_format(self: Any) -> str:
    """Table format of the target's default catalog: `iceberg` or `delta`.

    The first thing that every command asks for, so it also says where Spark must be.

    Raises:
        DbtRuntimeError: Spark is elsewhere than in this process; or the catalog is neither, and
            history needs MERGE, which plain Parquet lacks.
    """
    from pyspark.sql import SparkSession

    method = str(self.config.credentials.method.value)
    if method != "session":
        raise DbtRuntimeError(
            f"The target's `method` is {method}; allowed: session. This project works in the Spark "
            "session of the dbt process, and under another method there is none. Cure: take a "
            "target with `method: session`; profiles.yml.example has one for a cluster."
        )
    session = SparkSession.getActiveSession()
    parameters = self.config.credentials.server_side_parameters

    def setting(name: str, default: str) -> str:
        value = session.conf.get(name, default) if session else parameters.get(name, default)
        return str(value)

    catalog = setting("spark.sql.defaultCatalog", "spark_catalog")
    implementation = setting(f"spark.sql.catalog.{catalog}", "Spark's own session catalog")
    for table_format in ("iceberg", "delta"):
        if table_format in implementation.lower():
            return table_format
    raise DbtRuntimeError(
        f"The target's default catalog `{catalog}` is {implementation}; its tables cannot be "
        "merged into. Allowed: an Iceberg or a Delta catalog. Cure: take one from "
        "profiles.yml.example."
    )


def afterimage_table_options(self: Any) -> str:
    """What `create table` says of the format, for tables that a macro makes: `table_options`."""
    from dbt_afterimage.storage.create import table_options

    return table_options(afterimage_table_format(self))


def afterimage_create_table(
    self: Any,
    relation: Any,
    select: str,
    descriptions: dict[str, str],
    partition_by: list[str],
    properties: dict[str, str],
) -> None:
    """`create or replace table ... as select`, with a comment on each column, in one commit.

    SQL has no place for column comments in such a statement, and one `alter` per column afterwards
    is one commit each.

    Args:
        self: dbt's adapter.
        relation: the table.
        select: the statement that yields its rows.
        descriptions: column name -> description.
        partition_by: columns.
        properties: table properties, the table's `comment` among them.
    """
    from pyspark.sql import SparkSession

    from dbt_afterimage.storage.create import table_writer

    session = SparkSession.builder.getOrCreate()
    with _dbt_errors():
        rows = describe_columns(session.sql(select), descriptions)
        table_format = afterimage_table_format(self)
        writer = table_writer(
            rows, str(relation), table_format, partition_by, properties, gather=False
        )
        writer.createOrReplace()


def afterimage_append(self: Any, relation: Any, select: str, after: str | None) -> None:
    """Append a batch to a mart, unless another run has done so; one commit.

    Args:
        self: dbt's adapter.
        relation: the table.
        select: the statement that yields the rows.
        after: the greatest `recorded_at` of the table when the statement was planned, or None.
    """
    from pyspark.sql import SparkSession

    from dbt_afterimage.storage.append import append_once

    session = SparkSession.builder.getOrCreate()
    with _dbt_errors(ConcurrentRunError):
        rows = session.sql(select)
        append_once(session, str(relation), rows, afterimage_table_format(self), after)


def afterimage_state(self: Any, relation: Any) -> str | None:
    """What `afterimage_publish` takes as `after`: names what a table holds now."""
    from pyspark.sql import SparkSession

    from dbt_afterimage.storage.publish import current_version

    session = SparkSession.builder.getOrCreate()
    return current_version(session, str(relation), afterimage_table_format(self))


def afterimage_keep(self: Any, select: str) -> str:
    """The name of a view of rows that are worked out now, once; `afterimage_publish` frees them.

    Args:
        self: dbt's adapter.
        select: the statement that yields the rows.
    """
    from pyspark.sql import SparkSession

    from dbt_afterimage.storage.checkpoint import keep_by_name

    with _dbt_errors():
        return keep_by_name(SparkSession.builder.getOrCreate().sql(select))


def afterimage_publish(
    self: Any,
    relation: Any,
    select: str,
    identity: list[str],
    where: str,
    after: str | None,
    kept: list[str],
) -> None:
    """Take rows out of a mart and put rows in; readers see all of it or nothing.

    Args:
        self: dbt's adapter.
        relation: the table.
        select: the statement that yields the rows, with `_write_action`.
        identity: columns that tell which row is meant.
        where: condition on `target`, the table; "" for none.
        after: of `afterimage_state`, taken before the batch was looked at.
        kept: of `afterimage_keep`, what the statement reads; freed, whatever happens.
    """
    from pyspark.sql import SparkSession

    from dbt_afterimage.storage.checkpoint import release_name
    from dbt_afterimage.storage.mart_batch import MartBatch
    from dbt_afterimage.storage.publish import publish

    session = SparkSession.builder.getOrCreate()
    try:
        with _dbt_errors(ConcurrentRunError):
            batch = MartBatch(session.sql(select), identity, where, after)
            publish(session, str(relation), batch, afterimage_table_format(self))
    finally:
        for name in kept:
            release_name(name)


def afterimage_noted_at_start(self: Any, progress: Any, models: list[str]) -> dict[str, Any]:
    """The last batch that models had applied when the command began, as text; None where unknown.

    Args:
        self: dbt's adapter.
        progress: the table of progress.
        models: their names there.
    """
    from pyspark.sql import SparkSession

    from dbt_afterimage.storage.progress_cache import noted_at_start

    session = SparkSession.builder.getOrCreate()
    with _dbt_errors():
        found = {name: noted_at_start(session, str(progress), name) for name in models}
    return {name: {"recorded_at": noted and noted.recorded_at} for name, noted in found.items()}


def afterimage_forget_noted(self: Any, model: str) -> None:
    """Say that something was noted of a model: `afterimage_noted_at_start` knows it no more."""
    from dbt_afterimage.storage.progress_cache import forget_noted

    forget_noted(model)


def afterimage_forget_progress(self: Any, progress: Any, models: list[str]) -> None:
    """Remove all that is noted of models: whatever they make begins anew.

    Args:
        self: dbt's adapter.
        progress: the table of progress.
        models: their names there.
    """
    from pyspark.sql import SparkSession

    from dbt_afterimage.storage.progress import forget_progress

    session = SparkSession.builder.getOrCreate()
    with _dbt_errors():
        for model in models:
            forget_progress(session, str(progress), model)


def afterimage_make_room_for_view(self: Any, statement: str) -> None:
    """Let the metastore hold a view, however long its text is.

    Args:
        self: dbt's adapter.
        statement: the view's `create` statement.

    Raises:
        DbtRuntimeError: the metastore is an embedded one that cannot be altered.
    """
    from pyspark.sql import SparkSession

    from dbt_afterimage.dbt_spark.long_views import LongViewError, make_room_for_view

    with _dbt_errors(LongViewError):
        make_room_for_view(SparkSession.builder.getOrCreate(), statement)


def afterimage_mart_properties(self: Any, settings: Any, is_tracking: bool) -> dict[str, str]:
    """Table properties of a mart, from which a later run tells whether it can go on with it.

    Args:
        self: dbt's adapter.
        settings: the settings of its source table.
        is_tracking: its rows depend on `track` and `ignore`.
    """
    return _origin(settings, is_tracking).properties()


def afterimage_fit_mart(self: Any, relation: Any, upstream: Any, expected: Any) -> None:
    """Alter an existing mart to what a run wants to write; stops where that cannot be done.

    Args:
        self: dbt's adapter.
        relation: the mart.
        upstream: the relation that it is made from, which has its data columns.
        expected: what `_mart_expectations` says of it.

    Raises:
        DbtRuntimeError: the mart cannot be written to; nothing was.
    """
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    settings = expected["settings"]
    data = {
        name: kind
        for name, kind in column_types(session.table(str(upstream)).schema).items()
        if name not in expected["left_out"]
        and (expected["only"] is None or name in expected["only"])
    }
    wanted = Wanted(
        table=str(relation),
        source_table=settings["source_table"],
        upstream=str(upstream),
        origin=_origin(settings, expected["is_tracking"]),
        own=expected["own"],
        data=data,
        copies=expected["copies"],
        anew=f"build the table anew: dbt run --full-refresh --select {expected['model']}+",
        retype="restore the type upstream",
    )
    try:
        changes = check_table(session, wanted)
    except GuardError as error:
        raise DbtRuntimeError(str(error)) from error
    alter_table(session, str(relation), changes, afterimage_table_format(self))


def _origin(settings: Any, is_tracking: bool) -> Origin:
    tracking = {"track": settings["track"], "ignore": settings["ignore"]}
    return Origin(settings["key"], tracking if is_tracking else None)


def afterimage_land_demo(
    self: Any,
    system: str,
    batch: int,
    scale: int,
    seed: int,
    destination: dict[str, Any],
) -> None:
    """Bring one batch of a system's demo to its destination; batch 1 starts anew.

    Args:
        self: dbt's adapter.
        system: whose demo.
        batch: its number, from 1.
        scale: size of the data.
        seed: of the generator.
        destination: the fields of `demo.transport.Destination` but the table format, by name.

    Raises:
        DbtRuntimeError: the system has no demo, or the batch cannot be landed as asked.
    """
    from pyspark.sql import SparkSession

    from dbt_afterimage.demo.systems import demo_system
    from dbt_afterimage.demo.transport import Destination

    place = Destination(**destination, table_format=afterimage_table_format(self))
    try:
        demo = demo_system(system)
        delivery = demo.deliveries(scale, seed, max(batch, 2))[batch - 1]
        demo.transport.deliver(SparkSession.builder.getOrCreate(), delivery, place)
    except ValueError as error:
        raise DbtRuntimeError(str(error)) from error


def afterimage_land_openedge(
    self: Any, options: dict[str, str], owner: str, tracking: str, tables: list[dict[str, Any]]
) -> dict[str, int]:
    """Extract tables of an OpenEdge database over JDBC; returns landed table -> new rows.

    Args:
        self: dbt's adapter.
        options: of Spark's JDBC reader; the password comes from the environment.
        owner: schema of the tables in the database.
        tracking: the table that the tracking table is landed in.
        tables: the fields of `ingest.openedge.extract.CapturedTable`, by name.

    Raises:
        DbtRuntimeError: the database cannot be read, or there is nothing to extract.
    """
    from pyspark.sql import SparkSession

    from dbt_afterimage.ingest.openedge.extract import CapturedTable, LandingError, land

    session = SparkSession.builder.getOrCreate()
    password = os.environ.get("AFTERIMAGE_JDBC_PASSWORD")
    given = {**options, **({"password": password} if password else {})}
    captured = [CapturedTable(**table) for table in tables]
    with _dbt_errors(LandingError):
        return land(session, given, owner, tracking, captured, afterimage_table_format(self))


def afterimage_land_kafka(self: Any, request: dict[str, Any], table: str, progress: str) -> int:
    """Land messages of a Kafka cluster; returns how many.

    Args:
        self: dbt's adapter.
        request: fields of `ingest.kafka.land.Request`, by name.
        table: the raw table.
        progress: the table of progress.

    Raises:
        DbtRuntimeError: the cluster cannot be read, or lacks what was not landed yet.
    """
    from pyspark.sql import SparkSession

    from dbt_afterimage.ingest.kafka.land import KafkaLandingError, Request, land

    session = SparkSession.builder.getOrCreate()
    table_format = afterimage_table_format(self)
    options = {**request.get("options", {}), **json.loads(os.environ.get(KAFKA_OPTIONS, "{}"))}
    wanted = Request(**{**request, "options": options})
    with _dbt_errors(KafkaLandingError, ConcurrentRunError):
        return land(session, wanted, table, progress, table_format, logger.info)


def afterimage_compact(self: Any, relation: Any, keep_days: int, max_files: int) -> str:
    """Compact a table; returns what was done, in words.

    Args:
        self: dbt's adapter.
        relation: the table.
        keep_days: states of the table stay readable so long.
        max_files: so many data files are rewritten at most.

    Raises:
        DbtRuntimeError: an argument cannot be, or another run wrote to the table.
    """
    from pyspark.sql import SparkSession

    from dbt_afterimage.storage.compaction import CompactError, Limits, compact

    session = SparkSession.builder.getOrCreate()
    with _dbt_errors(ConcurrentRunError, CompactError):
        limits = Limits(max_files=max_files, keep_days=keep_days)
        return compact(session, str(relation), afterimage_table_format(self), limits)


def afterimage_tend(self: Any, relation: Any) -> None:
    """Compact a small table that every run adds files to, once they are many.

    Args:
        self: dbt's adapter.
        relation: the table.
    """
    from pyspark.sql import SparkSession

    from dbt_afterimage.storage.compaction import compact_if_needed

    session = SparkSession.builder.getOrCreate()
    with _dbt_errors():
        told = compact_if_needed(session, str(relation), afterimage_table_format(self))
    if told:
        logger.info(f"{relation.identifier}: {told}")


METHODS: dict[str, tuple[Any, Any]] = {
    "afterimage_settings": (afterimage_settings, {}),
    "afterimage_moment_kind": (afterimage_moment_kind, None),
    "afterimage_before_look_back_sql": (afterimage_before_look_back_sql, ""),
    "afterimage_columns": (afterimage_columns, []),
    "afterimage_compact": (afterimage_compact, ""),
    "afterimage_append": (afterimage_append, None),
    "afterimage_describe_missing": (afterimage_describe_missing, ""),
    "afterimage_create_table": (afterimage_create_table, None),
    "afterimage_fit_mart": (afterimage_fit_mart, None),
    "afterimage_forget_noted": (afterimage_forget_noted, None),
    "afterimage_forget_progress": (afterimage_forget_progress, None),
    "afterimage_keep": (afterimage_keep, ""),
    "afterimage_land_demo": (afterimage_land_demo, None),
    "afterimage_land_kafka": (afterimage_land_kafka, 0),
    "afterimage_land_openedge": (afterimage_land_openedge, None),
    "afterimage_make_room_for_view": (afterimage_make_room_for_view, None),
    "afterimage_mart_properties": (afterimage_mart_properties, {}),
    "afterimage_noted_at_start": (afterimage_noted_at_start, {}),
    "afterimage_publish": (afterimage_publish, None),
    "afterimage_state": (afterimage_state, None),
    "afterimage_table_format": (afterimage_table_format, "iceberg"),
    "afterimage_table_options": (afterimage_table_options, ""),
    "afterimage_tend": (afterimage_tend, None),
}
