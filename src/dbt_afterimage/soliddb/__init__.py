"""solidDB's transaction log, SYS_LOG: its record ids, catalogue, framing and values.

Source of all facts: the page "Log reader" of the solidDB manual, unless a comment says otherwise.
The modules that run in Spark's workers (`columns`, `framing`, `values`, `records`, `arrow`) import
neither Spark nor dbt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dbt_afterimage.staging_log import LogBatch


def build_log(
    dbt: Any, session: SparkSession, log: DataFrame, tables: DataFrame, columns: DataFrame
) -> LogBatch:
    """The body of a model that decodes a landed SYS_LOG; see `soliddb.model.build_log`."""
    # here and not on top: workers import this module, and need neither dbt nor the rest for it
    from dbt_afterimage.soliddb.model import build_log

    return build_log(dbt, session, log, tables, columns)
