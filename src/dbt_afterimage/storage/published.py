"""Publishes the tables of a run together, after its tests: a tag on each, and a view of each tag.

What is held back is kept in properties of `afterimage_progress`, which take no job to read or to
write, each under a key of its own, so that commands at one time do not lose each other's
(docs/decisions/0110):

    version/<table>         the version that the table's tag has
    at                      when a tag was last moved
    publishing/<table>      its tag is about to be moved to that version
    pending/<run>/<table>   the version that a command of the run has left, not published yet
    failed/<run>/<node>     when a node of the run failed that has not passed since

The run has no name if each dbt command is a run of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone

from dbt.adapters.events.logging import AdapterLogger
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from dbt_afterimage.errors import is_without_views
from dbt_afterimage.spark.literals import text
from dbt_afterimage.storage.formats import format_named
from dbt_afterimage.storage.formats.iceberg import TAG, move_tag
from dbt_afterimage.storage.missing_relation import is_missing
from dbt_afterimage.storage.schema_evolution import table_properties

logger = AdapterLogger("afterimage")

_ICEBERG = format_named("iceberg")


class Publications:
    """The tables of a project as the readers of one schema of views see them.

    Args:
        progress: the progress table.
        schema: that of the views.
    """

    def __init__(self, session: SparkSession, progress: str, schema: str) -> None:
        self._session, self._progress, self._schema = session, progress, schema
        self._prefix = f"afterimage.publication/{schema}/"
        self._stored = {
            key.removeprefix(self._prefix): value
            for key, value in table_properties(session, progress).items()
            if key.startswith(self._prefix)
        }

    @property
    def published_at(self) -> str | None:
        """When a tag was last moved, in UTC; None if none was."""
        return self._stored.get("at")

    def failed(self, run: str) -> dict[str, str]:
        """The nodes of a run that have not passed since they failed, and when they did."""
        return self._under(f"failed/{run}/")

    def pending(self, run: str) -> dict[str, str]:
        """The tables that a run has written and not published, with their versions."""
        return self._under(f"pending/{run}/")

    def version(self, table: str) -> str | None:
        """The current version of a table; None if it has none, is missing or is not of Iceberg."""
        try:
            version = _ICEBERG.version(self._session, table)
        except AnalysisException as error:
            if is_missing(error):
                return None
            raise
        return version if version and version.isdigit() else None

    def has_rows_of(self, table: str, version: str, known: str | None) -> bool:
        """Whether a version of a table has the rows of an earlier one; files may differ."""
        if known is None or known == version:
            return known == version
        return _ICEBERG.has_same_rows(self._session, table, known, version)

    def published_version(self, table: str) -> str | None:
        """The version that readers see; None if they see none."""
        return self._stored.get(f"version/{table}")

    def record(
        self, run: str, tables: Mapping[str, str], failed: Iterable[str], passed: Iterable[str]
    ) -> None:
        """Remember what a command has written, and which of its nodes failed.

        Args:
            tables: with their versions.
            passed: nodes that have passed: a failure of theirs is forgotten, in whichever run.
        """
        have_passed = set(passed)
        self._write(
            {f"pending/{run}/{table}": version for table, version in tables.items()}
            | {f"failed/{run}/{node}": _now() for node in failed},
            [
                key
                for key in self._stored
                if key.startswith("failed/") and key.rpartition("/")[2] in have_passed
            ],
        )

    def hold_back(self, run: str) -> None:
        """Leave what a named run has not published to the next run, whatever its name."""
        if run:
            self.record("", self.pending(run), self.failed(run), ())
            self._write({}, self._keys_of(run))

    def publish(self, tables: Mapping[str, str], run: str) -> None:
        """Move the tags of tables to these versions, and forget what the run has held back."""
        closed = [*self._keys_of(run), *self._keys_of("")]
        if tables:
            self._write(
                {f"version/{table}": version for table, version in tables.items()}
                | {f"publishing/{table}": "yes" for table in tables}
                | {"at": _now()},
                [],
            )
        self.finish(closed)

    def finish(self, closed: Iterable[str] = ()) -> None:
        """Move the tags that are about to be moved, also those that a killed command has left."""
        tables = self._under("publishing/")
        for table in tables:
            version = self._stored[f"version/{table}"]
            try:
                move_tag(self._session, table, version)
            except Exception as error:
                # expired, or the table was dropped, since a command was killed
                is_gone = isinstance(error, AnalysisException) and is_missing(error)
                if not is_gone and f"unknown snapshot: {version}" not in str(error):
                    raise
                closed = [*closed, f"version/{table}"]
        self._show([table for table in tables if f"version/{table}" not in closed])
        done = [key for key in self._stored if key.rpartition("/")[2] in tables]
        self._write({}, {*closed, *(key for key in done if not key.startswith("version/"))})

    def _show(self, tables: Iterable[str]) -> None:
        """Create the views of tables, and those again whose columns are not those of the tag."""
        for table in tables:
            view = f"{self._schema}.{table.rpartition('.')[2]}"
            query = f"select * from {table} version as of '{TAG}'"
            try:
                if self._columns(f"select * from {view}") != self._columns(query):
                    self._session.sql(f"create schema if not exists {self._schema}")
                    self._session.sql(f"create or replace view {view} as {query}")
            except Exception as error:
                if not is_without_views(str(error)):
                    raise
                logger.info(
                    f"The catalog has no views, so there are none in {self._schema}: readers query "
                    f"the tables `version as of '{TAG}'`."
                )
                return

    def _columns(self, query: str) -> list[tuple[str, str]] | None:
        """Names and types of a query's columns, without a job; None if it cannot be analysed."""
        try:
            return self._session.sql(query).dtypes
        except AnalysisException:
            return None

    def _under(self, start: str) -> dict[str, str]:
        return {
            key.removeprefix(start): value
            for key, value in self._stored.items()
            if key.startswith(start)
        }

    def _keys_of(self, run: str) -> list[str]:
        starts = (f"pending/{run}/", f"failed/{run}/")
        return [key for key in self._stored if key.startswith(starts)]

    def _write(self, values: Mapping[str, str], gone: Iterable[str]) -> None:
        """Set and remove properties; nothing is committed where that changes nothing."""
        new = {key: value for key, value in values.items() if self._stored.get(key) != value}
        old = [key for key in gone if key in self._stored and key not in new]
        if new:
            listed = ", ".join(
                f"{text(self._prefix + key)} = {text(value)}" for key, value in new.items()
            )
            self._session.sql(f"alter table {self._progress} set tblproperties ({listed})")
            self._stored.update(new)
        if old:
            listed = ", ".join(text(self._prefix + key) for key in old)
            self._session.sql(
                f"alter table {self._progress} unset tblproperties if exists ({listed})"
            )
            for key in old:
                del self._stored[key]


def _now() -> str:
    return f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
