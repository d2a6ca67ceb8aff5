"""Notices that messages were purged from the landed table, or from Kafka, before they were read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import Row

from dbt_afterimage.changes.gaps import GapError
from dbt_afterimage.messages.offsets import Offsets

logger = AdapterLogger("afterimage")


def check_offset_gap(context: dict[str, Any], read: Offsets, found: Sequence[Row]) -> None:
    """Warn, or stop, where messages behind the last one that was read are gone.

    Args:
        context: as the materialization gives it.
        read: the last offsets that earlier runs have read.
        found: per topic and partition, `first_offset` of the messages behind them.

    Raises:
        GapError: some are gone, and `on_gap` is `fail`.
    """
    settings = context["settings"]
    on_gap = settings["on_gap"]
    gone = [
        f"{row['topic']}-{row['partition']} from {read[place] + 1} to {row['first_offset'] - 1}"
        for row in found
        if (place := (row["topic"], row["partition"])) in read
        and row["first_offset"] > read[place] + 1
    ]
    if not gone or on_gap == "ignore" or context["accept_gap"]:
        return
    text = (
        f"{context['model']}: the raw table {settings['source_table']} lacks offsets behind the "
        f"last that were read: {', '.join(sorted(gone))}. Kafka leaves out offsets where it "
        "removed messages, or for marks of transactions; or messages were purged before they were "
        f"read. `on_gap` is {on_gap!r}; allowed: fail, warn, ignore."
    )
    if on_gap == "fail":
        raise GapError(
            f"{text} Nothing was written. Cure: land them again from a copy, or, where none are "
            "missing, run once with --vars '{accept_gap: true}'."
        )
    logger.warning(text)
