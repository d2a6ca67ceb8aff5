"""Whether raw tables are what they were when they were last read: then a run reads none of them.

A table format that keeps versions tells which one is current without opening any data. Together
with what shapes the reading of it, the settings and the text of the staging views, that version is
noted with the progress of the change log. Raw tables of other formats are read in every run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import md5
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.storage.missing_relation import is_missing
from dbt_afterimage.storage.progress_cache import noted_at_start

OVERRIDES = ("backfill_from", "rebuild_changes", "accept_gap")
"""Vars of a run that read differently from runs without them."""


def raw_version(session: SparkSession, context: dict[str, Any], staged: DataFrame) -> str | None:
    """What staging is made from at this moment, as a hash.

    Args:
        session: the live Spark session.
        context: names of the upstream relations, settings and vars, as the materialization gives
            them.
        staged: the staging model; of it only the columns are looked at.

    Returns:
        None where that cannot be told, or where the run is one that has to read.
    """
    if any(context[name] for name in OVERRIDES):
        return None
    versions = [
        _version(session, relation, context["file_format"]) for relation in context["upstream"]
    ]
    if not versions or None in versions:
        return None
    parts = [versions, context["settings"], staged.schema.json()]
    return md5(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def is_noted(session: SparkSession, progress: str, model: str, version: str) -> bool:
    """Whether ``model`` has read this version, in whichever of its runs."""
    noted = noted_at_start(session, progress, model)
    if noted is not None and noted.raw_version == version:
        return True
    same = (F.col("model") == model) & (F.col("raw_version") == version)
    return not session.table(progress).filter(same).isEmpty()


def _version(session: SparkSession, relation: str, table_format: str) -> Sequence[str] | None:
    """The version of a table, or the text of a staging view; None for anything else."""
    try:
        rows = session.sql(f"show tblproperties {relation}").collect()
    except AnalysisException as error:
        if is_missing(error):
            # declared and never landed: a table of which the log alone is read
            return relation, "absent"
        return None
    properties = {row["key"]: row["value"] for row in rows}
    for name in ("afterimage.definition", "current-snapshot-id"):
        if name in properties:
            return relation, str(properties[name])
    return _version_of_delta(session, relation) if table_format == "delta" else None


def _version_of_delta(session: SparkSession, relation: str) -> Sequence[str] | None:
    # Where Delta is not loaded, Spark takes `describe detail` for a question to a table `detail`.
    try:
        commit = session.sql(f"describe history {relation} limit 1").select("version").first()
        # the identity as well: a table that was made anew begins with version 0 again
        table = session.sql(f"describe detail {relation}").select("id").first()
    except AnalysisException:
        return None
    return relation, str(table and table["id"]), str(commit and commit["version"])
