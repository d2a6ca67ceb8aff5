"""Cuts: up to a cut all tables of a task are complete, however far apart they have landed."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
import yaml

from dbt_afterimage.storage.local_relation import local_rows
from tests.functional.comparing import last_commits
from tests.functional.dbt_project import DbtProject
from tests.functional.feed_project import write_project
from tests.functional.project_files import (
    changes_model,
    history_model,
    write_files,
    write_settings,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.both_formats, pytest.mark.delta_nightly]

STEP, DELAY = timedelta(hours=1), timedelta(minutes=10)
RECORD = "header__change_seq string, header__change_oper string, id int, customer_id int"
TABLES = ("customers", "orders")
SAME_CUT = {"same_cut": {"arguments": {"other": "ref('customers_at_cut')"}}}
OF_CUSTOMER = {
    "relationships": {"arguments": {"to": "ref('customers_at_cut')", "field": "id"}},
}
MODELS: dict[str, Any] = {
    "afterimage_cuts.sql": "{{ cuts() }}\n",
    "customers_at_cut.sql": "select * from {{ as_of(ref('customers_history'), cut='latest') }}\n",
    "orders_at_cut.sql": (
        "{{ config(materialized='table') }}\nwith\n\n"
        "{{ at_cut([ref('orders_history'), ref('customers_history')]) }}\n\n"
        "select orders_history.* from orders_history\n"
        "inner join customers_history on orders_history.customer_id = customers_history.id\n"
    ),
    "orders_at_cut.yml": {
        "version": 2,
        "models": [
            {
                "name": "orders_at_cut",
                "data_tests": [SAME_CUT],
                "columns": [{"name": "customer_id", "data_tests": [OF_CUSTOMER]}],
            }
        ],
    },
}


class Shop:
    """A stream of customers and their orders, of which each table has landed another part.

    The time of a run cannot be set, so a run of the past has a longer `landing_delay`.
    """

    def __init__(self, dbt: DbtProject, spark: SparkSession, table_format: str, runs: int) -> None:
        self.dbt, self._spark, self._format = dbt, spark, table_format
        self._raw = f"{dbt.schema}_raw"
        self._runs, self._now = runs, datetime.now(timezone.utc)
        self._landed = dict.fromkeys(TABLES, 0)
        self.stream: dict[str, list[tuple[Any, ...]]] = {table: [] for table in TABLES}
        spark.sql(f"create schema if not exists {self._raw}")
        for table in TABLES:
            spark.sql(f"create table {self._raw}.{table}__ct ({RECORD}) using {table_format}")
        write_settings(dbt.path)
        staging = {
            f"staging/stg_{table}.sql": f"{{{{ stage_qlik_change_table('raw', '{table}__ct') }}}}\n"
            for table in TABLES
        }
        chains = [{**changes_model(one, f"stg_{one}"), **history_model(one)} for one in TABLES]
        write_files(dbt.path / "models", {**staging, **chains[0], **chains[1], **MODELS})

    def time(self, run: int) -> datetime:
        """When a run begins, from 1."""
        return self._now - (self._runs - run) * STEP

    def seq(self, time: datetime) -> str:
        return f"{time:%Y%m%d%H%M%S}{time.microsecond // 10000:02d}".ljust(35, "0")

    def happen(self, chooser: Random, until: datetime) -> None:
        """Every few minutes a customer and an order, or a change of an order to a new customer."""
        at, number = self.time(0), 0
        while at < until:
            number += 1
            at += timedelta(seconds=chooser.uniform(60, 600))
            ordered = [row[2] for row in self.stream["orders"]]
            customer = chooser.choice([number, number, *ordered])
            if customer == number:
                self._change("customers", at, "I", number)
                at += timedelta(milliseconds=chooser.choice([20, 5000]))
                self._change("orders", at, "I", number, number)
            else:
                self._change("customers", at, "I", number)
                at += timedelta(milliseconds=10)
                self._change("orders", at, "U", customer, number)

    def _change(
        self, table: str, at: datetime, oper: str, key: int, customer: int | None = None
    ) -> None:
        self.stream[table].append((self.seq(at), oper, key, customer))

    def last_before(self, time: datetime) -> str:
        """The last change of any table before a time."""
        changes = [*self.stream["customers"], *self.stream["orders"]]
        return max(str(row[0]) for row in changes if row[0] < self.seq(time))

    def land(self, table: str, until: datetime) -> None:
        """Append the records of a table before a time that have not landed yet."""
        first = self._landed[table]
        new = [row for row in self.stream[table][first:] if row[0] < self.seq(until)]
        self._landed[table] += len(new)
        if new:
            rows = local_rows(self._spark, new, RECORD)
            rows.writeTo(f"{self._raw}.{table}__ct").append()

    def declare(self, run: int, **settings: Any) -> None:
        """The settings with which a run of today is one of the past."""
        minutes = int(((self._runs - run) * STEP + DELAY).total_seconds() // 60)
        given = {
            "system": "qlik_change_table",
            "key": ["id"],
            "before_images": False,
            "task": "shop",
            "landing_delay": f"{minutes} minutes",
            **settings,
        }
        tables = [
            {"name": f"{table}__ct", "config": {"meta": {"afterimage": given}}} for table in TABLES
        ]
        raw = {"name": "raw", "schema": self._raw, "tables": tables}
        write_files(self.dbt.path, {"models/sources.yml": {"version": 2, "sources": [raw]}})

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        found = self._spark.sql(statement.format(schema=self.dbt.schema)).collect()
        return [tuple(row) for row in found]

    def cuts(self) -> list[tuple[Any, ...]]:
        self._spark.sql(f"refresh table {self.dbt.schema}.afterimage_cuts")
        return self.rows(
            "select task, change_seq, proof, held_back_by from {schema}.afterimage_cuts"
            " order by cut_at"
        )

    def commits(self) -> Any:
        return last_commits(self._spark, [f"{self.dbt.schema}.afterimage_cuts"], self._format)


@pytest.fixture
def make_shop(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> Callable[[int], Shop]:
    def make(runs: int) -> Shop:
        project = make_dbt_project(tmp_path, schema=f"cuts_{uuid4().hex[:8]}")
        return Shop(project, spark, table_format, runs)

    return make


def test_at_the_cut_every_order_has_its_customer(make_shop: Callable[[int], Shop]) -> None:
    shop, chooser = make_shop(2), Random(7)
    shop.happen(chooser, shop.time(2) - 2 * DELAY)
    for run in (1, 2):
        for table in TABLES:
            # orders are ahead
            late = DELAY if table == "customers" else chooser.random() * DELAY / 2
            shop.land(table, shop.time(run) - late)
        shop.declare(run)
        shop.dbt("build")
        *_, (task, cut, proof, held_back_by) = shop.cuts()
        assert (task, proof, held_back_by) == ("shop", "landing_delay", None)
        assert cut == shop.last_before(shop.time(run) - DELAY)
        expected = {row[2]: row[3] for row in shop.stream["orders"] if row[0] <= cut}
        found = shop.rows("select id, customer_id, cut_seq from {schema}.orders_at_cut")
        assert sorted(found) == [(*order, cut) for order in sorted(expected.items())]
    before = shop.commits()
    shop.dbt("run", "--select", "+afterimage_cuts")
    assert shop.commits() == before


def test_a_cut_waits_for_every_table(make_shop: Callable[[int], Shop]) -> None:
    shop = make_shop(1)
    shop.happen(Random(8), shop.time(1))
    shop.declare(1)
    for table in TABLES:
        shop.land(table, shop.time(1) - DELAY + timedelta(minutes=5))
    shop.dbt("run", "--exclude", "*_at_cut")
    first = shop.cuts()
    for table in TABLES:
        shop.land(table, shop.time(1))
    # customers are as of the first run; then their log is read, and their history lacks its changes
    shop.dbt("run", "--select", "orders_changes+1")
    shop.dbt("run", "--select", "orders_history", "afterimage_cuts")
    shop.dbt("run", "--select", "customers_changes", "afterimage_cuts")
    assert shop.cuts() == first
    # another process sees from the versions of the raw tables that nothing is left to read
    shop.declare(1, landing_delay="1 minute")
    shop.dbt("run", "--select", "customers_history")
    shop.dbt("run", "--select", "afterimage_cuts")
    *_, (_, cut, _, held_back_by) = shop.cuts()
    assert held_back_by is None
    ((until,),) = shop.rows("select max(complete_until) from {schema}.afterimage_cuts")
    assert cut == shop.last_before(until)


MESSAGE = (
    "topic string, `offset` bigint, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>, landing_batch string"
)
BALANCES = ("accounts", "branches")


class Bank:
    """Messages of Debezium's PostgreSQL connector: the balances of both tables are always equal."""

    def __init__(self, dbt: DbtProject, spark: SparkSession, table_format: str) -> None:
        self.dbt, self._spark, self._raw = dbt, spark, f"{dbt.schema}_raw"
        self._place = 0
        spark.sql(f"create schema if not exists {self._raw}")
        for table in ("messages", "transactions"):
            spark.sql(f"create table {self._raw}.{table} ({MESSAGE}) using {table_format}")
        kinds = {"id": "int", "balance": "int"}
        columns = [{"name": name, "data_type": kind} for name, kind in kinds.items()]
        tables = {
            table: (
                {"preset": "debezium", "task": "bank", "filter": f"topic = 'bank.public.{table}'"},
                columns,
            )
            for table in BALANCES
        }
        write_project(dbt.path, self._raw, tables)
        sources = dbt.path / "models" / "sources.yml"
        declared = yaml.safe_load(sources.read_text(encoding="utf-8"))
        for table in declared["sources"][0]["tables"]:
            table["identifier"] = "messages"
        declared["sources"][0]["tables"].append({"name": "transactions"})
        totals = " union all ".join(
            f"select '{table}' as name, sum(balance) as balance, max(cut_seq) as cut_seq"
            f" from {table}_history"
            for table in BALANCES
        )
        histories = ", ".join(f"ref('{table}_history')" for table in BALANCES)
        write_files(
            dbt.path / "models",
            {
                "sources.yml": declared,
                "afterimage_cuts.sql": (
                    "{{ cuts(transactions={'bank': source('raw', 'transactions')}) }}\n"
                ),
                "totals.sql": (
                    "{{ config(materialized='table') }}\nwith\n\n"
                    f"{{{{ at_cut([{histories}]) }}}}\n\n{totals}\n"
                ),
            },
        )

    def event(
        self, table: str, number: int, op: str, header: str | None = None, **images: Any
    ) -> tuple[Any, ...]:
        """A message about a row, of a transaction; a new key has the place of the old one."""
        self._place += 0 if header == "oldkey" else 10
        source = {
            "ts_ms": 1_795_646_792_255 + number,
            "snapshot": "false",
            "sequence": f'["{number * 1000}","{number * 1000 + self._place}"]',
            "txId": number,
            "lsn": number * 1000 + self._place,
        }
        given = {"id": f"{number}:{source['lsn']}", "total_order": self._place}
        content = {"op": op, "before": None, **images, "source": source, "transaction": given}
        headers = [] if header is None else [(f"__debezium.{header}", b"{}")]
        value = json.dumps(content).encode()
        return (f"bank.public.{table}", self._place, b"{}", value, headers, "1")

    def end(self, number: int, **counts: int) -> tuple[Any, ...]:
        """The message about the end of a transaction."""
        self._place += 10
        content = {
            "status": "END",
            "id": f"{number}:{number * 1000 + 999}",
            "event_count": sum(counts.values()),
            "data_collections": [
                {"data_collection": f"public.{table}", "event_count": count}
                for table, count in counts.items()
            ],
        }
        value = json.dumps(content).encode()
        return ("bank.transaction", self._place, b"{}", value, [], "1")

    def land(self, table: str, *messages: tuple[Any, ...]) -> None:
        self._spark.createDataFrame(list(messages), MESSAGE).writeTo(
            f"{self._raw}.{table}"
        ).append()

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        for table in ("afterimage_cuts", "totals"):
            self._spark.sql(f"refresh table {self.dbt.schema}.{table}")
        found = self._spark.sql(statement.format(schema=self.dbt.schema)).collect()
        return [tuple(row) for row in found]


