"""Spark's errors as a user wants them: the sentence, without the logical plan that follows it.

What the table formats say when two runs write one table is put in our own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

# `... SQLSTATE: 42703; line 3 pos 8;` ends the sentence; the plan is in the lines after it, up
# to the next exception of a chain. Lines of code in a traceback are indented and stay.
_PLAN = re.compile(
    r"^(\S[^\n]*SQLSTATE: \w+[^\n]*)\n.*?(?=\n\n(?:The above|During handling)|\Z)",
    re.DOTALL | re.MULTILINE,
)


def without_plan(text: str) -> str:
    """An error's text, or a traceback, without the plans; text without any stays as it is."""
    return _PLAN.sub(r"\1", text)


class AfterimageError(Exception):
    """An error that the user can act on: its text is complete without a traceback."""


def is_ours(error: BaseException) -> bool:
    """Whether this package defines the error: its message is complete without a traceback."""
    return type(error).__module__.partition(".")[0] == __name__.partition(".")[0]


# Errors of Iceberg, Delta and the catalogs if a commit or a new table conflicts with another run.
_CONFLICTS = re.compile(
    r"Found conflicting files|Found new conflicting delete files|CommitFailedException"
    r"|Cannot commit, missing data files|DELTA_CONCURRENT|Concurrent\w+Exception"
    r"|DELTA_METADATA_CHANGED|MetadataChangedException|ProtocolChangedException"
    r"|is not an ancestor of"
    r"|TableAlreadyExistsException|TABLE_OR_VIEW_ALREADY_EXISTS",
)


class ConcurrentRunError(RuntimeError):
    """Another run wrote to a table while this one was about to."""

    @classmethod
    def of(cls, table: str) -> ConcurrentRunError:
        """The error for a table."""
        return cls(
            f"{table}: another run wrote to it while this one was working. Nothing of this run was "
            "written to it, nothing is lost or doubled. Fix: wait until the other run has ended "
            "and run again; make sure that only one run at a time builds a table, for example by a "
            "concurrency limit of one in your scheduler."
        )

    @classmethod
    def while_replaced(cls, table: str) -> ConcurrentRunError:
        """The error for a table that was replaced, and what another run had added with it."""
        return cls(
            f"{table}: another run wrote to it while this one rebuilt it. It is as this run "
            "built it; the next run reads again what the other one had recorded, so nothing is "
            "lost. But what was built from it meanwhile does not know that it was rebuilt. Fix: "
            "wait until the other run has ended and run once more with --vars "
            "'{rebuild_changes: true}'; make sure that only one run at a time builds a table."
        )


@contextmanager
def conflicts_explained(table: str) -> Iterator[None]:
    """Within this context, a commit that conflicts with another run raises `ConcurrentRunError`."""
    try:
        yield
    except Exception as error:
        # Spark wraps what it knows; what it does not is an error of py4j
        if is_conflict(str(error)):
            raise ConcurrentRunError.of(table) from error
        raise


# A checkpoint's blocks are in the executors' memory and on their disks, and end with them.
_LOST_EXECUTOR = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"

# What the machine refused, in the words of Java and SQLite -> what to do
_RESOURCES = {
    r".*(?:No space left on device|Disk quota exceeded|File too large|SQLITE_(?:FULL|IOERR)).*": (
        "A disk is full, or the system refuses to write to it (quota, limit, fault). Fix: free "
        "space or raise the limit, and run again. Spark's temporary files are in "
        "`spark.local.dir` (by default /tmp), tables in the warehouse."
    ),
    r".*(?:SQLITE_BUSY|database is locked).*": (
        "The catalog's SQLite file stayed locked: another process writes to it. Fix: wait until "
        "that process has ended, and run again; if several processes often write at once, use "
        "another catalog, such as Iceberg's of the types rest, hive or jdbc with PostgreSQL."
    ),
    r".*java\.lang\.OutOfMemoryError.*": (
        "Java ran out of memory. Fix: set `spark.driver.memory` of the target in profiles.yml to "
        "more (on a cluster, spark.executor.memory too), and run again."
    ),
}

_NO_CATALOG_CLASS = re.compile(
    r"Cannot find catalog plugin class for catalog '?(\w+)'?: ((?:\w+\.)*\w+)"
)

# Iceberg's, for a catalog of tables only, such as Glue, and for a REST server of tables only;
# Spark's, for a view over one that was stored for that reason (storage/stored_view.py)
_NO_VIEWS = re.compile(
    r"(?:Creating|Replacing) a view is not supported by catalog: (?P<name>\S+)"
    r"|Server does not support endpoint: \w+ \S+/views\b"
    r"|references temporary view: \[afterimage_view_"
)


def has_explanation(text: str) -> bool:
    """Whether `explained` says more about an error than Spark does."""
    return (
        is_conflict(text)
        or _LOST_EXECUTOR in text
        or any(known.search(text) for known in (_NO_CATALOG_CLASS, _NO_VIEWS))
        or any(re.search(known, text) for known in _RESOURCES)
    )


def explained(text: str) -> str:
    """An error of a statement as a user wants it."""
    found = _NO_CATALOG_CLASS.search(text)
    if found:
        return (
            f"Spark does not have the jar of the catalog {found[1]}: it lacks the class "
            f"{found[2]}. Where something else started Spark's driver (spark-submit, an operator, "
            "a server), `spark.jars.packages` of profiles.yml comes too late. Nothing was run. "
            "Fix: give the driver the package, such as spark-submit --packages with the profile's "
            "`spark.jars.packages`; docs/spark.md shows the command."
        )
    found = _NO_VIEWS.search(text)
    if found:
        name = found["name"]
        return (
            f"The catalog{' ' + name if name else ''} has no views. Staging models do without "
            "them (docs/spark.md); a model with `materialized: view` does not. Fix: another "
            "materialization, such as table or ephemeral; or a catalog that has views, such as "
            "Iceberg's of the types jdbc (with jdbc.schema-version: V1) and hive."
        )
    if _LOST_EXECUTOR in text:
        return (
            "An executor of the Spark cluster was lost, and with it rows that this run had "
            "computed. Nothing of this batch was written; nothing is lost or doubled. Fix: run "
            "again. If executors are often lost, give them more memory: spark.executor.memory, "
            "spark.executor.memoryOverhead."
        )
    for known, advice in _RESOURCES.items():
        found = re.search(known, text)
        if found:
            return (
                f"{advice} What was not committed is not written; nothing is lost or doubled. "
                f"What Spark said: {found[0].strip(' :')}"
            )
    if is_conflict(text):
        first = text.strip().splitlines()[0]
        return f"{ConcurrentRunError.of('This table')} What Spark said: {first}"
    return without_plan(text)


def is_without_views(text: str) -> bool:
    """Whether an error says that the catalog has no views."""
    return _NO_VIEWS.search(text) is not None


def is_conflict(text: str) -> bool:
    """Whether an error says that a commit conflicted with that of another run."""
    return _CONFLICTS.search(text) is not None
