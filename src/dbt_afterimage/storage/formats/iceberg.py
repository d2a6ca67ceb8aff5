"""Iceberg: publishes on a branch, appends under snapshot validation, compacts by procedure.

A branch takes two cheap commits, a delete by position and an append, and is published by moving
`main` to it (docs/decisions/0016).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import cache
from types import MappingProxyType
from typing import ClassVar
from uuid import uuid4

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.errors import ConcurrentRunError, without_plan
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.storage.checkpoint import unpersist
from dbt_afterimage.storage.concurrency import check_unchanged, is_newer
from dbt_afterimage.storage.formats.base import (
    MANY_SMALL_FILES,
    SMALL_FILE_BYTES,
    TableFormat,
)
from dbt_afterimage.storage.formats.merge import merge_batch
from dbt_afterimage.storage.mart_batch import ACTION, MartBatch, computed
from dbt_afterimage.storage.schema_evolution import table_properties
from dbt_afterimage.storage.temp_view import temporary_view

logger = AdapterLogger("afterimage")

BRANCH_PREFIX = "afterimage_"
TAG = "published"
"""The tag at the state that a run has published after its tests (`storage.published`)."""

_BROADCAST_LIMIT = 100_000
"""Up to this many identities are broadcast, so the table is not shuffled."""

_APPENDS = ("append", "replace", "delete")
"""Operations after which the rows of appended files are all that is new."""

# A killed run leaves its branch behind. That of a live run is younger once it has a commit, and
# `compact` is not to run at the same time.
_ABANDONED_AFTER = timedelta(days=1)

_MANIFEST_SIZE = "commit.manifest.target-size-bytes"
_OWN_MANIFEST_SIZE = "afterimage.own_manifest_size"
"""The table's own value of `_MANIFEST_SIZE`, as long as `purge` has set another one."""
_NO_SIZE = "none"

_ANY_SIZE = 1 << 62
"""More bytes than a file has: no file is rewritten for its size."""


