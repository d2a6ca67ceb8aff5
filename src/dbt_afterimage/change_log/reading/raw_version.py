"""Which versions of the raw tables a run reads: of unchanged ones it reads nothing.

A versioned table format gives the current version without a scan of the data. The progress of the
change log records the versions. From a digest of the versions, the settings and the columns of
staging the next run sees whether there is anything to read, and from the versions themselves which
rows were added (`new_rows.py`). Raw tables of other formats are read in every run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from hashlib import md5

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from dbt_afterimage.run_context import NOT_READ, RunContext
from dbt_afterimage.storage.missing_relation import is_missing

Version = list[str]
"""Kind of a relation (`view`, `iceberg`, `delta`, `absent`), and what names its version."""


@dataclass(frozen=True)
class ProcessedCount:
    """Records of a raw table without versions, at positions that runs no longer read.

    Attributes:
        change_seq: they are at this position or before.
        before_arrival: and have an earlier mark of arrival; None where there are no marks.
        records: how many there are.
    """

    change_seq: str
    before_arrival: str | None
    records: int


@dataclass(frozen=True)
class RawVersion:
    """The versions that staging reads at one moment.

    Attributes:
        tables: version of each relation; None where one of them has none.
        digest: of the versions, settings and columns; None where there are no versions, or where
            the run has to read in any case.
        processed: counted instead, where there are no versions.
        next_arrival: the mark of arrival from which the next run reads, besides what is added; None
            where marks cannot be used.
        next_seq: the position, likewise; None where it is not known.
        read_at: what had landed until then was read, ISO text in UTC; None where records wait, or
            a run of an earlier version of this package read it.
    """

    tables: Mapping[str, Version] | None
    digest: str | None = None
    processed: ProcessedCount | None = None
    next_arrival: str | None = None
    next_seq: str | None = None
    read_at: str | None = None

    def to_text(self) -> str:
        """As JSON, for the progress table; a later text is greater."""
        return json.dumps(
            {
                "at": datetime.now(timezone.utc).isoformat(timespec="microseconds"),
                "digest": self.digest,
                "tables": self.tables,
                "settled": vars(self.processed) if self.processed else None,
                "next_arrival": self.next_arrival,
                "next_seq": self.next_seq,
                "read_at": self.read_at,
            }
        )

    @classmethod
    def from_text(cls, text: str | None) -> RawVersion:
        """From the text of `to_text`; empty where there is none, or only a part of it."""
        try:
            given = json.loads(text) if text and text.startswith("{") else {}
        except ValueError:  # in a rebuild, which does not need it; `check_log` stops other runs
            given = {}
        processed = given.get("settled")
        return cls(
            given.get("tables"),
            given.get("digest"),
            ProcessedCount(**processed) if processed else None,
            given.get("next_arrival"),
            given.get("next_seq"),
            given.get("read_at"),
        )


def is_same_staging(read: Mapping[str, Version], now: Mapping[str, Version]) -> bool:
    """Whether staging is what it was, at two versions of what it reads."""
    return all(read.get(name) == version for name, version in now.items() if version[0] == "view")


def raw_tables(session: SparkSession, context: RunContext) -> dict[str, Version] | None:
    """The version of each relation upstream of a change log; None where one has none.

    To be called before staging is resolved: what is committed in between counts as not read.
    """
    versions = {
        relation: _version(session, relation, context.file_format) for relation in context.upstream
    }
    known = {relation: version for relation, version in versions.items() if version is not None}
    return known if known and len(known) == len(versions) else None


def raw_version(session: SparkSession, context: RunContext, staged: DataFrame) -> RawVersion:
    """The versions that staging reads at this moment.

    Args:
        staged: the staging model; of it only the schema is read.
    """
    tables = context.raw_tables
    if tables is NOT_READ:
        tables = raw_tables(session, context)
    if tables is None or context.overrides_reading:
        return RawVersion(tables, read_at=context.started_at)
    parts = [sorted(tables.items()), context.settings, staged.schema.json()]
    digest = md5(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return RawVersion(tables, digest, read_at=context.started_at)


def _version(session: SparkSession, relation: str, table_format: str) -> Version | None:
    try:
        rows = session.sql(f"show tblproperties {relation}").collect()
    except AnalysisException as error:
        if is_missing(error):
            # declared and never landed: only the log of such a table is read
            return ["absent"]
        return None
    properties = {row["key"]: str(row["value"]) for row in rows}
    if "afterimage.definition" in properties:
        return ["view", properties["afterimage.definition"]]
    if "current-snapshot-id" in properties:
        return ["iceberg", properties["current-snapshot-id"]]
    return _version_of_delta(session, relation) if table_format == "delta" else None


def _version_of_delta(session: SparkSession, relation: str) -> Version | None:
    # Without Delta, Spark takes `describe detail` for a description of a table named `detail`.
    try:
        commit = session.sql(f"describe history {relation} limit 1").select("version").first()
        # the identity as well: a table that was recreated begins with version 0 again
        table = session.sql(f"describe detail {relation}").select("id").first()
    except AnalysisException:
        return None
    return ["delta", str(table and table["id"]), str(commit and commit["version"])]
