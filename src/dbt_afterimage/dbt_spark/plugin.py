"""The dbt plugin: extends dbt-spark's adapter class, once a process, where dbt has loaded it."""

from __future__ import annotations

import sys

from dbt.plugins.manager import dbtPlugin


class AfterimagePlugin(dbtPlugin):
    """Found by dbt through its module's name prefix; dbt makes one per invocation."""

    def initialize(self) -> None:
        """Extend dbt-spark's adapter.

        Nothing happens, and nothing is imported, in commands that load no adapter, in projects on
        another adapter, and where dbt-spark is not installed: dbt loads a project's profile, and
        with it the adapter, before its plugins (dbt/cli/requires.py).
        """
        if "dbt.adapters.spark" not in sys.modules:
            return
        from dbt_afterimage.dbt_spark.patches import extend_spark_adapter

        extend_spark_adapter()
