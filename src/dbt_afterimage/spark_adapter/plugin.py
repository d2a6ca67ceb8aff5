"""The dbt plugin: extends dbt-spark's adapter class in this process, once, and only when it is installed."""

from __future__ import annotations

import importlib.util

from dbt.plugins.manager import dbtPlugin


class AfterimagePlugin(dbtPlugin):  # type: ignore[misc]  # dbt ships no types for it
    """Found by dbt through its module's name prefix; dbt makes one per invocation."""

    def initialize(self) -> None:
        """Extend dbt-spark's adapter. Nothing happens where dbt-spark is not installed."""
        if importlib.util.find_spec("dbt.adapters.spark") is None:
            return
        from dbt_afterimage.spark_adapter.extension import extend_spark_adapter

        extend_spark_adapter()
