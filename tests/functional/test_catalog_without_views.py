"""A catalog without views: Iceberg's of the type `hadoop`, which has branches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.functional.lake import (
    COMMANDS,
    FIRST,
    SECOND,
    STAGED,
    Lake,
    catalog_parameters,
    check_lake,
)

pytestmark = pytest.mark.iceberg_only


@pytest.fixture
def lake(profiles: Path, tmp_path: Path) -> Lake:
    lake = Lake(tmp_path, has_views=False)
    settings = {"type": "hadoop", "uri": "", "warehouse": str(tmp_path / "tables")}
    lake.write_profile(profiles, catalog_parameters(settings))
    return lake


def test_a_project_on_a_catalog_without_views(lake: Lake) -> None:
    """The second process reads what the first one has stored of the staging models."""
    assert lake.build(1, [], {})["built"] == FIRST
    found = lake.build(2, [COMMANDS["staging"]], {})
    assert found["held_back"] == lake.published(FIRST)
    assert (found["built"], found["published"]) == (SECOND, lake.published(SECOND))
    staged = json.loads(found["commands"][0]["stdout"])
    assert ", ".join(" ".join(row.values()) for row in staged) == STAGED


@pytest.mark.nightly
def test_all_commands_on_a_catalog_without_views(lake: Lake) -> None:
    check_lake(lake)


@pytest.mark.nightly
def test_the_demo_on_a_catalog_without_views(lake: Lake) -> None:
    """Each command is a process of its own: none but the first two makes staging models."""
    lake.run("afterimage", "demo", "--system", "qlik")
    assert " ERROR=0 " in lake.run("dbt", "test")
    assert " ERROR=0 " in lake.run("dbt", "run", "--exclude", "stg_qlik*")
    counted = "select (select count(*) from demo_raw.orders__ct) + count(*) from demo_raw.orders"
    found = [
        list(json.loads(lake.run("afterimage", "query", "--json", sql))[0].values())
        for sql in (counted, "select count(*) from stg_qlik__orders")
    ]
    assert found[0] == found[1] != [0]
