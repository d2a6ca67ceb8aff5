"""What happens in the database: payments between wallets, and parcels with the harder changes."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

from afterimage_demo.mariadb.debezium import HEARTBEATS, SIGNALS, start_snapshot
from afterimage_demo.mariadb.server import Database
from afterimage_demo.mariadb.tables import TABLES, creation

PAYMENTS = 300
"""In a delivery of scale 1."""
WALLETS = 20

_BEFORE = """
insert into parcels values
(1, '2018-06-20 06:37:03', '1969-12-31 23:59:59.123456', '2018-06-20 06:37:03.5', '07:30:00.25',
 b'1000000001', 'm', 2.5, 18446744073709551615, '{"a": "ü"}', '2026-03-02'),
(2, '1969-12-31 23:59:59', null, null, '-838:59:59', null, null, -0.01, 0, null, '1969-12-31');
"""
_CHANGES = {
    1: """
update parcels set pickup = '120:00:01', size = 'l', contents = null where id = 1;
insert into parcels (id, price) values (3, 3), (4, 4), (5, 5);
-- two keys are swapped
begin;
update parcels set id = 1000 where id = 3;
update parcels set id = 3 where id = 4;
update parcels set id = 4 where id = 1000;
commit;
update parcels set id = 6, packed = '2026-03-02 07:30:00' where id = 2;
delete from parcels where id = 5;
insert into parcels (id, price) values (5, 55);
-- a transaction that is rolled back is in no topic
begin;
delete from parcels;
rollback;
""",
    2: """
truncate parcels;
insert into parcels (id, price) values (1, 1), (7, 7);
""",
}


def prepare(database: Database) -> None:
    """Create the tables of the demo and of Debezium, and fill them."""
    wallets = ", ".join(f"({number}, 1000)" for number in range(1, WALLETS + 1))
    database.run(
        f"{SIGNALS} {HEARTBEATS} {' '.join(map(creation, TABLES))} "
        f"insert into wallets values {wallets}; {_BEFORE}"
    )


def work(database: Database, number: int, scale: int, seed: int) -> None:
    """Run what a delivery brings, the first or the second one."""
    with ThreadPoolExecutor(1) as beside:
        paid = beside.submit(pay, database, PAYMENTS * scale, seed + number)
        database.run(_CHANGES[number])
        if number == 1:
            start_snapshot(database, "parcels")
        paid.result()


def pay(database: Database, count: int, seed: int) -> None:
    """Make payments from one wallet to another, each in a transaction of its own."""
    chooser = random.Random(seed)
    statements = []
    for _ in range(count):
        payer, payee = chooser.sample(range(1, WALLETS + 1), 2)
        amount = chooser.randrange(1, 10_000) / 100
        statements.append(
            f"begin; update wallets set balance = balance - {amount} where id = {payer}; "
            f"update wallets set balance = balance + {amount} where id = {payee}; insert into "
            f"payments (payer, payee, amount) values ({payer}, {payee}, {amount}); commit;"
        )
    database.run("\n".join(statements))
