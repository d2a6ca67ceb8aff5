"""A reader beside runs that are killed at random moments, and runs whose test fails.

Each batch adds a customer and an order. `--kills 50` for more runs.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.functional.dbt_project import DbtProject
from tests.functional.published_shop import PublishedShop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "published_kills"
SEEN = f"""
    select
        (select max(id) from {SCHEMA}_readers.customers_history) as customers,
        (select max(id) from {SCHEMA}_readers.orders_history) as orders,
        (select max(customers) from {SCHEMA}_readers.totals) as totals
"""


def start_build(shop: PublishedShop) -> subprocess.Popen[bytes]:
    """`dbt build` in a process of its own, as the group that a kill takes with it."""
    with shop.dbt.environment():
        return subprocess.Popen(
            [
                str(Path(sys.executable).with_name("dbt")),
                "build",
                "--vars",
                json.dumps(dict(shop.dbt.variables)),
            ],
            cwd=shop.dbt.path,
            env=dict(os.environ),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def seen(shop: PublishedShop) -> tuple[int, ...]:
    """The newest batch in each view, by one query."""
    for table in ("customers_history", "orders_history", "totals"):
        shop.spark.sql(f"refresh table {SCHEMA}.{table}")
    return tuple(shop.spark.sql(SEEN).collect()[0])


def test_readers_see_published_runs_only(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    kills = int(request.config.getoption("--kills"))
    chooser = random.Random(kills)
    project = make_dbt_project(tmp_path, schema=SCHEMA, published_schema="readers")
    shop = PublishedShop(project, spark)
    shop.write()
    shop.land(1, 1)
    shop.dbt("build")
    began = time.monotonic()
    assert start_build(shop).wait() == 0
    duration = time.monotonic() - began
    published, between = 1, 0
    for batch in range(2, kills + 2):
        fails = batch % 3 == 0
        shop.land(batch, -1 if fails else 1)
        moments = [chooser.uniform(duration / 3, duration), None]
        for moment in moments if not fails else [None]:
            process, since = start_build(shop), time.monotonic()
            while process.poll() is None:
                if moment is not None and time.monotonic() - since > moment:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                found = set(seen(shop))
                # not a batch whose test has failed, nor one that is older than what was published
                assert found <= ({published} if fails else {published, batch}), (batch, found)
                between += len(found) > 1
        assert process.returncode == (1 if fails else 0)
        if fails:
            assert seen(shop) == (published,) * 3
            shop.correct(batch)
            shop.dbt("build")
        published = batch
        assert seen(shop) == (published,) * 3
    # tags move one after the other: a few readings at most
    print(f"{between} readings saw two runs")
