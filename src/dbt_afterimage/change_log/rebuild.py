"""`rebuild_changes`: a change log is rebuilt from the raw tables, if these hold all of it."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt_afterimage.change_log.deciding.full_load import load_ids
from dbt_afterimage.log_rows.columns import is_position
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.sequence import ChangeSequence
from dbt_afterimage.settings import has_own_loads


class RebuildError(RuntimeError):
    """The raw tables lack what the change log holds: a rebuild would lose it."""


def check_rebuild(
    context: RunContext, sequence: ChangeSequence, staged: DataFrame, log: DataFrame
) -> None:
    """Stop unless every change and every full load of the log can still be read.

    Changes are compared by position and operation, not by content: a column that the raw table has
    gained since gives all its records another content.

    Raises:
        RebuildError: something is gone; names how much, and the positions.
    """
    there = load_ids(context.settings, staged)
    markers = log.filter(F.col("load_rows").isNotNull()).select("load_id").distinct().collect()
    gone = sorted(row["load_id"] for row in markers if row["load_id"] not in there)
    if gone:
        fix = ", or give `base` that load_id and its table the rows of that load"
        if has_own_loads(context.settings):
            fix = ", or, where the load was recorded by `complete_load`, name its table there again"
        elif len(markers) > 1:
            fix = ": `base` names one load, so a log that holds several cannot be rebuilt"
        raise RebuildError(
            f"{context.model}: `rebuild_changes` is set, and the log holds the full load "
            f"{', '.join(map(repr, gone))}, which cannot be read again: the raw tables have "
            f"the `load_id` {', '.join(map(repr, sorted(there))) or 'none'}. Nothing was "
            f"written. Fix: run without `rebuild_changes`{fix}."
        )
    place = ["change_seq", "change_oper"]
    changes = log.filter(F.col("change_oper") != "L")
    images = changes.filter(F.col("before_record_hash").isNotNull())
    logged = changes.select(*place).union(images.select("change_seq", F.lit("B")))
    raw = staged.filter(is_position(sequence) & (F.col("change_oper") != "L"))
    lost = logged.join(raw.select(*place), place, "left_anti")
    found = lost.agg(F.count(F.lit(1)).alias("records"), F.min("change_seq").alias("first")).first()
    if found is None or not found["records"]:
        return
    oldest = raw.agg(F.min("change_seq")).first()
    raise RebuildError(
        f"{context.model}: `rebuild_changes` is set, and the raw table lacks {found['records']:,} "
        f"records that the log was built from, the first at change_seq {found['first']}; the "
        "oldest record of the raw table is at "
        f"{oldest[0] if oldest else None}. Nothing was written. Fix: run without "
        "`rebuild_changes`, or land the missing records again from a copy."
    )


def check_still_there(model: str, logged: DataFrame, raw: DataFrame, place: Sequence[str]) -> None:
    """Stop unless every record that was decoded can still be read.

    Args:
        logged: the records that were decoded.
        place: columns of both that name a record.

    Raises:
        RebuildError: some are gone; names how many, and the first one.
    """
    lost = logged.select(*place).join(raw.select(*place), list(place), "left_anti")
    found = lost.agg(F.count(F.lit(1)), F.min(F.struct(*place))).first()
    if found is None or not found[0]:
        return
    first = ", ".join(f"{name} {found[1][name]}" for name in place)
    raise RebuildError(
        f"{model}: `rebuild_changes` is set, and the raw table lacks {found[0]:,} records that "
        f"were decoded from it, the first at {first}. Nothing was written. Fix: run without "
        "`rebuild_changes`, or land the missing records again from a copy."
    )
