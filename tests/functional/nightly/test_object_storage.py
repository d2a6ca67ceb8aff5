"""Tables in an S3-compatible object store, with the catalog in an SQLite file or in AWS Glue.

Glue has no views. moto answers for it, at the address of the store.
"""

from __future__ import annotations

from pathlib import Path

from tests.functional.lake import Lake, check_lake, s3_settings
from tests.functional.object_store import BUCKET, object_store


def test_a_project_on_tables_in_an_object_store(profiles: Path, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with object_store(tmp_path) as store:
        uri = f"jdbc:sqlite:{tmp_path / 'catalog.db'}"
        settings = {"uri": uri, "warehouse": f"s3://{BUCKET}/tables", **s3_settings(store)}
        lake.write_profile_of_store(profiles, settings)
        check_lake(lake)


def test_a_project_on_tables_of_glue(profiles: Path, tmp_path: Path) -> None:
    lake = Lake(tmp_path, has_views=False)
    with object_store(tmp_path) as store:
        settings = {"type": "glue", "uri": "", "glue.endpoint": store}
        settings |= {"warehouse": f"s3://{BUCKET}/tables", **s3_settings(store)}
        lake.write_profile_of_store(profiles, settings)
        check_lake(lake)