class Iceberg(TableFormat):
    """Apache Iceberg, format version 2."""

    name: ClassVar[str] = "iceberg"
    properties: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            # One task reads one row group. 16 MiB is Iceberg's smallest split; with its default
            # row group of 128 MiB one core would read a table of a million rows.
            "write.parquet.row-group-size-bytes": str(16 << 20),
            # Each commit adds a manifest, and each statement reads all of them; by default Iceberg
            # merges manifests when there are 100 (docs/decisions/0047).
            "commit.manifest.min-count-to-merge": "10",
        }
    )
    each_task_writes: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"distribution-mode": "none", "fanout-enabled": "true"}
    )

    reads_arrays_by_row: ClassVar[bool] = True

    def version(self, session: SparkSession, table: str) -> str | None:
        """The snapshot id of `main`; None for a table without snapshots."""
        # a command: Spark runs no job
        rows = session.sql(f"show tblproperties {table} ('current-snapshot-id')").collect()
        return None if rows[0]["value"] == "none" else str(rows[0]["value"])

    def follows(self, session: SparkSession, table: str, version: str) -> bool:
        """Goes back through the parents of the current snapshot."""
        snapshots = {
            str(row["snapshot_id"]): row
            for row in session.sql(
                f"select snapshot_id, parent_id, committed_at from {table}.snapshots"
            ).collect()
        }
        at, oldest = self.version(session, table), None
        while at != version and at in snapshots:
            oldest = snapshots[at]
            at = None if oldest["parent_id"] is None else str(oldest["parent_id"])
        if at == version:
            return True
        if at is None or oldest is None:
            return False
        # its ancestors have expired: an older snapshot may be one of them
        known = snapshots.get(version)
        return known is None or known["committed_at"] <= oldest["committed_at"]

    def has_same_rows(self, session: SparkSession, table: str, first: str, last: str) -> bool:
        """All snapshots in between are of the operation `replace`."""
        if first == last:
            return True
        snapshots = {
            str(row["snapshot_id"]): row
            for row in session.sql(
                f"select snapshot_id, parent_id, operation from {table}.snapshots"
            ).collect()
        }
        at = last
        while at != first:
            snapshot = snapshots.get(at)
            if snapshot is None or snapshot["operation"] != "replace":
                return False
            at = str(snapshot["parent_id"])
        return True

    def added_rows(
        self, session: SparkSession, table: str, first: str, last: str
    ) -> DataFrame | None:
        """The incremental read, which sees appends only; of our own appends the changelog.

        `append_once` commits an overwrite of nothing, for its conflict check.
        """
        snapshots = {
            str(row["snapshot_id"]): row
            for row in session.sql(
                "select snapshot_id, parent_id, operation, summary['added-data-files'] as files, "
                "coalesce(summary['deleted-data-files'], summary['added-delete-files']) as removed "
                f"from {table}.snapshots"
            ).collect()
        }
        at, has_overwrites, has_removals = last, False, False
        while at != first:
            snapshot = snapshots.get(at)
            if snapshot is None:
                return None
            if snapshot["operation"] not in _APPENDS and snapshot["files"]:
                has_overwrites = True
            has_removals = has_removals or (
                snapshot["operation"] != "replace" and snapshot["removed"] is not None
            )
            at = str(snapshot["parent_id"])
        reader = session.read.option("start-snapshot-id", first).option("end-snapshot-id", last)
        if not has_overwrites:
            return reader.table(table)
        if has_removals:
            return None
        # every one of them is an insert: nothing was removed
        changes = reader.table(f"{table}.changes")
        return changes.drop("_change_type", "_change_ordinal", "_commit_snapshot_id")

    def append_once(
        self,
        session: SparkSession,
        table: str,
        rows: DataFrame,
        after: str | None,
        batch_column: str,
        *,
        gather: bool,
        base_version: str | None,
    ) -> None:
        """An overwrite of what another run might have recorded: Iceberg refuses it if so."""
        # no `refresh table`: Spark would drop all that it cached of the table, the batch too
        snapshot = base_version or self.version(session, table)
        writer = rows.writeTo(table)
        if not gather:
            writer = writer.options(**self.each_task_writes)
        if snapshot is None:
            # nothing to validate from: first a commit of no rows, which any number of runs may make
            rows.limit(0).writeTo(table).append()
            snapshot = self.version(session, table)
        if base_version is None:
            check_unchanged(session, table, after, batch_column)
        (
            writer.option("isolation-level", "serializable")
            .option("validate-from-snapshot-id", snapshot)
            .overwrite(is_newer(after, batch_column))
        )

    def publish(self, session: SparkSession, table: str, batch: MartBatch) -> None:
        """Write to a branch, then fast-forward `main` to it: refused if `main` has moved."""
        if batch.base_version is None:  # a table without snapshots: nothing to branch from
            session.sql(f"refresh table {table}")
            if self.version(session, table) is not None:
                raise ConcurrentRunError.of(table)
            merge_batch(session, table, batch)
            return
        rows, counts = batch.rows, batch.counts
        if counts is None:
            rows, counts = computed(rows)
        try:
            deleted = rows.filter(F.col(ACTION) != "insert").selectExpr(
                *map(quoted, batch.identity)
            )
            if counts["deleted"] <= _BROADCAST_LIMIT:
                deleted = F.broadcast(deleted)
            named = map(quoted, session.table(table).columns)
            inserted = rows.filter(F.col(ACTION) != "delete").selectExpr(*named)
            if not any(counts.values()):
                return
            branch = _new_branch(session, table, batch)
            if branch is None:
                merge_batch(session, table, replace(batch, rows=rows))
                return
            _write_branch(
                session,
                table,
                branch,
                batch,
                deleted if counts["deleted"] else None,
                inserted if counts["inserted"] else None,
            )
        finally:
            if batch.counts is None:
                unpersist(rows)

    def file_count(self, session: SparkSession, table: str) -> int:
        """From the summary of the newest snapshot."""
        return _total_files(session, [table], "data")[table]

    def small_file_counts(self, session: SparkSession, tables: Sequence[str]) -> dict[str, int]:
        """Reads the manifests of a table only if it has that many files at all."""
        totals = _total_files(session, tables, "data", "delete")
        return {
            table: total if total < MANY_SMALL_FILES else _small_files(session, table)
            for table, total in totals.items()
        }

    def merge_small_files(self, session: SparkSession, table: str, max_files: int) -> str:
        """The two rewriting procedures of `compact`, for small files only."""
        return _rewrite(session, table, max_files, f", 'min-file-size-bytes', '{SMALL_FILE_BYTES}'")

    def compact(self, session: SparkSession, table: str, max_files: int, keep_days: int) -> str:
        """Rewrite data and delete files, expire snapshots, drop branches of killed runs."""
        now = datetime.now(timezone.utc)
        _drop_abandoned_branches(session, table, now - _ABANDONED_AFTER)
        _restore_manifest_size(session, table)
        done = _rewrite(session, table, max_files)
        if version := version_with_tagged_rows(session, table):
            # or the tag would keep the files that were rewritten
            move_tag(session, table, version)
        before = now - timedelta(days=keep_days)
        expired = session.sql(
            f"call system.expire_snapshots(table => '{table}', retain_last => 1, "
            f"older_than => timestamp '{before:%Y-%m-%d %H:%M:%S}')"
        ).collect()[0]
        return f"{done}; {sum(expired.asDict().values()):,} files were removed"

    def compact_small(self, session: SparkSession, table: str) -> str:
        """Snapshots stay readable for a week."""
        return self.compact(session, table, max_files=1000, keep_days=7)

    def pinned_states(self, session: SparkSession, table: str) -> list[str]:
        """Branches and tags other than `main` and those of our own publications."""
        rows = session.sql(
            f"select lower(type) as type, name from {table}.refs where name <> 'main' "
            f"and not name rlike '^{BRANCH_PREFIX}[0-9a-f]{{32}}$' order by name"
        ).collect()
        return [f"{row['type']} {row['name']}" for row in rows]

    def purge(self, session: SparkSession, table: str) -> str:
        """Rewrite each file with deleted rows, then expire all snapshots but the current one.

        Manifests are rewritten in between: a manifest keeps the least and greatest values of the
        files that were removed from it.
        """
        now = datetime.now(timezone.utc)
        _drop_abandoned_branches(session, table, now + _ABANDONED_AFTER)
        rewritten = session.sql(
            f"call system.rewrite_data_files(table => '{table}', options => map("
            "'delete-file-threshold', '1', 'min-file-size-bytes', '0', "
            f"'max-file-size-bytes', '{_ANY_SIZE}', 'remove-dangling-deletes', 'true'))"
        ).collect()[0]
        _remove_deleted_entries(session, table)
        version = self.version(session, table)
        if version and tagged_version(session, table):
            # an erasure has checked that it was at the rows before
            move_tag(session, table, version)
        expired = session.sql(
            f"call system.expire_snapshots(table => '{table}', retain_last => 1, "
            f"older_than => timestamp '{now + _ABANDONED_AFTER:%Y-%m-%d %H:%M:%S}')"
        ).collect()[0]
        # Iceberg refuses a shorter time: files of a run that is still writing are in no snapshot.
        # The table's own FileIO lists the files: Spark has no file system for `s3:` and the like.
        orphans = session.sql(
            f"call system.remove_orphan_files(table => '{table}', "
            f"older_than => timestamp '{now - _ABANDONED_AFTER * 2:%Y-%m-%d %H:%M:%S}', "
            "prefix_mismatch_mode => 'IGNORE', prefix_listing => true)"
        ).count()
        removed = sum(expired.asDict().values()) + orphans
        return (
            f"{rewritten['rewritten_data_files_count']:,} data files were rewritten, "
            f"{removed:,} files were removed"
        )


