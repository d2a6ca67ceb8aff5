"""The interface of a table format. All that differs between formats is behind this class.

History, current and the change log are the same on every format; how a batch is appended and
published, how files are compacted, and which table properties help, is not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dbt_afterimage.storage.mart_batch import MartBatch


MANY_SMALL_FILES = 20
"""A table with fewer small files than this in each partition is left alone after a run."""
SMALL_FILE_BYTES = 32 << 20
"""`merge_small_files` leaves larger files alone, unless many of their rows are deleted."""


class TableFormat(ABC):
    """A table format, and the statements that only it understands."""

    name: ClassVar[str]
    properties: ClassVar[Mapping[str, str]]
    """Properties of every table of this package, unless the table itself sets them."""
    each_task_writes: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Writer options with which each task writes its rows to any partition, without a shuffle."""
    widening_properties: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Properties that a table needs before the type of one of its columns can be widened."""

    reads_arrays_by_row: ClassVar[bool] = False
    """Whether a scan that reads an array, a map or a struct reads all its columns row by row."""

    def properties_for_columns(self, names: Iterable[str]) -> Mapping[str, str]:
        """Properties that a table needs before it can have columns of these names."""
        return {}

    @abstractmethod
    def version(self, session: SparkSession, table: str) -> str | None:
        """The table's current version; None where it has none yet. Keeps Spark's caches."""

    @abstractmethod
    def follows(self, session: SparkSession, table: str, version: str) -> bool:
        """Whether a table has had a version and has only been written to since; from metadata.

        Returns:
            False if the table was restored to an earlier version, or replaced. True also where the
            table has expired what would show it.
        """

    @abstractmethod
    def has_same_rows(self, session: SparkSession, table: str, first: str, last: str) -> bool:
        """Whether files alone were rewritten from a version to a later one; from metadata.

        Returns:
            False also where that is not known.
        """

    @abstractmethod
    def added_rows(
        self, session: SparkSession, table: str, first: str, last: str
    ) -> DataFrame | None:
        """Rows that were added after a version, up to a later one; some may be deleted since.

        Returns:
            None if that is not known: the table has expired the versions, or has rewritten rows
            together with new ones.
        """

    @abstractmethod
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
        """See `storage.append.append_once`; ``rows`` have the table's columns in its order."""

    @abstractmethod
    def publish(self, session: SparkSession, table: str, batch: MartBatch) -> None:
        """Write a batch so that readers see all of it or nothing.

        Raises:
            ConcurrentRunError: the table is not at the batch's base version any more.
        """

    @abstractmethod
    def file_count(self, session: SparkSession, table: str) -> int:
        """How many data files a table has, from its metadata."""

    @abstractmethod
    def small_file_counts(self, session: SparkSession, tables: Sequence[str]) -> dict[str, int]:
        """How many small files of each table would be merged, in one partition; from metadata.

        Iceberg: the greatest number of small data files, or of position delete files, in one
        partition. Delta: the commits since the last OPTIMIZE, if the table has as many files.
        """

    @abstractmethod
    def merge_small_files(self, session: SparkSession, table: str, max_files: int) -> str:
        """Merge small files and rewrite those with many deleted rows; keep every old snapshot.

        Returns:
            What was done, in words.
        """

    @abstractmethod
    def compact(self, session: SparkSession, table: str, max_files: int, keep_days: int) -> str:
        """Rewrite small files and expire old snapshots; returns what was done, in words."""

    @abstractmethod
    def compact_small(self, session: SparkSession, table: str) -> str:
        """The same for a table that is small except for its number of files."""

    @abstractmethod
    def pinned_states(self, session: SparkSession, table: str) -> list[str]:
        """Branches and tags of others, which keep old states of the table readable."""

    @abstractmethod
    def purge(self, session: SparkSession, table: str) -> str:
        """Remove every file that the current state does not need; returns what was done, in words.

        Deleted rows leave the files that hold them, and all old states expire. No run may
        write to the table or read an old state of it meanwhile.
        """
