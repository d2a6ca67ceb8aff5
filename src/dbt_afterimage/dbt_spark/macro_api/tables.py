"""Tables of the project: what they have, and how they are created and written to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt_afterimage.dbt_spark.macro_api.registry import dbt_errors, macro_method
from dbt_afterimage.dbt_spark.statements import check_method, live_session
from dbt_afterimage.errors import ConcurrentRunError, explained, is_without_views
from dbt_afterimage.history.table import ADDED_COLUMNS
from dbt_afterimage.internal_columns import LANDED_COLUMNS
from dbt_afterimage.spark.session import active, current, server_address
from dbt_afterimage.storage.descriptions import describe_columns, update_descriptions
from dbt_afterimage.storage.schema_contract import Origin, SchemaContractError, TargetSchema
from dbt_afterimage.storage.schema_evolution import alter_table, check_table, column_types

_SESSION_CATALOG = "spark_catalog"
"""The catalog that every Spark session has."""


@macro_method(while_parsing="iceberg")
def table_format(adapter: Any) -> str:
    """Table format of the target's default catalog: `iceberg` or `delta`.

    Raises:
        DbtRuntimeError: Spark is elsewhere than in this process; or the catalog is neither, and
            history needs MERGE, which plain Parquet lacks.
    """
    check_method(adapter.config.credentials)
    catalog, implementation = _default_catalog(adapter)
    for known in ("iceberg", "delta"):
        if known in implementation.lower():
            return known
    raise DbtRuntimeError(
        f"The target's default catalog `{catalog}` is {implementation}; its tables cannot be "
        "merged into. Allowed: an Iceberg or a Delta catalog. Fix: take one from "
        "profiles.yml.example."
    )


@macro_method(while_parsing=True)
def is_iceberg_catalog(adapter: Any) -> bool:
    """Whether the default catalog has Iceberg tables and views alone.

    Iceberg's SparkSessionCatalog is Spark's own catalog, with tables of all formats.
    """
    catalog, implementation = _default_catalog(adapter)
    return catalog != _SESSION_CATALOG and "iceberg" in implementation.lower()


def _default_catalog(adapter: Any) -> tuple[str, str]:
    """Name and implementation of the target's default catalog."""
    session = active()
    parameters = getattr(adapter.config.credentials, "server_side_parameters", None) or {}
    catalog_name = "spark.sql.defaultCatalog"
    if session is None and server_address(parameters) and catalog_name not in parameters:
        # the catalog is the server's
        session = live_session(parameters)

    def setting(name: str, default: str) -> str:
        value = session.conf.get(name, default) if session else parameters.get(name, default)
        return str(value)

    catalog = setting(catalog_name, _SESSION_CATALOG)
    return catalog, setting(f"spark.sql.catalog.{catalog}", "Spark's own session catalog")


@macro_method(while_parsing="")
def table_options(adapter: Any) -> str:
    """The clauses of `create table` for the format, for tables that a macro makes."""
    from dbt_afterimage.storage import create

    return create.table_options(table_format(adapter))


@macro_method(while_parsing=[])
def columns(adapter: Any, relation: Any) -> list[dict[str, str]]:
    """Columns of a table or view, `name` and `data_type`; none where there is no such.

    Without those by which `land files` knows its files: they are not the source's.
    """
    from pyspark.errors import AnalysisException

    from dbt_afterimage.storage.missing_relation import is_missing

    session = current()
    try:
        types = column_types(session.table(str(relation)).schema)
    except AnalysisException as error:
        if is_missing(error):
            return []
        raise DbtRuntimeError(explained(str(error))) from error
    return [
        {"name": name, "data_type": kind}
        for name, kind in types.items()
        if name not in LANDED_COLUMNS
    ]


