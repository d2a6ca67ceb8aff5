"""Builds and commands over Spark Connect, on Iceberg and Delta: SPARK_REMOTE names the server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.functional.lake import Lake, check_lake
from tests.functional.lake_run import SCHEMA
from tests.functional.project_files import write_settings
from tests.functional.standalone import HOST, free_port, server_of, without_jars_of_tests

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
    port = str(free_port())
    remote = f"sc://{HOST}:{port}"
    command = [sys.executable, "-m", "dbt_afterimage.cli", "server", "--target", table_format]
    with server_of([*command, "--port", port], project, remote, without_jars_of_tests(**given)):
        # no Java here
        check_lake(lake, **given, SPARK_REMOTE=remote, JAVA_HOME=str(tmp_path), PATH="/none")
