"""The dbt plugin: extends dbt-spark's adapter class, once a process, where dbt has loaded it.

In a project that uses the dbt package it also records each run.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

from dbt.plugins.manager import dbt_hook, dbtPlugin

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest
    from dbt.plugins.contracts import PluginArtifacts

NEWEST_TESTED_DBT = (1, 12)


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
        _warn_if_untested(version("dbt-core"))

    @dbt_hook  # type: ignore[untyped-decorator]
    def get_manifest_artifacts(self, manifest: Manifest) -> PluginArtifacts:
        """Record the run. No artifact is added.

        dbt calls this when it has written the manifest that it parsed (dbt/parser/manifest.py):
        not in `docs generate`, nor with `--no-write-json`, nor for a manifest from a program.
        """
        if "dbt.adapters.spark" in sys.modules:
            from dbt_afterimage.dbt_spark.documentation import uses_the_package
            from dbt_afterimage.dbt_spark.run_record import record_runs

            if uses_the_package(manifest):
                record_runs()
        return {}


def _warn_if_untested(dbt_core: str) -> None:
    minor = tuple(int(part) for part in dbt_core.split(".")[:2])
    if minor > NEWEST_TESTED_DBT:
        from dbt.adapters.events.logging import AdapterLogger

        tested = ".".join(map(str, NEWEST_TESTED_DBT))
        AdapterLogger("afterimage").warning(
            f"dbt-core {dbt_core} is newer than the versions that dbt-afterimage is tested with, "
            f"1.11 to {tested}. If a command fails, install dbt-core {tested}."
        )