@macro_method(while_parsing=[])
def fields_of(adapter: Any, relation: Any, struct: str, table: str) -> list[dict[str, str]]:
    """Fields of a struct of a table or view, `name` and `data_type`.

    Args:
        struct: SQL over its columns, the setting `after`.

    Raises:
        DbtRuntimeError: it is not a struct, or not SQL over these columns.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql.types import StructType

    try:
        kind = current().sql(f"select {struct} as image from {relation}").schema["image"].dataType
    except AnalysisException as error:
        raise DbtRuntimeError(
            f"Source table {table}: `after` is {struct!r}, which cannot be read: "
            f"{explained(str(error))} Fix: name the struct that holds a record's data columns."
        ) from error
    if not isinstance(kind, StructType):
        raise DbtRuntimeError(
            f"Source table {table}: `after` is {struct!r}, a value of type {kind.simpleString()}. "
            "Allowed: a struct whose fields are the data columns. Fix: name that column, or set "
            "`json_text` if the table holds JSON documents."
        )
    return [{"name": name, "data_type": of} for name, of in column_types(kind).items()]


@macro_method(while_parsing="")
def type_of(adapter: Any, expression: str, relation: Any) -> str:
    """The type of an SQL expression over a relation; "" if it is not SQL over its columns.

    Args:
        relation: a table or view, or a query in parentheses.
    """
    from pyspark.errors import AnalysisException

    try:
        found = current().sql(f"select {expression} as value from {relation}").schema
    except AnalysisException:
        return ""
    return str(found["value"].dataType.simpleString())


@macro_method(while_parsing="")
def describe_missing(adapter: Any, relation: Any) -> str:
    """The message that a relation is missing: where it was expected, and similar names there."""
    from dbt_afterimage.storage import missing_relation

    return missing_relation.describe_missing(current(), str(relation))


@macro_method()
def create_table(
    adapter: Any,
    relation: Any,
    select: str,
    descriptions: dict[str, str],
    partition_by: list[str],
    properties: dict[str, str],
    kept: Sequence[str] = (),
) -> None:
    """`create or replace table ... as select`, with a comment on each column, in one commit.

    SQL has no place for column comments in such a statement, and one `alter` per column afterwards
    is one commit each.

    Args:
        properties: table properties, the table's `comment` among them.
        kept: views that the statement reads; freed, whatever happens.
    """
    from dbt_afterimage.storage.checkpoint import unpersist_by_name
    from dbt_afterimage.storage.create import table_writer

    session = current()
    try:
        with dbt_errors():
            rows = describe_columns(session.sql(select), descriptions)
            format_of_table = table_format(adapter)
            writer = table_writer(
                rows, str(relation), format_of_table, partition_by, properties, gather=False
            )
            writer.createOrReplace()
    finally:
        for name in kept:
            unpersist_by_name(name)


@macro_method()
def append(
    adapter: Any, relation: Any, select: str, after: str | None, base_version: str | None
) -> None:
    """Append a batch to a mart, unless another run has done so; one commit.

    Args:
        after: the greatest `recorded_at` of the table when the statement was planned, or None.
    """
    from dbt_afterimage.storage.append import append_once

    session = current()
    with dbt_errors(ConcurrentRunError):
        rows = session.sql(select)
        format_of_table = table_format(adapter)
        append_once(session, str(relation), rows, format_of_table, after, base_version=base_version)


@macro_method()
def current_version(adapter: Any, relation: Any) -> str | None:
    """The version of a table, which `publish` takes as `after`."""
    from dbt_afterimage.storage.publish import current_version as version_of

    session = current()
    return version_of(session, str(relation), table_format(adapter))


@macro_method(while_parsing="")
def checkpoint(adapter: Any, select: str) -> str:
    """The name of a view of rows that are computed now, once; `publish` frees them."""
    from dbt_afterimage.storage.checkpoint import checkpoint_by_name

    with dbt_errors():
        return checkpoint_by_name(current().sql(select))


@macro_method()
def publish(
    adapter: Any,
    relation: Any,
    select: str,
    identity: list[str],
    where: str,
    after: str | None,
    kept: list[str],
    counts: Mapping[str, int] | None = None,
    feed: dict[str, Any] | None = None,
) -> None:
    """Take rows out of a mart and put rows in; readers see all of it or nothing.

    Args:
        select: the statement that yields the rows, with `_write_action`.
        after: of `current_version`, taken before the batch was profiled.
        kept: of `checkpoint`, what the statement reads; freed, whatever happens.
        counts: see `MartBatch`.
        feed: of `update_feed`; None for a mart without one.
    """
    from dbt_afterimage.history.feed import Feed
    from dbt_afterimage.history.feed import update_feed as update
    from dbt_afterimage.storage.checkpoint import unpersist, unpersist_by_name
    from dbt_afterimage.storage.mart_batch import MartBatch, computed
    from dbt_afterimage.storage.publish import publish as publish_batch

    session = current()
    own = None
    try:
        with dbt_errors(ConcurrentRunError):
            rows = session.sql(select)
            if feed is not None and counts is None:
                own, counts = computed(rows)
                rows = own
            batch = MartBatch(rows, identity, where, after, counts)
            publish_batch(session, str(relation), batch, table_format(adapter))
            if feed is not None:
                update(session, Feed(table_format=table_format(adapter), **feed), batch)
    finally:
        if own is not None:
            unpersist(own)
        for name in kept:
            unpersist_by_name(name)


@macro_method()
def update_feed(adapter: Any, feed: dict[str, Any]) -> None:
    """Bring the feed of a history up to date, whatever was done to the history.

    Args:
        feed: fields of `history.feed.Feed`, except the format.
    """
    from dbt_afterimage.history.feed import Feed
    from dbt_afterimage.history.feed import update_feed as update

    with dbt_errors(ConcurrentRunError):
        update(current(), Feed(table_format=table_format(adapter), **feed))


@macro_method(while_parsing={})
def feed_columns(adapter: Any) -> dict[str, str]:
    """Columns that a feed adds to those of its history, with their descriptions."""
    from dbt_afterimage.history.feed import FEED_COLUMNS

    return dict(FEED_COLUMNS)


@macro_method()
def create_view(adapter: Any, statement: str) -> bool:
    """Create a view, however long its text is; False if the catalog has no views.

    Raises:
        DbtRuntimeError: Spark refuses the statement, or the metastore is an embedded one that
            cannot be altered.
    """
    from dbt_afterimage.dbt_spark import long_views

    session = current()
    with dbt_errors(long_views.LongViewError):
        long_views.make_room_for_view(session, statement)
        try:
            session.sql(statement)
        except Exception as error:
            if is_without_views(str(error)):
                return False
            raise
    return True


@macro_method()
def store_view(
    adapter: Any,
    relation: Any,
    statement: str,
    descriptions: dict[str, str],
    properties: dict[str, str],
    reads: list[str],
) -> None:
    """Keep the statement of a view in an empty table, where the catalog has no views.

    Args:
        properties: of the view, its `comment` among them.
        reads: names of other staging models that the statement reads.
    """
    from dbt_afterimage.storage.stored_view import stored_view_properties

    comment = f"Empty: the catalog has no views. dbt reads the statement. {properties['comment']}"
    stored = {**properties, "comment": comment, **stored_view_properties(statement, reads)}
    rows = f"select * from (\n{statement}\n) limit 0"
    create_table(adapter, relation, rows, descriptions, [], stored)


@macro_method(while_parsing={})
def mart_properties(adapter: Any, settings: Any, is_tracking: bool) -> dict[str, str]:
    """Table properties of a mart, by which a later run decides whether it can write to the mart."""
    return _origin(settings, is_tracking).properties()


@macro_method()
def describe_table(adapter: Any, relation: Any, description: str, columns: dict[str, str]) -> None:
    """Store descriptions as comments, as dbt's `persist_docs`, see `update_descriptions`.

    dbt-spark sends a statement per column in every run, each of them a commit, and never sets the
    table's own comment.
    """
    with dbt_errors():
        update_descriptions(current(), str(relation), description, columns)


@macro_method()
def evolve_mart_schema(adapter: Any, relation: Any, upstream: Any, expected: Any) -> bool:
    """Alter an existing mart to what a run wants to write; whether there was anything to alter.

    Args:
        expected: what `_mart_expectations` says of it.

    Raises:
        DbtRuntimeError: the mart cannot be written to; nothing was.
    """
    session = current()
    settings = expected["settings"]
    data = {
        name: kind
        for name, kind in column_types(session.table(str(upstream)).schema).items()
        if name not in expected["left_out"]
        and (expected["only"] is None or name in expected["only"])
    }
    added = {name: kind for name, kind in ADDED_COLUMNS.items() if name in expected["own"]}
    wanted = TargetSchema(
        table=str(relation),
        source_table=settings["source_table"],
        upstream=str(upstream),
        origin=_origin(settings, expected["is_tracking"]),
        own=[name for name in expected["own"] if name not in added],
        data={**added, **data},
        copies=expected["copies"],
        rebuild_hint=expected.get("rebuild_hint")
        or f"rebuild the table: dbt run --full-refresh --select {expected['model']}+",
        retype="restore the type upstream",
        untracked=[*added, *settings.get("optional_columns", {})],
    )
    try:
        changes = check_table(session, wanted)
    except SchemaContractError as error:
        raise DbtRuntimeError(str(error)) from error
    return alter_table(session, str(relation), changes, table_format(adapter))


def _origin(settings: Any, is_tracking: bool) -> Origin:
    tracking = {"track": settings["track"], "ignore": settings["ignore"]}
    return Origin(settings["key"], tracking if is_tracking else None)
