"""How far the tables of a replication task are complete."""

from __future__ import annotations

from typing import Any

from dbt_afterimage.dbt_spark.macro_api.registry import dbt_errors, macro_function, macro_method
from dbt_afterimage.settings import positions
from dbt_afterimage.spark.literals import timestamp_as_text
from dbt_afterimage.spark.session import current

macro_function(timestamp_as_text)


@macro_method()
def read_up_to(adapter: Any, context: dict[str, Any]) -> str | None:
    """A log has read all that had landed by this time; None if that is not known.

    Args:
        context: what `_log_context` says of the log.
    """
    from dbt_afterimage.change_log.reading import read_times
    from dbt_afterimage.run_context import RunContext

    with dbt_errors():
        return read_times.read_up_to(current(), RunContext(**context))


@macro_method()
def complete_until(adapter: Any, read_at: str, landing_delay: str) -> str:
    """Every change before this time had landed by ``read_at``."""
    from dbt_afterimage.change_log.reading import read_times

    return read_times.complete_until(read_at, landing_delay)


@macro_method()
def first_position(adapter: Any, settings: Any) -> str:
    """The change_seq of a first full load: before every change."""
    return positions(settings).first
