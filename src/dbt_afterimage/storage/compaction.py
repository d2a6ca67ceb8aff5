"""Compaction: tables that receive many small batches stay fast to read.

`compact` calls the table format's own procedures with a bound on their work, so that a call ends
soon and the next one continues. A command compacts the tables that it has written to by itself,
once they have many small files: at its end, so that a command that is killed meanwhile, or
conflicts with another one, has lost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import SparkSession

from dbt_afterimage.errors import conflicts_explained, explained, is_conflict
from dbt_afterimage.storage.formats import format_named
from dbt_afterimage.storage.formats.base import MANY_SMALL_FILES

logger = AdapterLogger("afterimage")

MANY_FILES = 100
"""A table with more files than this is to be compacted: reports say so."""
MAX_FILES_AFTER_RUN = 100
"""`compact_written` rewrites up to this many data files of an Iceberg table."""

_written: dict[str, set[str]] = {}
"""By table format, the tables that the command has written to."""


class CompactError(ValueError):
    """An argument of `compact` cannot be; the text is meant for the user."""


@dataclass(frozen=True)
class Limits:
    """How far a call goes.

    Attributes:
        max_files: rewrite up to this many data files of a table (Iceberg).
        keep_days: snapshots younger than this stay readable (Iceberg).

    Raises:
        CompactError: one of them is not a whole number, or too small.
    """

    max_files: int
    keep_days: int

    def __post_init__(self) -> None:
        for name, least in (("max_files", 1), ("keep_days", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise CompactError(
                    f"`compact`: `{name}` is {value!r}. Allowed: a whole number from {least}. "
                    "Nothing was done. Fix: correct the argument."
                )


def compact(session: SparkSession, table: str, table_format: str, limits: Limits) -> str:
    """Rewrite small files and files with many deleted rows, and expire old snapshots of a table.

    Returns:
        What was done, in words.

    Raises:
        ConcurrentRunError: a run wrote to the table meanwhile.
    """
    with conflicts_explained(table):
        return format_named(table_format).compact(
            session, table, limits.max_files, limits.keep_days
        )


def compact_at_end(table: str, table_format: str) -> None:
    """Let the end of the command look at a table that it has written to."""
    _written.setdefault(table_format, set()).add(table)


def compact_written(session: SparkSession) -> None:
    """Merge the small files of tables that the command has written to, where there are many.

    No snapshot is expired and no file removed: only `compact` does that. The command's rows are
    committed, so a failure is a warning, and a conflict with another run is left to that run.
    """
    while _written:
        table_format, tables = _written.popitem()
        names = ", ".join(sorted(tables))
        table_kind = format_named(table_format)
        with _failure_is_a_warning(names):
            counts = table_kind.small_file_counts(session, sorted(tables))
            for table, count in counts.items():
                if count >= MANY_SMALL_FILES:
                    with _failure_is_a_warning(table):
                        done = table_kind.merge_small_files(session, table, MAX_FILES_AFTER_RUN)
                        logger.info(f"{table}: {done}")


@contextmanager
def _failure_is_a_warning(names: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if not is_conflict(str(error)):
            logger.warning(
                f"{names}: the rows are written, but small files could not be merged: "
                f"{explained(str(error))} Fix: run dbt run-operation compact, or, unless it is a "
                "change_activity, set `auto_compact: false` in the `meta.afterimage` of its source "
                "table."
            )
