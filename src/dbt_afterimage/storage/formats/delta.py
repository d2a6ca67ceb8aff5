"""Delta: publishes with one MERGE, appends as a numbered transaction, compacts with OPTIMIZE."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from itertools import takewhile
from threading import Lock
from types import MappingProxyType
from typing import ClassVar
from urllib.parse import unquote
from uuid import uuid4

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.errors import ConcurrentRunError
from dbt_afterimage.spark.session import session_settings
from dbt_afterimage.storage.concurrency import check_unchanged
from dbt_afterimage.storage.formats.base import (
    MANY_SMALL_FILES,
    SMALL_FILE_BYTES,
    TableFormat,
)
from dbt_afterimage.storage.formats.merge import merge_batch
from dbt_afterimage.storage.mart_batch import MartBatch

_NOT_IN_FILES = set(" ,;{}()\n\t=")
"""Characters that Delta allows in names of columns only with column mapping."""
_MANY = 1000
"""With more files or commits than this, the rows that each has added are not determined."""

_SAME_ROWS = {
    "OPTIMIZE",
    "REORG",
    "VACUUM START",
    "VACUUM END",
    "ADD COLUMNS",
    "CHANGE COLUMN",
    "CHANGE COLUMNS",
    "SET TBLPROPERTIES",
    "UNSET TBLPROPERTIES",
}
"""Operations after which a table has the same rows."""

# OPTIMIZE has no arguments for them, and dbt's threads share one Spark session.
_OPTIMIZE_OPTIONS_LOCK = Lock()
_OPTIMIZE_OPTIONS = {
    "spark.databricks.delta.optimize.minFileSize": str(SMALL_FILE_BYTES),
    "spark.databricks.delta.optimize.maxDeletedRowsRatio": "0.2",
}

# A shorter time than the table's needs it; nothing reads or writes the table meanwhile.
_VACUUM_OPTIONS = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}

_COMMIT = (
    "add struct<path: string, dataChange: boolean, deletionVector: struct<storageType: string>>, "
    "commitInfo struct<operation: string>"
)


class Delta(TableFormat):
    """Delta Lake."""

    name: ClassVar[str] = "delta"
    properties: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            # If a table may have deletion vectors, Delta lists the files that a statement reads
            # three times instead of once (docs/decisions/0048). Marts, whose rows change, set it.
            "delta.enableDeletionVectors": "false",
        }
    )
    # a table feature: only a table that needs it gets it, since old readers refuse it
    widening_properties: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"delta.enableTypeWidening": "true"}
    )

    def properties_for_columns(self, names: Iterable[str]) -> Mapping[str, str]:
        """Column mapping, where a name is one that Delta cannot write to its files.

        It is a table feature that old readers refuse, so only a table that needs it gets it.
        """
        needs_mapping = any(_NOT_IN_FILES & set(name) for name in names)
        return {"delta.columnMapping.mode": "name"} if needs_mapping else {}

    def version(self, session: SparkSession, table: str) -> str | None:
        """The number of the newest version."""
        row = session.sql(f"describe history {table} limit 1").select("version").first()
        return None if row is None else str(row[0])

    def follows(self, session: SparkSession, table: str, version: str) -> bool:
        """Goes back through the commits since then, from each RESTORE to what it restored."""
        last, first = int(self.version(session, table) or 0), int(version)
        if last <= first:
            return last == first
        commits = session.sql(f"describe history {table} limit {last - first}")
        restored = {
            row["version"]: int(row["to"] or -1)
            for row in commits.filter("operation = 'RESTORE'")
            .selectExpr("version", "operationParameters['version'] as to")
            .collect()
        }
        at = last
        while at > first:
            # RESTORE to a time does not say to which version
            at = restored.get(at, at - 1)
        return at == first

    def has_same_rows(self, session: SparkSession, table: str, first: str, last: str) -> bool:
        """All commits in between are of operations that change no row."""
        count = int(last) - int(first)
        if count <= 0:
            return count == 0
        commits = session.sql(f"describe history {table} limit {count}").collect()
        return len(commits) == count and all(row["operation"] in _SAME_ROWS for row in commits)

    def added_rows(
        self, session: SparkSession, table: str, first: str, last: str
    ) -> DataFrame | None:
        """The files that the commits in between have added, read as Parquet."""
        versions = range(int(first) + 1, int(last) + 1)
        if not 0 < len(versions) <= _MANY:
            return None
        (detail,) = session.sql(f"describe detail {table}").collect()
        location = detail["location"]
        try:
            paths = _added_paths(
                session, [f"{location}/_delta_log/{number:020d}.json" for number in versions]
            )
            rows = session.table(table)
            if len(paths) > _MANY:
                return None
            if not paths:
                return rows.limit(0)
            if detail["properties"].get("delta.columnMapping.mode", "none") != "none":
                # the files have other names for the columns
                names = [path.rpartition("/")[2] for path in paths]
                return rows.filter(F.col("_metadata.file_name").isin(names))
            files = [path if ":/" in path else f"{location}/{path}" for path in paths]
            return session.read.schema(rows.schema).option("basePath", location).parquet(*files)
        except AnalysisException:  # commits or files that were removed meanwhile
            return None

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
        """An append with a transaction number, which Delta commits once."""
        # a table that was replaced meanwhile knows nothing of the transaction
        check_unchanged(session, table, after, batch_column)
        number = _microseconds(after)
        if _is_committed(session, table, rows, f"afterimage {table}", number):
            return
        # Either another run has recorded the batch, or its rows were removed since, by `restore
        # table` for example: Delta remembers the transaction all the same.
        version = self.version(session, table)
        check_unchanged(session, table, after, batch_column)
        transaction = f"afterimage {table} after version {version}"
        if not _is_committed(session, table, rows, transaction, number):
            raise ConcurrentRunError.of(table)

    def publish(self, session: SparkSession, table: str, batch: MartBatch) -> None:
        """One MERGE.

        Delta notices what is committed after the MERGE has begun. A commit in the milliseconds
        between the version check and that moment goes unnoticed.
        """
        session.sql(f"refresh table {table}")
        if self.version(session, table) != batch.base_version:
            raise ConcurrentRunError.of(table)
        merge_batch(session, table, batch)

    def file_count(self, session: SparkSession, table: str) -> int:
        """From the table's detail."""
        found = session.sql(f"describe detail {table}").select("numFiles")
        return int(found.collect()[0][0] or 0)

    def small_file_counts(self, session: SparkSession, tables: Sequence[str]) -> dict[str, int]:
        """Commits since the last OPTIMIZE: Delta has no list of its files that SQL can read."""
        return {table: self._small_file_count(session, table) for table in tables}

    def _small_file_count(self, session: SparkSession, table: str) -> int:
        files = self.file_count(session, table)
        if files < MANY_SMALL_FILES:
            return files
        commits = session.sql(f"describe history {table} limit {MANY_SMALL_FILES}")
        operations = [row["operation"] for row in commits.select("operation").collect()]
        return len(list(takewhile(lambda name: name != "OPTIMIZE", operations)))

    def merge_small_files(self, session: SparkSession, table: str, max_files: int) -> str:
        """OPTIMIZE of small files. Delta has no limit: `max_files` is ignored."""
        with _OPTIMIZE_OPTIONS_LOCK, session_settings(session, _OPTIMIZE_OPTIONS):
            return self.compact_small(session, table)

    def compact(self, session: SparkSession, table: str, max_files: int, keep_days: int) -> str:
        """OPTIMIZE and VACUUM. Delta has no limits: both arguments are ignored."""
        done = self.compact_small(session, table)
        # Delta 4.3 goes by the table's own property; it ignores `retain`, except for 0 hours
        session.sql(f"vacuum {table}")
        return (
            f"{done}; files that were out of use for longer than "
            "`delta.deletedFileRetentionDuration` were removed"
        )

    def compact_small(self, session: SparkSession, table: str) -> str:
        """Small files, and files that deletion vectors cover in part; large whole ones stay."""
        metrics = session.sql(f"optimize {table}").collect()[0]["metrics"]
        return f"{metrics['numFilesRemoved']:,} data files became {metrics['numFilesAdded']:,}"

    def pinned_states(self, session: SparkSession, table: str) -> list[str]:
        """Delta has neither branches nor tags."""
        return []

    def purge(self, session: SparkSession, table: str) -> str:
        """REORG of files with deletion vectors, then VACUUM of all that is out of use."""
        metrics = session.sql(f"reorg table {table} apply (purge)").collect()[0]["metrics"]
        with _OPTIMIZE_OPTIONS_LOCK, session_settings(session, _VACUUM_OPTIONS):
            session.sql(f"vacuum {table} retain 0 hours")
        return (
            f"{metrics['numFilesRemoved']:,} data files were rewritten, all files that were out of "
            "use were removed"
        )


