"""A real PostgreSQL, read by a real Debezium, beside the marts that came of it.

dbt's own tests, which the demo runs after its second delivery, compare all current rows with those
of PostgreSQL (`equals_rows_of`), and the balances at the end of each transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from afterimage_demo.postgres import workload
from afterimage_demo.postgres.tables import TABLES
from afterimage_demo.postgres.workload import CLIENTS, TRANSACTIONS
from tests.functional.dbt_project import DbtProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OF_BOTH_DELIVERIES = 2 * CLIENTS * TRANSACTIONS


@pytest.fixture(scope="module")
def demo(build_demo: Callable[[str], DbtProject]) -> DbtProject:
    """The demo after two deliveries, with a build after each, and a small bank.

    Each table's views read the messages of all tables, so most of 100,000 accounts' time is JSON.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workload, "ACCOUNTS", 2_000)
        return build_demo("postgres")


def test_every_update_of_the_bank_is_in_the_log_once(spark: SparkSession, demo: DbtProject) -> None:
    """A transaction of pgbench updates one account, one teller and one branch."""
    for name in ("pgbench_accounts", "pgbench_tellers", "pgbench_branches"):
        log = spark.table(f"{demo.schema}.{name}_changes").filter("change_oper = 'U'")
        assert log.count() == log.select("transaction_id").distinct().count() == OF_BOTH_DELIVERIES


def test_before_images_continue_the_row_before(spark: SparkSession, demo: DbtProject) -> None:
    """Of pgbench_accounts, whose replica identity is FULL: each change adds what was paid."""
    unlike = spark.sql(
        f"""
        select accounts.aid
        from {demo.schema}.pgbench_accounts_changes as accounts
        left join {demo.schema}.pgbench_history_current as payments
            on
                accounts.aid = payments.aid
                and accounts.abalance - accounts.before.abalance = payments.delta
        where accounts.change_oper = 'U' and payments.id is null
        """
    )
    assert unlike.isEmpty()


def test_documents_keep_their_history(spark: SparkSession, demo: DbtProject) -> None:
    """By the statements of afterimage_demo/postgres/workload.py."""
    rows = spark.sql(
        "select id, title, length(body), opened_by, closed_by, is_current "
        f"from {demo.schema}.documents_history where id in (1, 2, 4, 5, 6, 7, 60, 1000) "
        "order by id, valid_from_seq"
    ).collect()
    long = 32 * 300
    edition = "Document {}, second edition".format
    assert [tuple(row) for row in rows] == [
        (1, "In the first snapshot", None, "L", "T", False),
        (1, "Document 1", long, "I", "U", False),
        (1, edition(1), long, "U", None, True),
        (2, "Truncated later", None, "L", "T", False),
        (2, "Document 2", long, "I", "U", False),
        (2, edition(2), long, "U", "K", False),
        (4, "Document 4", long, "I", "U", False),
        (4, edition(4), long, "U", "K", False),
        (4, edition(5), long, "K", None, True),
        (5, "Document 5", long, "I", "U", False),
        (5, edition(5), long, "U", "K", False),
        (5, edition(4), long, "K", None, True),
        (6, "Document 6", long, "I", "U", False),
        (6, edition(6), long, "U", "D", False),
        (6, "Back again", long, "I", None, True),
        (7, "Document 7", long, "I", "U", False),
        (7, edition(7), long, "U", "D", False),
        (60, edition(2), long, "K", None, True),
        # between two statements of the transaction that swaps two keys
        (1000, edition(4), long, "K", "K", False),
    ]


def test_nothing_is_rejected(spark: SparkSession, demo: DbtProject) -> None:
    for name in TABLES:
        assert spark.table(f"{demo.schema}.{name}_changes_rejected").isEmpty()


def test_a_snapshot_on_request_changes_nothing(spark: SparkSession, demo: DbtProject) -> None:
    """The documents are read again while the second delivery changes some of them."""
    log = spark.table(f"{demo.schema}.documents_changes")
    again = log.filter("change_oper = 'I' and transaction_id is null")
    assert again.count() > 30
    history = spark.table(f"{demo.schema}.documents_history")
    assert history.join(again, history.valid_from_seq == again.change_seq).isEmpty()
