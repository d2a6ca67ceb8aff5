"""The feed of a history: what each publication did to its versions, in a table that only grows.

A run appends to the feed after it has published the history. The feed's progress names the version
of the history that the feed has reached. Where the history is at another one, because a run was
killed in between or the feed was switched off for a while, the next run appends the difference
between the last state in the feed and the history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from dbt_afterimage.history.names import own
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.spark.literals import timestamp_as_text
from dbt_afterimage.storage.append import append_once
from dbt_afterimage.storage.checkpoint import checkpoint, unpersist
from dbt_afterimage.storage.create import table_writer
from dbt_afterimage.storage.descriptions import describe_columns
from dbt_afterimage.storage.formats import format_named
from dbt_afterimage.storage.mart_batch import ACTION, MartBatch
from dbt_afterimage.storage.progress import (
    ISO_TIMESTAMP,
    Progress,
    next_recorded_at,
    read_progress,
    write_progress,
)
from dbt_afterimage.storage.progress_cache import batch_json
from dbt_afterimage.storage.publish import current_version
from dbt_afterimage.storage.temp_view import temporary_view

FEED_COLUMNS = {
    "feed_at": "UTC time of the publication, later than that of every publication before it",
    "feed_change": (
        "what the publication did to the version: `inserted`; `closed`, it only ended; `corrected`,"
        " it has other values or bounds; `removed`"
    ),
    "feed_image": "`before` or `after`: which state of the version the row holds",
}
"""Columns that a feed adds to those of its history, with their descriptions."""

_CLOSING = (
    "is_current",
    "valid_to",
    "valid_to_seq",
    "closed_by",
    "closed_by_transaction_id",
    "recorded_at",
)
"""Columns of a version that its end alone sets, and `recorded_at`."""
_NO_VERSION = "none"
"""The version in the progress of a feed whose Iceberg table has no snapshots."""


@dataclass(frozen=True)
class Feed:
    """A feed and its history.

    Attributes:
        table: the feed.
        name: its name in the progress table.
        history: the history.
        version_id: the history's surrogate key.
        progress: the progress table.
        table_format: `iceberg` or `delta`.
        descriptions: column name -> description, of the history.
        properties: table properties of a new feed.
    """

    table: str
    name: str
    history: str
    version_id: str
    progress: str
    table_format: str
    descriptions: Mapping[str, str]
    properties: Mapping[str, str]


def update_feed(session: SparkSession, feed: Feed, batch: MartBatch | None = None) -> None:
    """Append what has happened to the history since the last publication in its feed.

    Args:
        feed: the feed; created if it does not exist.
        batch: what was just published; its rows are computed. None where that is not known.

    Raises:
        ConcurrentRunError: another run has written to the feed meanwhile.
    """
    version = current_version(session, feed.history, feed.table_format) or _NO_VERSION
    exists = session.catalog.tableExists(feed.table)
    known = read_progress(session, feed.progress, feed.name)
    if batch is None and exists and _has_reached(session, feed, known, version):
        return
    history = session.table(feed.history)
    if not exists:
        feed_at = next_recorded_at(known)
        rows = changed_rows(history.limit(0), history, feed.version_id)
        described = describe_columns(
            _at(rows, feed_at, [*FEED_COLUMNS, *history.columns]),
            {**feed.descriptions, **FEED_COLUMNS},
        )
        table_writer(
            described, feed.table, feed.table_format, (), feed.properties, gather=False
        ).create()
        _record(session, feed, feed_at, version)
        return
    stored = session.table(feed.table)
    last = stored.agg(F.date_format(F.max("feed_at"), ISO_TIMESTAMP)).collect()[0][0]
    is_at_base = (
        batch is not None
        and last == known.recorded_at
        and _has_reached(session, feed, known, batch.base_version or _NO_VERSION)
    )
    if batch is not None and is_at_base:
        before, after = (
            _replaced_versions(session, feed, batch),
            batch.rows.filter(F.col(ACTION) != "delete"),
        )
    else:
        before, after = state_of(stored, feed.version_id), history
    rows = checkpoint(
        changed_rows(_as(before, history.schema), _as(after, history.schema), feed.version_id)
    )
    try:
        feed_at = last
        if not rows.isEmpty():
            feed_at = next_recorded_at(Progress(last))
            absent = StructType([each for each in stored.schema if each.name not in FEED_COLUMNS])
            named = _as(rows, absent, *list(FEED_COLUMNS)[1:])
            append_once(
                session,
                feed.table,
                _at(named, feed_at, stored.columns),
                feed.table_format,
                last,
                "feed_at",
            )
    finally:
        unpersist(rows)
    _record(session, feed, feed_at, version)


def changed_rows(before: DataFrame, after: DataFrame, version_id: str) -> DataFrame:
    """The rows of a feed, without `feed_at`, for what differs between two states of versions.

    A version that differs in `recorded_at` alone has only been written again.

    Args:
        before: versions, with the columns of the history.
        after: the same versions later, with the same columns.
        version_id: the surrogate key.
    """
    images = own("before"), own("after")
    packed = ", ".join(map(quoted, after.columns))
    old, new = (
        rows.selectExpr(f"{quoted(version_id)} as {own('id')}", f"struct({packed}) as {image}")
        for rows, image in zip((before, after), images, strict=True)
    )

    def are_same(left_out: tuple[str, ...]) -> str:
        compared = [name for name in after.columns if name not in left_out]
        left, right = (
            "struct({})".format(", ".join(f"{image}.{quoted(name)}" for name in compared))
            for image in images
        )
        return f"{left} <=> {right}"

    pairs = ", ".join(
        f"struct('{name}' as feed_image, {image} as version)"
        for name, image in zip(("before", "after"), images, strict=True)
    )
    return (
        old.join(new, own("id"), "full_outer")
        .where(f"{images[0]} is null or {images[1]} is null or not ({are_same(('recorded_at',))})")
        .selectExpr(
            f"case when {images[0]} is null then 'inserted' when {images[1]} is null then 'removed'"
            f" when {images[0]}.is_current and not {images[1]}.is_current and {are_same(_CLOSING)}"
            " then 'closed' else 'corrected' end as feed_change",
            f"inline(filter(array({pairs}), image -> image.version is not null))",
        )
        .selectExpr("feed_change", "feed_image", "version.*")
    )


def state_of(feed: DataFrame, version_id: str) -> DataFrame:
    """The versions that a feed ends with, with its columns."""
    place = own("place_from_end")
    newest_first = f"partition by {quoted(version_id)} order by feed_at desc, feed_image"
    return (
        feed.selectExpr("*", f"row_number() over ({newest_first}) as {place}")
        .where(f"{place} = 1 and feed_image = 'after'")
        .drop(place)
    )


def _has_reached(session: SparkSession, feed: Feed, known: Progress, version: str) -> bool:
    """Whether a feed tells of all that led to a version of the history."""
    reached = known.table_version
    if reached is None or _NO_VERSION in (reached, version):
        return reached == version
    return format_named(feed.table_format).has_same_rows(session, feed.history, reached, version)


def _replaced_versions(session: SparkSession, feed: Feed, batch: MartBatch) -> DataFrame:
    """The versions that a batch has updated or deleted, as they were."""
    if batch.base_version is None:
        return session.table(feed.history).limit(0)
    with temporary_view(batch.rows) as view:
        return session.sql(
            f"select target.* from {feed.history} version as of {batch.base_version} as target "
            f"left semi join {view} as source on {batch.matches()} and source.{ACTION} <> 'insert'"
        )


def _as(rows: DataFrame, schema: StructType, *others: str) -> DataFrame:
    """Rows with the columns of a schema; those that the rows lack are NULL."""
    has = {name.lower() for name in rows.columns}
    return rows.select(
        *(
            (F.col(quoted(each.name)) if each.name.lower() in has else F.lit(None))
            .cast(each.dataType)
            .alias(each.name)
            for each in schema
        ),
        *others,
    )


def _at(rows: DataFrame, feed_at: str, columns: list[str]) -> DataFrame:
    """The rows of a publication, with these columns."""
    moment = timestamp_as_text(feed_at, "feed_image")
    return rows.selectExpr("*", f"{moment} as feed_at").select(*map(quoted, columns))


def _record(session: SparkSession, feed: Feed, feed_at: str | None, version: str) -> None:
    progress = Progress(feed_at, table_version=version)
    write_progress(session, feed.progress, feed.name, progress, batch=batch_json(None))
