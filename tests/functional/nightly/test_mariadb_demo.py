"""A real MariaDB with many small binlogs, read by a real Debezium, beside the marts.

dbt's own tests, which the demo runs after its second delivery, compare all current rows with those
of MariaDB (`equals_rows_of`), and each wallet's changes with its payments.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from afterimage_demo.mariadb.tables import TABLES
from afterimage_demo.mariadb.workload import PAYMENTS
from tests.functional.dbt_project import DbtProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def demo(build_demo: Callable[[str], DbtProject]) -> DbtProject:
    """The demo after two deliveries, with a build after each."""
    return build_demo("mariadb")


def test_every_payment_is_in_the_log_once(spark: SparkSession, demo: DbtProject) -> None:
    for name, oper, times in (("payments", "I", 1), ("wallets", "U", 2)):
        log = spark.table(f"{demo.schema}.{name}_changes").filter(f"change_oper = '{oper}'")
        assert log.count() == times * 2 * PAYMENTS


def test_parcels_keep_their_history(spark: SparkSession, demo: DbtProject) -> None:
    """By the statements of afterimage_demo/mariadb/workload.py."""
    rows = spark.sql(
        "select id, price, opened_by, closed_by, is_current "
        f"from {demo.schema}.parcels_history order by id, valid_from_seq"
    ).collect()
    expected = [
        (1, "2.50", "L", "U", False),
        (1, "2.50", "U", "T", False),
        (1, "1.00", "I", None, True),
        (2, "-0.01", "L", "K", False),
        (3, "3.00", "I", "K", False),
        (3, "4.00", "K", "T", False),
        (4, "4.00", "I", "K", False),
        (4, "3.00", "K", "T", False),
        (5, "5.00", "I", "D", False),
        (5, "55.00", "I", "T", False),
        (6, "-0.01", "K", "T", False),
        (7, "7.00", "I", None, True),
        # between two statements of the transaction that swaps two keys
        (1000, "3.00", "K", "K", False),
    ]
    assert [tuple(row) for row in rows] == [
        (key, Decimal(price), *others) for key, price, *others in expected
    ]


def test_nothing_is_rejected(spark: SparkSession, demo: DbtProject) -> None:
    for name in TABLES:
        assert spark.table(f"{demo.schema}.{name}_changes_rejected").isEmpty()
