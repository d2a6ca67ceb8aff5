"""A dbt process for each model and test of a batch, over Spark Connect and with Spark inside."""

from __future__ import annotations

from pathlib import Path

from tests.functional.lake import FIRST, SECOND, Lake
from tests.functional.lake_run import SCHEMA
from tests.functional.project_files import write_settings
from tests.functional.standalone import afterimage_server, free_address


def test_a_process_with_spark_for_each_model(profiles: Path, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.write_profile(profiles, {})
    (tmp_path / "warehouse").mkdir()
    given = {"AFTERIMAGE_WAREHOUSE": str(tmp_path / "warehouse")}
    assert lake.build(1, [], given)["built"] == FIRST
    found = lake.build(2, [], given, "each")
    assert found["built"] == SECOND
    assert found["paths"] == ["rebuild", "incremental"]


def test_a_process_for_each_model(profiles: Path, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.write_profile(profiles, {})
    project, warehouse = tmp_path / "project", tmp_path / "warehouse"
    write_settings(project)
    warehouse.mkdir()
    given = {
        "AFTERIMAGE_TEST_SCHEMA": SCHEMA,
        "AFTERIMAGE_WAREHOUSE": str(warehouse),
        "DBT_PROFILES_DIR": str(tmp_path),
    }
    remote = free_address()
    with afterimage_server("iceberg", project, remote, given):
        # no Java here
        client = {**given, "SPARK_REMOTE": remote, "JAVA_HOME": str(tmp_path), "PATH": "/none"}
        assert lake.build(1, [], client)["built"] == FIRST
        found = lake.build(2, [], client, "each")
    assert found["built"] == SECOND
    assert found["paths"] == ["rebuild", "incremental"]
