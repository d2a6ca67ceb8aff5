"""Records that break the change-event contract, one for each reason to reject a record.

Except for the conflicting copies they are about things that never happened, so that the
database's state does not depend on them. Keys from `NOBODY` on belong to no row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from afterimage_demo import values
from afterimage_demo.database import Event
from afterimage_demo.masks import MASK_BYTES_AT_MOST, padded_bytes
from afterimage_demo.tables import SHIPMENTS, Row, Value
from afterimage_demo.traffic import Shop

NOBODY = 990_000_001


@dataclass(frozen=True)
class Malformed:
    """A record that must be rejected.

    event: gives the record its place in the stream and its values.
    batch: the delivery that brings it.
    reason: the reject reason of the change-event contract.
    overrides: raw columns, header columns included, that arrive with another value.
    is_contested: the same record exists with other data, and either copy may be the one kept.
    """

    event: Event
    batch: int
    reason: str
    overrides: Mapping[str, Value] = field(default_factory=dict)
    is_contested: bool = False

    @property
    def change_seq(self) -> str | None:
        """The change sequence with which the record arrives."""
        change_seq = self.overrides.get("header__change_seq", self.event.change_seq)
        return None if change_seq is None else str(change_seq)


def _row(shop: Shop, table: str) -> Row:
    """Make a row that is in no table."""
    makers: dict[str, Callable[[], Row]] = {
        "customers": lambda: values.customer(shop.rng, NOBODY, shop.now),
        "products": lambda: values.product(shop.rng, NOBODY, shop.now),
        "orders": lambda: values.order(shop.rng, NOBODY, NOBODY, "new", shop.now),
        "order_items": lambda: values.order_item(
            shop.rng, NOBODY, 1, {"product_id": NOBODY, "unit_price": Decimal("1.00")}, shop.now
        ),
        "shipments": lambda: values.shipment(shop.rng, NOBODY, NOBODY, shop.now),
    }
    return makers[table]()


def spoilt_insert(table: str, reason: str, **overrides: Value) -> Callable[[Shop], Malformed]:
    """Return what writes an insert of a row that never was, with some raw columns spoilt."""

    def write(shop: Shop) -> Malformed:
        shop.begin()
        event = shop.database.phantom(table, "I", _row(shop, table))
        return Malformed(event, event.batch, reason, overrides)

    return write


def orphan_before_image(table: str) -> Callable[[Shop], Malformed]:
    """Return what writes the before image of an update that never comes."""

    def write(shop: Shop) -> Malformed:
        shop.begin()
        picked = shop.pick(table)
        assert picked is not None, f"{table} is empty"
        event = shop.database.phantom(table, "B", picked[1])
        return Malformed(event, event.batch, "orphan_before_image")

    return write


def conflicting_copy(
    event_name: str, *, is_contested: bool, **overrides: Value
) -> Callable[[Shop], Malformed]:
    """Return what sends a remembered insert a second time, with other content.

    event_name: under which name a scenario has remembered the insert.
    """

    def write(shop: Shop) -> Malformed:
        return Malformed(
            shop.remembered[event_name],
            shop.database.batch,
            "conflicting_duplicate",
            overrides,
            is_contested,
        )

    return write


MALFORMED: dict[int, tuple[tuple[float, Callable[[Shop], Malformed]], ...]] = {
    1: (
        (0.10, orphan_before_image("customers")),
        (0.15, spoilt_insert("customers", "null_change_seq", header__change_seq=None)),
        (0.20, spoilt_insert("customers", "malformed_mask", header__change_mask="G0FF80")),
        (
            0.25,
            spoilt_insert(
                "products", "malformed_change_seq", header__change_seq="2026-03-02T11:07:31Z"
            ),
        ),
        (
            0.30,
            spoilt_insert(
                "orders",
                "unknown_operation",
                header__change_oper="X",
                header__operation="EXPIRE",
            ),
        ),
        (0.34, conflicting_copy("quotation", is_contested=True, sales_channel="phone")),
        (
            0.40,
            spoilt_insert(
                "orders",
                "future_change_seq",
                header__change_seq=f"{29990101_00000000:016d}{1:019d}",
            ),
        ),
        (0.45, spoilt_insert("order_items", "uncastable_value:quantity", quantity="many")),
        (
            0.50,
            spoilt_insert(
                "shipments",
                "mask_too_wide",
                header__change_mask=padded_bytes(1 << SHIPMENTS.width, SHIPMENTS.width + 1),
            ),
        ),
    ),
    2: (
        (
            0.01,
            conflicting_copy("late product", is_contested=False, header__stream_position="resent"),
        ),
        (0.10, orphan_before_image("shipments")),
        (0.20, spoilt_insert("orders", "null_key", order_id=None)),
        (0.25, spoilt_insert("order_items", "null_key", line_number=None)),
        (
            0.30,
            spoilt_insert("order_items", "uncastable_value:promised_on", promised_on="2026-02-30"),
        ),
        (
            0.40,
            spoilt_insert(
                "products",
                "mask_too_wide",
                header__change_mask="01" * (MASK_BYTES_AT_MOST + 1),
            ),
        ),
        (
            # 35 digits, but month 13: as a watermark it would hide the rest of the year.
            0.50,
            spoilt_insert(
                "customers",
                "malformed_change_seq",
                header__change_seq=f"{20261301_08000000:016d}{1:019d}",
            ),
        ),
    ),
}
"""For each batch: at which part of it, from 0 to 1, which record is written."""
