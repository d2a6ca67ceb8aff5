"""A shop's everyday transactions, picked by chance, over the simulated database.

They keep the tables consistent: orders belong to customers, items to orders and products,
shipments to dispatched orders, and an order's total is the sum of its lines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from random import Random

from afterimage_demo import values
from afterimage_demo.database import Database, Event
from afterimage_demo.tables import Key, Row, Value

LOADED_AT = datetime(2026, 3, 2, 7, 30, tzinfo=timezone.utc)
"""When the full load of the base tables began."""

FIRST_BATCH_AT = datetime(2026, 3, 2, 8, 0, tzinfo=timezone.utc)
BATCH_EVERY = timedelta(days=1)
BATCH_LASTS = timedelta(hours=12)
RECORDS_PER_BATCH = 1_250
"""Change records, before images included, of one batch at scale 1."""

HUNDREDTH = timedelta(milliseconds=10)


def batch_start(batch: int) -> datetime:
    """Return the time from which the batch's transactions are committed."""
    return FIRST_BATCH_AT + (batch - 1) * BATCH_EVERY


class Shop:
    """The shop's state between transactions, and the clock that they are committed by."""

    def __init__(self, rng: Random, scale: int) -> None:
        self.rng = rng
        self.scale = scale
        self.database = Database()
        self.remembered: dict[str, Event] = {}
        self._lines: dict[int, list[int]] = defaultdict(list)
        self._untouchable: set[Value] = set()
        self._never_order: set[Value] = set()
        self._never_sold: set[Value] = set()
        self._last_ids = dict.fromkeys(("customers", "products", "orders", "shipments"), 0)
        self._last_ids |= {"orders": values.BEYOND_DOUBLE, "shipments": 50_000}
        self._records_before = 0

    # -- the load --------------------------------------------------------------------------

    def load(self) -> None:
        """Fill the tables with the rows that the full load finds."""
        customers = [self._load_customer() for _ in range(300 * self.scale)]
        products = [self._load_product() for _ in range(200 * self.scale)]
        # The last ones have no orders, and so can be deleted.
        buyers, self._never_order = customers[: -30 * self.scale], {*customers[-30 * self.scale :]}
        sold, self._never_sold = products[: -20 * self.scale], {*products[-20 * self.scale :]}
        shipments = 400 * self.scale
        for number in range(1_500 * self.scale):
            status = values.dealt(number, ("delivered", "dispatched", "new", "paid", "packed"))
            order_id = self.new_id("orders")
            placed_at = values.moment(self.rng, LOADED_AT, timedelta(days=120))
            buyer = self.rng.choice(buyers)
            order = values.order(self.rng, order_id, buyer, status, placed_at)
            items = [
                values.order_item(
                    self.rng,
                    order_id,
                    line,
                    self._row("products", self.rng.choice(sold)),
                    placed_at,
                )
                for line in range(1, 1 + values.dealt(number, (1, 2, 3, 4, 3, 3)))
            ]
            total = sum(map(values.line_amount, items), Decimal("0.00"))
            self.database.load("orders", dict(order) | {"total_amount": total})
            for item in items:
                self.database.load("order_items", item)
            self._lines[order_id] = list(range(1, 1 + len(items)))
            if shipments and status in ("dispatched", "delivered"):
                shipments -= 1
                shipment = values.shipment(
                    self.rng, self.new_id("shipments"), order_id, placed_at + timedelta(hours=20)
                )
                self.database.load("shipments", shipment)

    def _load_customer(self) -> int:
        customer_id = self.new_id("customers")
        self.database.load("customers", values.customer(self.rng, customer_id, LOADED_AT))
        return customer_id

    def _load_product(self) -> int:
        product_id = self.new_id("products")
        self.database.load("products", values.product(self.rng, product_id, LOADED_AT))
        return product_id

    # -- the clock -------------------------------------------------------------------------

    def open_batch(self, batch: int) -> None:
        """Begin the next batch: what follows is delivered with it."""
        self.database.batch = batch
        self._records_before = self.database.records

    @property
    def progress(self) -> float:
        """How much of the batch's records has been written, from 0 to 1."""
        written = self.database.records - self._records_before
        return min(1.0, written / (RECORDS_PER_BATCH * self.scale))

    def begin(self) -> None:
        """Begin a transaction at the time that the batch has progressed to.

        The last hundredth part of the batch's time is left to transactions that straddle its end.
        """
        hundredths = int(self.progress * 0.99 * (BATCH_LASTS / HUNDREDTH))
        start = batch_start(self.database.batch)
        self.database.begin(start + hundredths * HUNDREDTH)

    # -- helpers that scenarios use too ----------------------------------------------------

    @property
    def now(self) -> datetime:
        """The running transaction's commit time."""
        return self.database.committed_at

    def new_id(self, table: str) -> int:
        """Return the next number for a key."""
        self._last_ids[table] += 1
        return self._last_ids[table]

    def pick(
        self, table: str, accept: Callable[[Row], bool] = lambda row: True, tries: int = 40
    ) -> tuple[Key, Row] | None:
        """Return a row picked by chance that `accept` likes, or None when luck ran out."""
        pool, rows = self.database.pools[table], self.database.rows[table]
        for _ in range(tries if pool else 0):
            key = self.rng.choice(pool)
            if key in rows and accept(rows[key]):
                return key, rows[key]
        return None

    def remember(self, name: str, event: Event) -> None:
        """Keep an event for a later scenario."""
        self.remembered[name] = event

    def keep_away_from(self, order_id: int) -> None:
        """Leave an order to a scenario: no everyday transaction changes it."""
        self._untouchable.add(order_id)

    def ship(self, order_id: int, shipment_id: int) -> None:
        """Announce a shipment of an order, in the running transaction."""
        shipment = values.shipment(self.rng, shipment_id, order_id, self.now)
        self.database.insert("shipments", shipment)

    def cancel(self, order_id: int) -> None:
        """Delete an order and its items, in the running transaction."""
        for line in self._lines.pop(order_id, []):
            self.database.delete("order_items", (order_id, line))
        self.database.delete("orders", (order_id,))

    def change_customer_key(self, old: int, new: int) -> Event:
        """Change a customer's key, and with it their orders, in the running transaction."""
        event = self.database.update("customers", (old,), customer_id=new)
        assert event is not None
        for key, row in list(self.database.rows["orders"].items()):
            if row["customer_id"] == old:
                self.database.update("orders", key, customer_id=new)
        return event

    def _row(self, table: str, *key: Value) -> Row:
        return self.database.rows[table][key]

    # -- everyday transactions -------------------------------------------------------------

    def trade(self) -> None:
        """Run one transaction."""
        (transaction,) = self.rng.choices(tuple(_TRANSACTIONS), tuple(_TRANSACTIONS.values()))
        self.begin()
        transaction(self)

    def _place_order(self) -> None:
        buyer = self.pick("customers", lambda row: row["customer_id"] not in self._never_order)
        if buyer is None:
            return
        order_id = self.new_id("orders")
        order = values.order(
            self.rng, order_id, values.number(buyer[1], "customer_id"), "new", self.now
        )
        lines = []
        for line in range(1, 1 + self.rng.randrange(1, 5)):
            sold = self.pick("products", lambda row: row["product_id"] not in self._never_sold)
            if sold is not None:
                lines.append(values.order_item(self.rng, order_id, line, sold[1], self.now))
        self._lines[order_id] = [values.number(item, "line_number") for item in lines]
        total = sum(map(values.line_amount, lines), Decimal("0.00"))
        self.database.insert("orders", dict(order) | {"total_amount": total})
        for item in lines:
            self.database.insert("order_items", item)
            stock = values.number(self._row("products", item["product_id"]), "stock_quantity")
            self.database.update(
                "products",
                (item["product_id"],),
                stock_quantity=stock - values.number(item, "quantity"),
            )

    def _advance_order(self) -> None:
        picked = self._pick_order(values.ORDER_STATUSES[:-1])
        if picked is None:
            return
        key, row = picked
        status = values.ORDER_STATUSES[values.ORDER_STATUSES.index(str(row["status"])) + 1]
        if status == "dispatched":
            self.database.update("orders", key, status=status, dispatched_at=self.now)
            self.ship(values.number(row, "order_id"), self.new_id("shipments"))
        else:
            self.database.update("orders", key, status=status)

    def _edit_item(self) -> None:
        picked = self._pick_order(("new", "paid"))
        if picked is None or not self._lines[values.number(picked[1], "order_id")]:
            return
        order_id = values.number(picked[1], "order_id")
        key = (order_id, self.rng.choice(self._lines[order_id]))
        self.database.update(
            "order_items",
            key,
            quantity=self.rng.randrange(1, 12),
            remark=values.dealt(self.rng.randrange(100), values.AWKWARD_TEXTS),
            updated_at=values.moment(self.rng, self.now, timedelta(seconds=1)),
        )
        self._settle_total(order_id)

    def _remove_item(self) -> None:
        picked = self._pick_order(("new", "paid"))
        if picked is None or len(self._lines[values.number(picked[1], "order_id")]) < 2:
            return
        order_id = values.number(picked[1], "order_id")
        self.database.delete("order_items", (order_id, self._lines[order_id].pop()))
        self._settle_total(order_id)

    def _cancel_order(self) -> None:
        picked = self._pick_order(("new",))
        if picked is not None:
            self.cancel(values.number(picked[1], "order_id"))

    def _comment_on_order(self) -> None:
        picked = self._pick_order(values.ORDER_STATUSES)
        if picked is not None:
            comment = values.dealt(self.rng.randrange(100), values.AWKWARD_TEXTS)
            self.database.update("orders", picked[0], internal_comment=comment)

    def _move_customer(self) -> None:
        picked = self.pick("customers")
        if picked is not None:
            new = values.customer(self.rng, values.number(picked[1], "customer_id"), self.now)
            changes = {name: new[name] for name in ("phone", "city", "country_code", "is_active")}
            self.database.update("customers", picked[0], **changes)

    def _annotate_customer(self) -> None:
        picked = self.pick("customers")
        if picked is not None:
            # Never NULL: a LOB set to NULL looks like one that the record left out.
            note = f"called on {self.now:%d %B}: {self.rng.choice(('ok', 'call back', '…'))}"
            self.database.update("customers", picked[0], notes=note)

    def _touch_customer(self) -> None:
        picked = self.pick("customers")
        if picked is not None:
            self.database.update("customers", picked[0])

    def _welcome_customer(self) -> None:
        customer_id = self.new_id("customers")
        self._never_order.add(customer_id)
        self.database.insert("customers", values.customer(self.rng, customer_id, self.now))

    def _forget_customer(self) -> None:
        picked = self.pick("customers", lambda row: row["customer_id"] in self._never_order)
        if picked is not None:
            self.database.delete("customers", picked[0])

    def _reprice_product(self) -> None:
        picked = self.pick("products")
        if picked is not None:
            self.database.update(
                "products",
                picked[0],
                unit_price=values.amount(self.rng, 500),
                price_changed_at=values.moment(self.rng, self.now, timedelta(seconds=1)),
            )

    def _introduce_product(self) -> None:
        product_id = self.new_id("products")
        self._never_sold.add(product_id)
        self.database.insert("products", values.product(self.rng, product_id, self.now))

    def _withdraw_product(self) -> None:
        picked = self.pick("products", lambda row: row["product_id"] in self._never_sold)
        if picked is not None:
            self.database.delete("products", picked[0])

    def _scan_shipment(self) -> None:
        picked = self.pick("shipments", lambda row: row["status"] != values.SHIPMENT_STATUSES[-1])
        if picked is None:
            return
        key, row = picked
        status = values.dealt(
            values.SHIPMENT_STATUSES.index(str(row["status"])) + 1, values.SHIPMENT_STATUSES
        )
        delivered = status == values.SHIPMENT_STATUSES[-1]
        self.database.update(
            "shipments",
            key,
            status=status,
            last_scanned_at=self.now,
            current_hub_code=f"H{self.rng.randrange(100):02d}",
            delivered_at=self.now if delivered else None,
            delivery_attempts=values.number(row, "delivery_attempts") + delivered,
            signed_by=row["recipient_name"] if delivered else None,
            signature_image=self.rng.getrandbits(64).to_bytes(8, "big") if delivered else None,
        )

    def _drop_shipment(self) -> None:
        picked = self.pick("shipments")
        if picked is not None:
            self.database.delete("shipments", picked[0])

    def _pick_order(self, statuses: tuple[str, ...]) -> tuple[Key, Row] | None:
        return self.pick(
            "orders",
            lambda row: row["status"] in statuses and row["order_id"] not in self._untouchable,
        )

    def _settle_total(self, order_id: int) -> None:
        items = (self._row("order_items", order_id, line) for line in self._lines[order_id])
        total = sum(map(values.line_amount, items), Decimal("0.00"))
        self.database.update("orders", (order_id,), total_amount=total)


_TRANSACTIONS: dict[Callable[[Shop], None], float] = {
    Shop._place_order: 12,
    Shop._advance_order: 24,
    Shop._edit_item: 12,
    Shop._remove_item: 4,
    Shop._cancel_order: 4,
    Shop._comment_on_order: 6,
    Shop._move_customer: 12,
    Shop._annotate_customer: 4,
    Shop._touch_customer: 5,
    Shop._welcome_customer: 5,
    Shop._forget_customer: 2,
    Shop._reprice_product: 7,
    Shop._introduce_product: 2,
    Shop._withdraw_product: 1,
    Shop._scan_shipment: 14,
    Shop._drop_shipment: 2,
}
"""How often each transaction comes, in relation to the others."""
