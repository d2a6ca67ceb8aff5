"""Something that happened at the demo's source, and what history made of it."""

from __future__ import annotations

from dataclasses import dataclass

from afterimage_demo.scenarios import SWAPPED_ONE, SWAPPED_OTHER


@dataclass(frozen=True)
class Story:
    """A title for the terminal, and the query in Spark SQL that shows it."""

    title: str
    query: str


KEY_SWAP = Story(
    f"Customers {SWAPPED_ONE} and {SWAPPED_OTHER} swap their keys in one transaction. Each row "
    "keeps its values under its new key:",
    f"""
    select customer_id, city, valid_from, opened_by, closed_by
    from afterimage.customers_history
    where customer_id in ({SWAPPED_ONE}, {SWAPPED_OTHER}) and 'K' in (opened_by, closed_by)
    order by customer_id, valid_from_seq
    """,
)

LATE_CHANGE = Story(
    "An update of an order arrives a batch late, when newer ones have been applied. Its version "
    "begins when the source committed it:",
    """
    with batches as (
        select recorded_at, max(change_seq) as last_seq
        from afterimage.orders_changes
        group by recorded_at
    ),

    first_batch as (
        select recorded_at, last_seq
        from batches
        order by recorded_at
        limit 1
    )

    select
        history.order_id,
        history.status,
        changes.changed_at as committed_at,
        history.valid_from,
        changes.recorded_at as arrived_at
    from afterimage.orders_changes as changes
    cross join first_batch
    inner join afterimage.orders_history as history
        on
            changes.order_id = history.order_id
            and changes.change_seq = history.valid_from_seq
    where
        changes.change_oper = 'U'
        and changes.recorded_at > first_batch.recorded_at
        and changes.change_seq < first_batch.last_seq
    order by changes.change_seq
    limit 2
    """,
)


def _beside(system: str, title: str, amounts: dict[str, str]) -> Story:
    """The rows of a database compared with the marts, by their number and the sum of an amount."""
    return Story(
        title,
        " union all ".join(
            f"""
            select
                '{table}' as table_name,
                (select count(*) from demo_raw.{system}_{table}) as rows_in_{system},
                (select count(*) from afterimage.{table}_current) as current_rows,
                (select sum({amount}) from demo_raw.{system}_{table}) as sum_in_{system},
                (select sum({amount}) from afterimage.{table}_current) as current_sum
            """
            for table, amount in amounts.items()
        ),
    )


BESIDE_POSTGRES = _beside(
    "postgres",
    "PostgreSQL, queried with psql, compared with the marts:",
    {
        "pgbench_accounts": "abalance",
        "pgbench_tellers": "tbalance",
        "pgbench_branches": "bbalance",
        "pgbench_history": "delta",
        "documents": "length(body)",
    },
)

BESIDE_MARIADB = _beside(
    "mariadb",
    "MariaDB, queried with its own client, compared with the marts:",
    {"parcels": "price", "wallets": "balance", "payments": "amount"},
)

SWAPPED_PARCELS = Story(
    "Two parcels swap their keys in one transaction, by way of a third key:",
    """
    select id, price, opened_by, closed_by
    from afterimage.parcels_history
    where id in (3, 4, 1000)
    order by valid_from_seq
    """,
)

MOVED_DOCUMENT = Story(
    "A document gets another key. Its long text is in neither event of Debezium; the row keeps it:",
    """
    select id, title, length(body) as length_of_body, opened_by, closed_by
    from afterimage.documents_history
    where id in (2, 60) and title like 'Document%'
    order by valid_from_seq
    """,
)