def tagged_version(session: SparkSession, table: str) -> str | None:
    """The version that `TAG` has; None where the table has no such tag."""
    rows = session.sql(f"select snapshot_id from {table}.refs where name = '{TAG}'").collect()
    return str(rows[0][0]) if rows else None


def version_with_tagged_rows(session: SparkSession, table: str) -> str | None:
    """The current version of a table, if `TAG` shows its rows; files may differ."""
    iceberg = Iceberg()
    tagged, version = tagged_version(session, table), iceberg.version(session, table)
    if tagged and version and iceberg.has_same_rows(session, table, tagged, version):
        return version
    return None


def move_tag(session: SparkSession, table: str, version: str) -> None:
    """Move `TAG` to a version; the table gets the tag if it has none."""
    session.sql(f"alter table {table} create or replace tag {TAG} as of version {version}")


def _total_files(session: SparkSession, tables: Sequence[str], *kinds: str) -> dict[str, int]:
    """How many files of a kind each table has, the greatest such number, by its newest snapshot."""
    total = ", ".join(f"int(summary['total-{kind}-files'])" for kind in kinds)
    snapshots = " union all ".join(
        f"select '{table}' as name, committed_at, array_max(array({total})) as total "
        f"from {table}.snapshots"
        for table in tables
    )
    # the driver makes these rows: in one partition they need no shuffle, which is a job
    newest = session.sql(
        "select name, max_by(total, committed_at) "
        f"from (select /*+ coalesce(1) */ * from ({snapshots})) group by name"
    )
    return {**dict.fromkeys(tables, 0), **{name: total or 0 for name, total in newest.collect()}}


