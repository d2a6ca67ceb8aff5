"""Notices that messages were purged from the landed table, or from Kafka, before they were read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import Row

from dbt_afterimage.change_log.deciding.gaps import GapError
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.sources.qlik_messages.load_runs import FullLoad, Run
from dbt_afterimage.sources.qlik_messages.offsets import Offsets

logger = AdapterLogger("afterimage")


def check_offset_gap(context: RunContext, read: Offsets, found: Sequence[Row]) -> None:
    """Warn, or stop, where messages behind the last one that was read are gone.

    Args:
        read: the last offsets that earlier runs have read.
        found: per topic and partition, `first_offset` of the messages behind them, if any.

    Raises:
        GapError: some are gone, and `on_gap` is `fail`.
    """
    settings = context.settings
    on_gap = settings["on_gap"]
    gone = [
        f"{row['topic']}-{row['partition']} from {read[place] + 1} to {row['first_offset'] - 1}"
        for row in found
        if (place := (row["topic"], row["partition"])) in read
        and row["first_offset"] is not None
        and row["first_offset"] > read[place] + 1
    ]
    if not gone or on_gap == "ignore" or context.accept_gap:
        return
    text = (
        f"{context.model}: the raw table {settings['source_table']} lacks offsets behind the "
        f"last that were read: {', '.join(sorted(gone))}. Kafka leaves out offsets where it "
        "removed messages, or for marks of transactions; or messages were purged before they were "
        f"read. `on_gap` is {on_gap!r}; allowed: fail, warn, ignore."
    )
    if on_gap == "fail":
        raise GapError(
            f"{text} Nothing was written. Fix: land them again from a copy, or, where none are "
            "missing, run once with --vars '{accept_gap: true}'."
        )
    logger.warning(text)


def check_load_gap(context: RunContext, found: Mapping[FullLoad, Mapping[Run, int]]) -> None:
    """Warn, or stop, where messages of a full load are gone that waited for the rest of it.

    Such a load is never recorded in part: what it lacks would count as deleted.

    Args:
        found: loads, and how many messages of each of their runs the raw table has.

    Raises:
        GapError: there is one, and `on_gap` is `fail`.
    """
    settings = context.settings
    on_gap = settings["on_gap"]
    if not found or (on_gap == "ignore" and not context.accept_gap):
        return
    text = (
        f"{context.model}: the raw table {settings['source_table']} lacks messages of the "
        f"{'; of the '.join(_describe(load, left) for load, left in found.items())}. They were "
        "purged before the load was known to be whole, and a part of it is not recorded. "
        f"`on_gap` is {on_gap!r}; allowed: fail, warn, ignore."
    )
    if context.accept_gap:
        logger.warning(f"{text} `accept_gap` is set: it is given up.")
        return
    fix = (
        "Fix: land them again from a copy; or reload the table at the source, and give this "
        "load up with --vars '{accept_gap: true}'."
    )
    if on_gap == "fail":
        raise GapError(f"{text} Nothing was written. {fix}")
    logger.warning(f"{text} It waits on. {fix}")


def _describe(load: FullLoad, left: Mapping[Run, int]) -> str:
    runs = [
        f"{run.topic}-{run.partition} from {run.first_offset} to {run.last_offset} "
        f"({count:,} of {run.rows:,} are there)"
        for run, count in left.items()
        if count < run.rows
    ]
    return f"full load of {load.table[1]}: {', '.join(sorted(runs))}"
