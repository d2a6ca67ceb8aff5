"""Storage maintenance."""

from __future__ import annotations

from typing import Any

from dbt.adapters.events.logging import AdapterLogger

from dbt_afterimage.dbt_spark.macro_api.registry import dbt_errors, macro_method
from dbt_afterimage.dbt_spark.macro_api.tables import table_format
from dbt_afterimage.errors import ConcurrentRunError
from dbt_afterimage.spark.session import current

logger = AdapterLogger("afterimage")


@macro_method(while_parsing="")
def compact(adapter: Any, relation: Any, keep_days: int, max_files: int) -> str:
    """Compact a table; returns what was done, in words.

    Args:
        keep_days: days for which old states of the table stay readable.

    Raises:
        DbtRuntimeError: an argument cannot be, or another run wrote to the table.
    """
    from dbt_afterimage.storage.compaction import CompactError, Limits
    from dbt_afterimage.storage.compaction import compact as compact_table

    session = current()
    with dbt_errors(ConcurrentRunError, CompactError):
        limits = Limits(max_files=max_files, keep_days=keep_days)
        return compact_table(session, str(relation), table_format(adapter), limits)


@macro_method()
def maintain_progress(adapter: Any, relation: Any) -> None:
    """Delete old rows of the progress table and merge its files, once these are many."""
    from dbt_afterimage.storage.progress_maintenance import maintain_progress as maintain

    session = current()
    with dbt_errors():
        done = maintain(session, str(relation), table_format(adapter))
    if done:
        logger.info(f"{relation.identifier}: {done}")


@macro_method()
def compact_at_end(adapter: Any, relation: Any) -> None:
    """Let the end of the command merge the small files of a table that it has written to."""
    from dbt_afterimage.storage.compaction import compact_at_end as compact_table

    compact_table(str(relation), table_format(adapter))