def _small_files(session: SparkSession, table: str) -> int:
    """The greatest number of small data files, or of small delete files, in one partition."""
    files = session.table(f"{table}.files")
    group = [name for name in ("content", "partition") if name in files.columns]
    # deletion vectors of format version 3 are in Puffin files, one per data file
    small = files.filter(F.col("file_size_in_bytes") < SMALL_FILE_BYTES).filter(
        F.lower("file_format") != "puffin"
    )
    # in one partition: a shuffle is a job
    counts = small.coalesce(1).groupBy(*group).count()
    return int(counts.agg(F.max("count")).collect()[0][0] or 0)


def _remove_deleted_entries(session: SparkSession, table: str) -> None:
    """Rewrite manifests until none has an entry of a removed file.

    `rewrite_manifests` leaves a manifest alone if it is the only one of its kind (of data files, of
    delete files) and smaller than a table property says.
    """
    rewrite = f"call system.rewrite_manifests(table => '{table}', use_caching => false)"
    _restore_manifest_size(session, table)
    if not _sizes_with_deleted_entries(session, table):
        return
    session.sql(rewrite)
    sizes = _sizes_with_deleted_entries(session, table)
    if not sizes:
        return
    own = table_properties(session, table).get(_MANIFEST_SIZE, _NO_SIZE)
    try:
        # the largest comes last: it merges what a smaller size has split
        for size in sizes:
            session.sql(
                f"alter table {table} set tblproperties "
                f"('{_MANIFEST_SIZE}' = '{size // 2}', '{_OWN_MANIFEST_SIZE}' = '{own}')"
            )
            session.sql(rewrite)
    finally:
        _restore_manifest_size(session, table)
    if _sizes_with_deleted_entries(session, table):
        raise ConcurrentRunError.of(table)


def _restore_manifest_size(session: SparkSession, table: str) -> None:
    """Undo what `_remove_deleted_entries` has set, also where it was killed."""
    own = table_properties(session, table).get(_OWN_MANIFEST_SIZE)
    if own is None:
        return
    names = [_OWN_MANIFEST_SIZE]
    if own == _NO_SIZE:
        names.append(_MANIFEST_SIZE)
    else:
        session.sql(f"alter table {table} set tblproperties ('{_MANIFEST_SIZE}' = '{own}')")
    listed = ", ".join(f"'{name}'" for name in names)
    session.sql(f"alter table {table} unset tblproperties ({listed})")


