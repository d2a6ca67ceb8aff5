"""Builds and commands over Spark Connect, on Iceberg and Delta: SPARK_REMOTE names the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from afterimage_demo.ports import free_ports
from tests.functional.lake import Lake, check_lake
from tests.functional.lake_run import SCHEMA
from tests.functional.project_files import write_settings
from tests.functional.standalone import HOST, afterimage_server

pytestmark = pytest.mark.both_formats


def test_a_project_and_its_commands_over_connect(
    profiles: Path, tmp_path: Path, table_format: str
) -> None:
    lake = Lake(tmp_path, table_format)
    lake.write_profile(profiles, {})
    project, warehouse = tmp_path / "project", tmp_path / "warehouse"
    write_settings(project)
    warehouse.mkdir()
    given = {
        "AFTERIMAGE_TEST_SCHEMA": SCHEMA,
        "AFTERIMAGE_WAREHOUSE": str(warehouse),
        "DBT_PROFILES_DIR": str(tmp_path),
    }
    remote = f"sc://{HOST}:{free_ports(1)[0]}"
    with afterimage_server(table_format, project, remote, given):
        # no Java here
        check_lake(lake, **given, SPARK_REMOTE=remote, JAVA_HOME=str(tmp_path), PATH="/none")
