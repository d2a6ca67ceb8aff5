"""Dagster: each model is an asset; one dbt process builds all assets that a run selects.

Dagster reads target/manifest.json of the project, which `dbt parse` writes. For Spark Connect, set
SPARK_REMOTE and SPARK_CONNECT_AUTHENTICATE_TOKEN in the environment of Dagster's code location.
"""

# no `from __future__ import annotations`: Dagster reads the type of `context` itself
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dagster import AssetExecutionContext, Definitions, ScheduleDefinition, define_asset_job
from dagster_dbt import DbtCliResource, dbt_assets

PROJECT = Path("/opt/project")


# two runs must not write to one table at the same time: `dagster instance concurrency set
# afterimage 1` gives the pool a limit
@dbt_assets(manifest=PROJECT / "target" / "manifest.json", pool="afterimage")
def afterimage(context: AssetExecutionContext, dbt: DbtCliResource) -> Iterator[Any]:
    """Build the selected models, and run their tests."""
    yield from dbt.cli(["build"], context=context).stream()


definitions = Definitions(
    assets=[afterimage],
    schedules=[
        ScheduleDefinition(job=define_asset_job("build", [afterimage]), cron_schedule="@hourly")
    ],
    resources={"dbt": DbtCliResource(project_dir=str(PROJECT), profiles_dir=str(PROJECT))},
)
