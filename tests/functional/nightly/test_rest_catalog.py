"""Tables in an S3-compatible object store, with a REST catalog."""

from __future__ import annotations

from pathlib import Path

from tests.functional.lake import Lake, check_lake, s3_settings
from tests.functional.object_store import BUCKET, object_store
from tests.functional.rest_catalog import rest_catalog


def test_a_project_on_tables_of_a_rest_catalog(profiles: Path, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with object_store(tmp_path) as store:
        # where tables are is the server's affair: the client does not say it
        served = {"warehouse": f"s3://{BUCKET}/tables", **s3_settings(store)}
        with rest_catalog(tmp_path, served) as address:
            settings = {"type": "rest", "uri": address, "warehouse": "", **s3_settings(store)}
            lake.write_profile_of_store(profiles, settings)
            check_lake(lake)
