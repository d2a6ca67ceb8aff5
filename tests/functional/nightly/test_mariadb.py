"""A real MariaDB with many small binlogs, read by a real Debezium.

It is not restarted: Debezium's MySQL connector loses a change of MariaDB at each restart
(docs/feeds/debezium.md).
After each landing and build, the current rows are those of the database, queried by its own client.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING

import yaml

from afterimage_demo.broker import running_broker
from afterimage_demo.mariadb.debezium import SIGNALS, TOPICS, running_connector, start_snapshot
from afterimage_demo.mariadb.server import BINLOGS, Database, running_server
from tests.functional.dbt_project import DbtProject
from tests.functional.feed_project import write_project
from tests.functional.project_files import write_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RAW = "mariadb_raw"
TRANSFERS = 200
ACCOUNTS = 20
SECONDS = 180
THINGS = {
    # column -> its type at the source, that of the mart, SQL of MariaDB, SQL of Spark
    "id": ("int primary key", "int", "id", "cast(id as string)"),
    "made": ("datetime", "timestamp_ntz", "made", "date_format(made, 'yyyy-MM-dd HH:mm:ss')"),
    "exact": (
        "datetime(6)", "timestamp_ntz", "exact", "date_format(exact, 'yyyy-MM-dd HH:mm:ss.SSSSSS')",
    ),
    "seen": (
        "timestamp(3) null", "timestamp", "seen", "date_format(seen, 'yyyy-MM-dd HH:mm:ss.SSS')",
    ),
    "at": ("time(6)", "string", "at", "at"),
    # the lowest byte first
    "flags": (
        "bit(10)", "binary",
        "concat(right(lpad(hex(flags), 4, '0'), 2), left(lpad(hex(flags), 4, '0'), 2))",
        "hex(flags)",
    ),
    "size": ("enum('s', 'm', 'l')", "string", "size", "size"),
    "price": ("decimal(10,2)", "decimal(10,2)", "price", "cast(price as string)"),
    "big": ("bigint unsigned", "decimal(20,0)", "big", "cast(big as string)"),
    "doc": ("json", "string", "doc", "doc"),
    "born": ("date", "date", "born", "cast(born as string)"),
}  # fmt: skip
FIRST = """
insert into things values
(1, '2018-06-20 06:37:03', '1969-12-31 23:59:59.123456', '2018-06-20 06:37:03.5', '07:30:00.25',
 b'1000000001', 'm', 2.5, 18446744073709551615, '{"a": "ü"}', '2026-03-02'),
(2, '1969-12-31 23:59:59', null, null, '-838:59:59', null, null, -0.01, 0, null, '1969-12-31');
"""
SECOND = """
update things set at = '120:00:01', size = 'l', doc = null where id = 1;
insert into things (id, price) values (3, 3), (4, 4), (5, 5);
-- two keys are swapped
begin;
update things set id = 1000 where id = 3;
update things set id = 3 where id = 4;
update things set id = 4 where id = 1000;
commit;
update things set id = 6, made = now() where id = 2;
delete from things where id = 5;
insert into things (id, price) values (5, 55);
begin;
delete from things;
rollback;
"""
THIRD = """
truncate things;
insert into things (id, price) values (1, 1), (7, 7);
"""


def transfer(database: Database, count: int, seed: int) -> None:
    """Transfers between two accounts, each in a transaction of its own."""
    chooser = random.Random(seed)
    statements = []
    for _ in range(count):
        payer, payee = chooser.sample(range(1, ACCOUNTS + 1), 2)
        amount = chooser.randrange(1, 10_000) / 100
        statements.append(
            f"begin; update accounts set balance = balance - {amount} where id = {payer}; "
            f"update accounts set balance = balance + {amount} where id = {payee}; commit;"
        )
    database.run("\n".join(statements))


def land_until(spark: SparkSession, brokers: str, mark: int) -> None:
    """Append what is new in the topics, until it has the row that was written last."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        new = (
            spark.read.format("kafka")
            .option("kafka.bootstrap.servers", brokers)
            .option("subscribePattern", rf"{TOPICS}\.bank\..*")
            .option("includeHeaders", "true")
            .load()
            .selectExpr("topic", "partition", "offset", "key", "value", "headers")
            .join(spark.table(f"{RAW}.messages"), ["topic", "partition", "offset"], "left_anti")
        )
        new.selectExpr("*", f"'{time.time():017.6f}' as landing_batch").writeTo(
            f"{RAW}.messages"
        ).append()
        marks = spark.table(f"{RAW}.messages").where(f"topic = '{TOPICS}.bank.marks'")
        if not marks.where(
            f"get_json_object(cast(value as string), '$.after.id') = {mark}"
        ).isEmpty():
            return
        time.sleep(1)
    raise AssertionError(f"The mark {mark} has not arrived.")


