"""The folder of an embedded warehouse: absolute, whatever the process was started in."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from dbt_afterimage.spark.warehouse_folder import (
    MovedWarehouseError,
    check_not_moved,
    create,
    resolve,
)

ROOT = Path(__file__).parents[2]


def parameters(target: str) -> dict[str, str]:
    text = (ROOT / "profiles.yml.example").read_text(encoding="utf-8")
    rendered = text.replace("{{ env_var('AFTERIMAGE_WAREHOUSE', 'warehouse') }}", "warehouse")
    found = yaml.safe_load(rendered)["afterimage"]["outputs"][target]["server_side_parameters"]
    return dict(found)


def test_paths_of_the_example_targets_begin_at_the_project(tmp_path: Path) -> None:
    iceberg, delta = parameters("iceberg"), parameters("delta")
    for _ in range(2):  # what is absolute stays
        resolve(iceberg, tmp_path)
        resolve(delta, tmp_path)
    folder = tmp_path / "warehouse"
    assert iceberg["spark.sql.catalog.lake.warehouse"] == str(folder)
    assert iceberg["spark.sql.catalog.lake.uri"] == (
        f"jdbc:sqlite:{folder}/catalog.db?journal_mode=WAL&busy_timeout=60000"
    )
    assert delta["spark.sql.warehouse.dir"] == f"{folder}/delta"
    assert delta["spark.hadoop.javax.jdo.option.ConnectionURL"] == (
        f"jdbc:derby:;databaseName={folder}/metastore;create=true"
    )
    create(iceberg)
    assert folder.is_dir()


def test_addresses_and_names_of_other_catalogs_stay(tmp_path: Path) -> None:
    given = {
        "spark.sql.catalog.lake.type": "rest",
        "spark.sql.catalog.lake.uri": "http://localhost:8181",
        "spark.sql.catalog.lake.warehouse": "sales",
        "spark.sql.catalog.store.type": "jdbc",
        "spark.sql.catalog.store.uri": "jdbc:sqlite::memory:",
        "spark.sql.catalog.store.warehouse": "s3://bucket/warehouse",
        "spark.sql.warehouse.dir": "file:/tmp/warehouse",
    }
    resolved = dict(given)
    resolve(resolved, tmp_path)
    assert resolved == given


def catalog_with(folder: Path, location: str) -> dict[str, str]:
    folder.mkdir()
    with closing(sqlite3.connect(folder / "catalog.db")) as connection:
        connection.execute("create table iceberg_tables (metadata_location text)")
        connection.execute("insert into iceberg_tables values (null), (?)", (location,))
        connection.commit()
    return {"spark.sql.catalog.lake.uri": f"jdbc:sqlite:{folder}/catalog.db"}


def test_a_warehouse_that_was_moved_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "now"
    given = catalog_with(folder, "/elsewhere/warehouse/shop/orders/metadata/1.json")
    with pytest.raises(MovedWarehouseError) as error:
        check_not_moved(given)
    assert f"The warehouse {folder} was created in /elsewhere/warehouse," in str(error.value)
    assert f"ln -s {folder} /elsewhere/warehouse." in str(error.value)


def test_a_warehouse_in_its_place_or_elsewhere_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "own" / "shop" / "orders" / "metadata" / "1.json"
    given = catalog_with(tmp_path / "own", f"file:{file}")
    file.parent.mkdir(parents=True)
    file.touch()
    check_not_moved(given)
    check_not_moved(catalog_with(tmp_path / "store", "s3://bucket/shop/orders/metadata/1.json"))
    check_not_moved({"spark.sql.catalog.lake.uri": f"jdbc:sqlite:{tmp_path}/none/catalog.db"})
    (tmp_path / "empty.db").touch()
    check_not_moved({"spark.sql.catalog.lake.uri": f"jdbc:sqlite:{tmp_path}/empty.db"})