def _sizes_with_deleted_entries(session: SparkSession, table: str) -> list[int]:
    """Bytes of each manifest that has entries of removed files, the smallest first."""
    rows = session.sql(
        f"select length from {table}.manifests where deleted_data_files_count > 0 "
        "or deleted_delete_files_count > 0 order by length"
    ).collect()
    return [row["length"] for row in rows]


def _rewrite(session: SparkSession, table: str, max_files: int, options: str = "") -> str:
    """Rewrite data files and position delete files; returns what was done, in words."""
    # A file is rewritten if it is one of five small ones, or if deletes cover a fifth of it.
    files = session.sql(
        f"call system.rewrite_data_files(table => '{table}', options => map("
        f"'max-files-to-rewrite', '{max_files}', 'delete-ratio-threshold', '0.2', "
        f"'remove-dangling-deletes', 'true'{options}))"
    ).collect()[0]
    deletes = session.sql(
        f"call system.rewrite_position_delete_files(table => '{table}', "
        "options => map('min-input-files', '5'))"
    ).collect()[0]
    return (
        f"{files['rewritten_data_files_count']:,} data files became "
        f"{files['added_data_files_count']:,}, "
        f"{deletes['rewritten_delete_files_count']:,} delete files "
        f"{deletes['added_delete_files_count']:,}"
    )


def _new_branch(session: SparkSession, table: str, batch: MartBatch) -> str | None:
    """A branch at the state that a batch follows; None if the catalog refuses branches.

    Iceberg reports a catalog's refusal, such as that of Nessie's REST catalog, as a conflict.
    """
    name = f"{BRANCH_PREFIX}{uuid4().hex}"
    try:
        session.sql(f"alter table {table} create branch {name} as of version {batch.base_version}")
    except Exception as error:
        session.sql(f"refresh table {table}")
        if Iceberg().version(session, table) != batch.base_version:
            raise ConcurrentRunError.of(table) from error
        _warn_of_merge(without_plan(str(error)).strip().splitlines()[0])
        return None
    return name


@cache
def _warn_of_merge(refusal: str) -> None:
    """Once per process and refusal."""
    logger.warning(
        "The catalog refuses branches of a table, so each mart is published by one MERGE, which "
        f"takes longer (docs/spark.md). What it said: {refusal}"
    )


def _write_branch(
    session: SparkSession,
    table: str,
    name: str,
    batch: MartBatch,
    deleted: DataFrame | None,
    inserted: DataFrame | None,
) -> None:
    branch = f"{table}.branch_{name}"
    try:
        if deleted is not None:
            with temporary_view(deleted) as view:
                session.sql(
                    f"merge into {branch} as target using {view} as source on {batch.matches()} "
                    "when matched then delete"
                )
        if inserted is not None:
            # Gathering rows by partition would leave one task per partition, and history has two.
            inserted.writeTo(branch).options(**Iceberg.each_task_writes).append()
        session.sql(
            f"call system.fast_forward(table => '{table}', branch => 'main', to => '{name}')"
        )
    finally:
        session.sql(f"alter table {table} drop branch if exists {name}")


def _drop_abandoned_branches(session: SparkSession, table: str, before: datetime) -> None:
    rows = session.sql(
        f"select name from {table}.refs as refs join {table}.snapshots as snapshots "
        "on refs.snapshot_id = snapshots.snapshot_id "
        f"where name rlike '^{BRANCH_PREFIX}[0-9a-f]{{32}}$' "
        f"and committed_at < timestamp '{before:%Y-%m-%d %H:%M:%S}'"
    ).collect()
    for row in rows:
        session.sql(f"alter table {table} drop branch if exists {row['name']}")