def test_debeziums_transactions_prove_a_cut(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> None:
    bank = Bank(make_dbt_project(tmp_path, schema=f"cuts_{uuid4().hex[:8]}"), spark, table_format)
    rows = [{"id": 1, "balance": balance} for balance in (10, 15, 20)]
    moved = {"id": 2, "balance": 20}
    first, second = [
        [
            bank.event(table, 1, "c", after=rows[0]),
            bank.event(table, 2, "u", before=rows[0], after=rows[1]),
        ]
        for table in BALANCES
    ]
    # an account gets another number, which is two events and one change
    last_of_accounts = [
        bank.event("accounts", 3, "d", "newkey", before=rows[1]),
        bank.event("accounts", 3, "c", "oldkey", after=moved),
    ]
    last_of_branches = bank.event("branches", 3, "u", before=rows[1], after=rows[2])
    bank.land("messages", *first, *second, last_of_branches)
    ends = [bank.end(number, accounts=1, branches=1) for number in (1, 2)]
    bank.land("transactions", *ends, bank.end(3, accounts=2, branches=1))
    cuts = (
        "select transaction_id, proof, held_back_by from {schema}.afterimage_cuts order by cut_at"
    )
    balances = "select name, balance from {schema}.totals order by name"
    bank.dbt("run")
    assert bank.rows(cuts) == [("2:2999", "transactions", "accounts")]
    assert bank.rows(balances) == [("accounts", 15), ("branches", 15)]
    bank.land("messages", *last_of_accounts)
    bank.dbt("run")
    assert bank.rows(cuts)[1:] == [("3:3999", "transactions", None)]
    assert bank.rows(balances) == [("accounts", 20), ("branches", 20)]