def _added_paths(session: SparkSession, commits: Sequence[str]) -> list[str]:
    """Files with new rows.

    A file with a deletion vector was there before, and so were the rows that a delete has written.
    """
    actions = session.read.schema(_COMMIT).json(list(commits)).select("*", "_metadata.file_name")
    deletes = actions.filter("commitInfo.operation = 'DELETE'").select("file_name")
    added = actions.filter("add.dataChange and add.deletionVector is null")
    found = added.join(F.broadcast(deletes), "file_name", "left_anti").select("add.path")
    return [unquote(row["path"]) for row in found.limit(_MANY + 1).collect()]


def _is_committed(
    session: SparkSession, table: str, rows: DataFrame, transaction: str, number: int
) -> bool:
    """Append rows, unless the transaction of that number was committed before."""
    # Delta skips a second one silently, so the commit gets a name to look for.
    name = f"afterimage {uuid4()}"
    (
        rows.write.format("delta")
        .mode("append")
        .option("txnAppId", transaction)
        .option("txnVersion", str(number))
        .option("userMetadata", name)
        .saveAsTable(table)
    )
    commits = session.sql(f"describe history {table} limit 50")
    return commits.filter(F.col("userMetadata") == name).count() > 0


def _microseconds(after: str | None) -> int:
    if after is None:
        return 0
    # Spark leaves out zeros at the end of a fraction, which Python 3.10 requires
    whole, _, fraction = after.partition(".")
    moment = datetime.fromisoformat(f"{whole}.{fraction:0<6}").replace(tzinfo=timezone.utc)
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond
