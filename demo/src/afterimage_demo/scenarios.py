"""The changes that chance would not bring reliably, each at its place in the demo's batches."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from afterimage_demo import values
from afterimage_demo.tables import Row
from afterimage_demo.traffic import BATCH_LASTS, HUNDREDTH, Shop, batch_start

# Customers that a scenario works on, out of the first 270, whom no everyday transaction deletes.
LAST_BUYER = 270
RENUMBERED, MOVED_TWICE, SWAPPED_ONE, SWAPPED_OTHER, SPLIT, ANNOTATED = 11, 12, 13, 14, 15, 16


def change_key(shop: Shop) -> None:
    """Renumber a customer, and their orders with them: one transaction over two tables."""
    shop.begin()
    shop.change_customer_key(RENUMBERED, shop.new_id("customers"))


def chain_keys_first(shop: Shop) -> None:
    """Give a customer the key B instead of A."""
    shop.begin()
    new = shop.new_id("customers")
    shop.remember("middle of the chain", shop.change_customer_key(MOVED_TWICE, new))


def chain_keys_second(shop: Shop) -> None:
    """Give the same customer the key C instead of B, a batch later."""
    shop.begin()
    middle = shop.remembered["middle of the chain"].after
    assert middle is not None
    shop.change_customer_key(values.number(middle, "customer_id"), shop.new_id("customers"))


def swap_keys(shop: Shop) -> None:
    """Let two customers exchange their keys in one transaction."""
    shop.begin()
    shop.database.swap_keys("customers", (SWAPPED_ONE,), (SWAPPED_OTHER,))


def annotate(shop: Shop) -> None:
    """Change a LOB alone; then, in later transactions, anything but the LOB."""
    shop.begin()
    shop.database.update("customers", (ANNOTATED,), notes="prefers a call\nto a letter")
    for city in ("Bergen", "Turku"):
        shop.begin()
        shop.database.update("customers", (ANNOTATED,), city=city)


def touch(shop: Shop) -> None:
    """Update nothing: only the column changes that the replication tool fills."""
    shop.begin()
    shop.database.update("customers", (ANNOTATED,))


def delete_and_reinsert(shop: Shop) -> None:
    """Delete an order, and insert it again in the transaction after."""
    order = _free_order(shop)
    shop.begin()
    shop.cancel(values.number(order, "order_id"))
    shop.begin()
    shop.database.insert("orders", _reissued(order))


def replace_in_one_transaction(shop: Shop) -> None:
    """Delete an order and insert it again in one transaction."""
    order = _free_order(shop)
    shop.begin()
    shop.cancel(values.number(order, "order_id"))
    shop.database.insert("orders", _reissued(order))


def delete_for_later(shop: Shop) -> None:
    """Delete an order that comes back a batch later."""
    order = _free_order(shop)
    shop.begin()
    shop.cancel(values.number(order, "order_id"))
    shop.remember("deleted order", shop.database.events[-1])


def reinsert_from_before(shop: Shop) -> None:
    """Insert the order again that the batch before had deleted."""
    order = shop.remembered["deleted order"].before
    assert order is not None
    shop.begin()
    shop.database.insert("orders", _reissued(order))


def quote(shop: Shop) -> None:
    """Insert an order that does not last; a conflicting copy of the record follows."""
    shop.begin()
    order_id = shop.new_id("orders")
    order = values.order(shop.rng, order_id, RENUMBERED + 9, "quotation", shop.now)
    shop.keep_away_from(order_id)
    shop.remember(
        "quotation", shop.database.insert("orders", dict(order) | {"sales_channel": "web"})
    )


def withdraw_quotation(shop: Shop) -> None:
    """Delete that order: whichever copy was kept, the batch ends in the same state."""
    quotation = shop.remembered["quotation"].after
    assert quotation is not None
    shop.begin()
    shop.database.delete("orders", (quotation["order_id"],))


def introduce_late_product(shop: Shop) -> None:
    """Insert a product minutes before the batch ends; it is sent again in the next one."""
    shop.begin()
    product = values.product(shop.rng, shop.new_id("products"), shop.now)
    shop.remember("late product", shop.database.insert("products", product))


def straddle_the_end(shop: Shop) -> None:
    """Update a customer as the batch before ends: the update itself is seen in this one."""
    before = batch_start(shop.database.batch - 1)
    shop.database.begin(before + BATCH_LASTS - HUNDREDTH)
    shop.database.update("customers", (SPLIT,), city="Between two days", loyalty_points=1)


def empty_shipments(shop: Shop) -> None:
    """Truncate the shipments, then announce others; three old shipment numbers come back."""
    old_rows = list(shop.database.rows["shipments"].values())[:3]
    shop.begin()
    shop.database.truncate("shipments")
    for _ in range(10 * shop.scale):
        shop.begin()
        for _ in range(10):
            picked = shop.pick("orders", lambda row: row["status"] in values.ORDER_STATUSES[3:])
            if picked is None:
                continue
            shipment_id = (
                values.number(old_rows.pop(), "shipment_id")
                if old_rows
                else shop.new_id("shipments")
            )
            shop.ship(values.number(picked[1], "order_id"), shipment_id)


def _free_order(shop: Shop) -> Row:
    """Return an order that nothing was shipped for, of a customer who keeps their key."""
    stable = range(ANNOTATED, LAST_BUYER + 1)
    picked = shop.pick(
        "orders",
        lambda row: row["status"] == "new" and row["customer_id"] in stable,
        tries=100_000,
    )
    assert picked is not None
    return picked[1]


def _reissued(order: Row) -> Row:
    return dict(order) | {
        "status": "paid",
        "total_amount": Decimal("0.00"),
        "internal_comment": "issued again",
    }


SCENARIOS: dict[int, tuple[tuple[float, Callable[[Shop], None]], ...]] = {
    1: (
        (0.05, change_key),
        (0.12, delete_and_reinsert),
        (0.18, annotate),
        (0.22, touch),
        (0.28, chain_keys_first),
        (0.33, quote),
        (0.36, withdraw_quotation),
        (0.42, swap_keys),
        (0.60, delete_for_later),
        (0.995, introduce_late_product),
    ),
    2: (
        (0.00, straddle_the_end),
        (0.15, replace_in_one_transaction),
        (0.35, chain_keys_second),
        (0.45, reinsert_from_before),
        (0.60, empty_shipments),
        (0.90, touch),
    ),
}
"""For each batch: at which part of it, from 0 to 1, which scenario runs."""
