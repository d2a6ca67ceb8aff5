"""What happens in the database: pgbench's bank (TPC-B), and documents with the harder changes."""

from __future__ import annotations

from tempfile import NamedTemporaryFile

from afterimage_demo.postgres.debezium import SIGNALS, start_snapshot
from afterimage_demo.postgres.server import Database

TRANSACTIONS = 300
"""Of pgbench, for each of its clients, in a delivery of scale 1."""
CLIENTS = 4
ACCOUNTS = 100_000
"""Of the bank for each unit of scale: pgbench's own number, or fewer."""

# pgbench's built-in transaction (TPC-B), with the number of accounts as a variable
_TRANSACTION = """\
\\set aid random(1, :accounts * :scale)
\\set bid random(1, :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
begin;
update pgbench_accounts set abalance = abalance + :delta where aid = :aid;
select abalance from pgbench_accounts where aid = :aid;
update pgbench_tellers set tbalance = tbalance + :delta where tid = :tid;
update pgbench_branches set bbalance = bbalance + :delta where bid = :bid;
insert into pgbench_history (tid, bid, aid, delta, mtime)
values (:tid, :bid, :aid, :delta, current_timestamp);
end;
"""

_TABLES = f"""
-- pgbench's log of transactions has no key
alter table pgbench_history add column id bigserial primary key;
alter table pgbench_accounts replica identity full;
create table documents (
    id int primary key, title text not null, body text, price numeric(10, 2), published date,
    edited timestamptz, read_at time, is_public boolean, cover bytea, reference uuid,
    properties jsonb, tags text[]
);
-- Debezium's signaling table
create table {SIGNALS} (id varchar(42) primary key, type varchar(32), data varchar(2048));
insert into documents (id, title) values (1, 'In the first snapshot'), (2, 'Truncated later');
"""

# Bodies are larger than 2 kB, so PostgreSQL stores them apart (TOAST), and its log has none that an
# update leaves as it is.
_BODY = "(select string_agg(md5(({number} + part)::text), '') from generate_series(1, 300) as part)"

_FIRST = f"""
truncate documents;
insert into documents
select
    number, 'Document ' || number, {_BODY.format(number="number")}, number * 10.01 - 25,
    date '1969-12-30' + number,
    timestamptz '2026-03-02 07:30:00.123456+01' + number * interval '1 s',
    time '23:59:59.5' - number * interval '1 h', number % 2 = 0, decode('00ff41', 'hex'),
    md5(number::text)::uuid, jsonb_build_object('pages', number, 'note', 'ü "quoted"'),
    array['a', number::text]
from generate_series(1, 40) as number;
insert into documents (id, title) values (50, 'Hardly anything');
update documents set title = title || ', second edition' where id <= 10;
update documents set price = null, is_public = null where id = 3;
"""

_SECOND = f"""
-- a key changes; the body is not sent again
update documents set id = 60 where id = 2;
-- two keys are swapped in one transaction
begin;
update documents set id = 1000 where id = 4;
update documents set id = 4 where id = 5;
update documents set id = 5 where id = 1000;
commit;
-- deleted, and inserted again with another body
delete from documents where id in (6, 7);
insert into documents (id, title, body) values (6, 'Back again', {_BODY.format(number=9000)});
-- a transaction that is rolled back is in no topic
begin;
delete from documents;
rollback;
alter table documents add column note text;
update documents set note = 'the column is new' where id between 8 and 12;
"""


def prepare(database: Database, scale: int) -> None:
    """Create the tables: pgbench's at a scale, `ACCOUNTS` accounts each, and those of the demo."""
    database.pgbench("--initialize", "--quiet", "--scale", str(scale))
    database.script(f"delete from pgbench_accounts where aid > {ACCOUNTS * scale};")
    database.script(_TABLES)


def work(database: Database, number: int, scale: int, seed: int) -> None:
    """Run what a delivery brings, the first or the second one."""
    if number == 2:
        start_snapshot(database, "documents")
    database.script({1: _FIRST, 2: _SECOND}[number])
    run_bank(database, TRANSACTIONS * scale, seed + number)


def run_bank(database: Database, transactions: int, seed: int) -> None:
    """Run pgbench's transactions, each of which writes to all of its four tables.

    Args:
        database: prepared.
        transactions: for each of four clients.
        seed: of pgbench's random numbers.
    """
    (scale,) = database.query("select count(*) from pgbench_branches")
    with NamedTemporaryFile("w", suffix=".sql", encoding="utf-8") as transaction:
        transaction.write(_TRANSACTION)
        transaction.flush()
        database.pgbench(
            *("--no-vacuum", "--client", str(CLIENTS), "--transactions", str(transactions)),
            *("--random-seed", str(seed), "--file", transaction.name),
            *("--define", f"accounts={ACCOUNTS}", "--define", f"scale={scale}"),
        )