def equals(spark: SparkSession, schema: str, database: Database) -> None:
    """The current rows are those of the database."""
    at_source = database.run(
        f"select {', '.join(sql for _, _, sql, _ in THINGS.values())} from things order by id"
    )
    columns = ", ".join(f"coalesce({sql}, 'NULL')" for *_, sql in THINGS.values())
    current = f"select {columns} from {schema}.things_history where is_current order by id"
    assert [list(row) for row in spark.sql(current).collect()] == at_source
    balances = database.run("select id, balance from accounts order by id")
    current = (
        "select cast(id as string), cast(balance as string) "
        f"from {schema}.accounts_history where is_current order by int(id)"
    )
    assert [list(row) for row in spark.sql(current).collect()] == balances


@contextmanager
def shop(folder: Path) -> Iterator[tuple[Database, str]]:
    """MariaDB, a broker and Debezium: the database, and the broker's address."""
    with running_server(folder) as database, running_broker(folder) as broker:
        columns = ", ".join(f"{name} {kind}" for name, (kind, *_) in THINGS.items())
        accounts = ", ".join(f"({number}, 1000)" for number in range(1, ACCOUNTS + 1))
        database.run(
            f"{SIGNALS} create table things ({columns}); create table marks (id int primary key); "
            "create table accounts (id int primary key, balance decimal(12, 2)); "
            f"insert into accounts values {accounts}; {FIRST}"
        )
        with running_connector(folder, database, broker):
            yield database, broker.address


def test_current_rows_are_those_of_mariadb(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path: Path,
    table_format: str,
) -> None:
    dbt = make_dbt_project(tmp_path, schema="mariadb")
    types = {"things": {name: kind for name, (_, kind, *_) in THINGS.items()}}
    types["accounts"] = {"id": "int", "balance": "decimal(12,2)"}
    encodings = {"made": "milliseconds", "exact": "microseconds", "at": "time_microseconds"}
    tables = {
        name: (
            {
                "preset": "debezium_mysql",
                "filter": f"topic = '{TOPICS}.bank.{name}'",
                **({"encodings": encodings} if name == "things" else {}),
            },
            [{"name": column, "data_type": kind} for column, kind in columns.items()],
        )
        for name, columns in types.items()
    }
    write_project(dbt.path, RAW, tables)
    sources = yaml.safe_load((dbt.path / "models/sources.yml").read_text(encoding="utf-8"))
    for entry in sources["sources"][0]["tables"]:
        entry["identifier"] = "messages"
    write_files(dbt.path, {"models/sources.yml": sources})
    spark.sql(f"create schema if not exists {RAW}")
    spark.sql(
        f"create table {RAW}.messages (topic string, partition int, offset bigint, key binary, "
        "value binary, headers array<struct<key: string, value: binary>>, landing_batch string) "
        f"using {table_format}"
    )
    with (
        TemporaryDirectory(prefix="afterimage_mariadb_") as name,
        shop(Path(name)) as (database, brokers),
    ):
        for number, statements in enumerate((SECOND, THIRD, "")):
            bank = Thread(target=transfer, args=(database, TRANSFERS, number))
            bank.start()
            database.run(statements)
            if number == 0:
                start_snapshot(database, "things")
            bank.join()
            database.run(f"insert into marks values ({number})")
            land_until(spark, brokers, number)
            dbt("build")
            equals(spark, dbt.schema, database)
        files = {row[0] for row in database.run("show binary logs")}
    assert len(files) > 3 and all(file.startswith(BINLOGS) for file in files)
    rejected = spark.table(f"{dbt.schema}.things_changes_rejected")
    assert rejected.isEmpty() and spark.table(f"{dbt.schema}.accounts_changes_rejected").isEmpty()
    # each transfer takes from one account what it gives to another
    sums = spark.sql(
        "select sum(balance - before.balance), count(*) "
        f"from {dbt.schema}.accounts_changes where change_oper = 'U'"
    ).collect()
    assert [tuple(map(int, row)) for row in sums] == [(0, 2 * 3 * TRANSFERS)]
    moved = spark.sql(
        f"select id, price from {dbt.schema}.things_history where closed_by = 'K' and id in (3, 4)"
    )
    assert {tuple(map(int, row)) for row in moved.collect()} == {(3, 3), (4, 4)}
