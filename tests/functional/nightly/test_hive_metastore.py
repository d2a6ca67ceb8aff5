"""Tables in a Hive metastore, by Iceberg's Hive catalog and by Delta in Spark's session catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.functional.hive_metastore import hive_metastore
from tests.functional.lake import Lake, catalog_parameters, check_lake

pytestmark = pytest.mark.both_formats


@pytest.fixture
def metastore(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "metastore"
    folder.mkdir()
    with hive_metastore(folder) as address:
        yield address


def test_a_project_on_tables_of_a_hive_metastore(
    profiles: Path, tmp_path: Path, metastore: str, table_format: str
) -> None:
    catalog = {"type": "hive", "uri": metastore, "warehouse": str(tmp_path / "tables")}
    parameters = {
        "iceberg": catalog_parameters(catalog),
        "delta": {
            "spark.hadoop.hive.metastore.uris": metastore,
            # the embedded metastore cannot replace the server
            "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName=/none",
            "spark.sql.warehouse.dir": str(tmp_path / "tables"),
        },
    }
    lake = Lake(tmp_path, table_format)
    lake.write_profile(profiles, parameters[table_format])
    check_lake(lake)
