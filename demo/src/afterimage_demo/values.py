"""Makes the demo's rows: ordinary values, and in between those that break careless pipelines.

The awkward values are dealt out by a row's number, not by chance, so that every one occurs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Decimal
from random import Random
from typing import TypeVar

from afterimage_demo.tables import SHIPMENTS, Row, Value

T = TypeVar("T")

AWKWARD_TEXTS: tuple[str | None, ...] = (
    "O'Brien said 'yes'",
    r"C:\temp\new \n is not a line break",
    "",
    "None",
    None,
    "NULL",
    "null",
    "NaN",
    "  spaces around  ",
    "a tab\tand a\nline break",
    'She said "quote"; -- no comment',
    "Zoë Ångström, Łódź",
    "Cafe\u0301 and Café are two texts",
    "北京市朝阳区",
    "مرحبا بالعالم",
    "🚚📦 on its way",
    "{{ not_jinja }} {% nor this %} 100%",
    "trailing backslash \\",
)

AWKWARD_AMOUNTS = tuple(
    map(Decimal, ("0.00", "-0.01", "9999999999999999.99", "-9999999999999999.99", "0.10"))
)
AWKWARD_DATES = (date(1900, 1, 1), date(1904, 2, 29), date(1970, 1, 1), date(9999, 12, 31))
AWKWARD_TIMES = (
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=timezone.utc),
    datetime(1970, 1, 1, tzinfo=timezone.utc),
    datetime(2024, 3, 31, 1, 30, 0, 1, tzinfo=timezone.utc),
    datetime(2024, 2, 29, 12, 0, 0, 123_456, tzinfo=timezone.utc),
)
AWKWARD_BYTES = (b"", b"\x00", b"\x00\x01\xfe\xff", b"0x00", None)

BEYOND_DOUBLE = 9_100_000_000_000_000
"""Above 2^53: two neighbours become one number where a double gets in between."""

_FIRST_NAMES = ("Ada", "Bruno", "Chloé", "Dmitri", "Esra", "Farid", "Grace", "Hana", "Iñigo", "Jo")
_LAST_NAMES = ("Nowak", "O'Neill", "Müller", "Rossi", "da Silva", "Kim", "Svensson", "Okafor")
_CITIES = ("Lisbon", "Graz", "Málaga", "Leeds", "Kraków", "Gent", "Oslo", "Trieste", "Brno")
_COUNTRIES = ("PT", "AT", "ES", "GB", "PL", "BE", "NO", "IT", "CZ")
_STREETS = ("Harbour Road", "Rua Augusta", "Lange Gasse", "Via Roma", "Długa")
_CATEGORIES = ("garden", "kitchen", "office", "toys", "tools")
_PRODUCT_WORDS = ("Lamp", "Kettle", "Spade", "Puzzle", "Stapler", "Chair", "Rake", "Mug")
_CHANNELS = ("web", "shop", "phone")
_CURRENCIES = ("EUR", "GBP", "NOK", "PLN")

ORDER_STATUSES = ("new", "paid", "packed", "dispatched", "delivered")
SHIPMENT_STATUSES = ("announced", "in_transit", "at_hub", "out_for_delivery", "delivered")


def dealt(number: int, values: Sequence[T]) -> T:
    """Return the value whose turn it is."""
    return values[number % len(values)]


def amount(rng: Random, highest: int) -> Decimal:
    """Return an amount of money with two decimals."""
    return Decimal(rng.randrange(highest * 100)).scaleb(-2)


def moment(rng: Random, before: datetime, within: timedelta) -> datetime:
    """Return a time, with microseconds, in the span that ends at `before`."""
    span = within // timedelta(microseconds=1)
    return before - timedelta(microseconds=1 + int(rng.random() * span))


def customer(rng: Random, customer_id: int, at: datetime) -> Row:
    """Make a customer who signed up before `at`."""
    first_name, last_name = rng.choice(_FIRST_NAMES), rng.choice(_LAST_NAMES)
    place = rng.randrange(len(_CITIES))
    return {
        "customer_id": customer_id,
        "customer_number": f"C-{customer_id:07d}",
        "first_name": first_name,
        "last_name": last_name,
        "email": f"{first_name}.{customer_id}@example.com".lower(),
        "phone": f"+00 {rng.randrange(10**9):09d}" if rng.random() < 0.8 else None,
        "city": _CITIES[place],
        "country_code": _COUNTRIES[place],
        "birth_date": (
            dealt(customer_id // 19, AWKWARD_DATES[:3])
            if customer_id % 19 == 0
            else date(1940, 1, 1) + timedelta(days=rng.randrange(25_000))
        ),
        "credit_limit": (
            dealt(customer_id // 17, AWKWARD_AMOUNTS)
            if customer_id % 17 == 0
            else amount(rng, 10_000)
        ),
        "loyalty_points": BEYOND_DOUBLE + customer_id
        if customer_id % 13 == 0
        else rng.randrange(5_000),
        "is_active": rng.choice((True, True, True, False, None)),
        "notes": dealt(customer_id, AWKWARD_TEXTS),
        "created_at": (
            dealt(customer_id // 23, AWKWARD_TIMES)
            if customer_id % 23 == 0
            else moment(rng, at, timedelta(days=900))
        ),
        "replicated_at": at,
    }


def product(rng: Random, product_id: int, at: datetime) -> Row:
    """Make a product that was introduced before `at`."""
    category = rng.choice(_CATEGORIES)
    return {
        "product_id": product_id,
        "sku": f"{category[:3].upper()}-{product_id:06d}",
        "product_name": f"{rng.choice(_PRODUCT_WORDS)} {rng.randrange(1, 100)}",
        "description": dealt(product_id, AWKWARD_TEXTS),
        "category": category,
        "supplier_reference": BEYOND_DOUBLE + product_id,
        "unit_price": amount(rng, 500) + Decimal("0.50"),
        "tax_rate": rng.choice((Decimal("0.00"), Decimal("5.50"), Decimal("20.00"), None)),
        "weight_kg": Decimal(rng.randrange(1, 40_000)).scaleb(-3),
        "stock_quantity": rng.randrange(1_000),
        "is_discontinued": False,
        "introduced_on": moment(rng, at, timedelta(days=2_000)).date(),
        "price_changed_at": moment(rng, at, timedelta(days=60)) if rng.random() < 0.7 else None,
    }


def order(rng: Random, order_id: int, customer_id: int, status: str, at: datetime) -> Row:
    """Make an order, placed in the second before `at`, whose total is not known yet."""
    placed_at = moment(rng, at, timedelta(seconds=1))
    dispatched = status in ORDER_STATUSES[3:]
    is_gift = rng.random() < 0.2
    return {
        "order_id": order_id,
        "customer_id": customer_id,
        "status": status,
        "ordered_at": placed_at,
        "required_on": (
            dealt(order_id // 29, AWKWARD_DATES)
            if order_id % 29 == 0
            else placed_at.date() + timedelta(days=rng.randrange(2, 30))
        ),
        "dispatched_at": placed_at + timedelta(hours=20) if dispatched else None,
        "currency_code": rng.choice(_CURRENCIES),
        "total_amount": Decimal("0.00"),
        "is_gift": is_gift,
        "gift_message": dealt(order_id, AWKWARD_TEXTS) if is_gift else None,
        "sales_channel": rng.choice(_CHANNELS),
        "internal_comment": dealt(order_id // 5, AWKWARD_TEXTS) if order_id % 5 == 0 else None,
    }


def order_item(rng: Random, order_id: int, line_number: int, sold: Row, at: datetime) -> Row:
    """Make a line of an order for a product as it is sold now."""
    return {
        "order_id": order_id,
        "line_number": line_number,
        "product_id": sold["product_id"],
        "quantity": rng.randrange(1, 9),
        "unit_price": sold["unit_price"],
        "discount_percent": rng.choice((None, Decimal("0.00"), Decimal("2.50"), Decimal("10.00"))),
        "promised_on": at.date() + timedelta(days=rng.randrange(1, 15)),
        "is_backordered": rng.choice((False, False, True, None)),
        "remark": dealt(order_id + line_number, AWKWARD_TEXTS),
        "updated_at": moment(rng, at, timedelta(seconds=1)),
    }


def number(row: Row, column: str) -> int:
    """Return a value of a column of whole numbers that is never NULL."""
    value = row[column]
    assert isinstance(value, int)
    return value


def line_amount(item: Row) -> Decimal:
    """Return what a line of an order costs, discount taken off, rounded to two decimals."""
    price, discount = item["unit_price"], item["discount_percent"]
    assert isinstance(price, Decimal)
    share = 100 - discount if isinstance(discount, Decimal) else Decimal(100)
    cost = number(item, "quantity") * price * share / 100
    return cost.quantize(Decimal("0.01"), ROUND_HALF_UP)


def shipment(rng: Random, shipment_id: int, order_id: int, at: datetime) -> Row:
    """Make a shipment of an order that was announced in the second before `at`."""
    announced_at = moment(rng, at, timedelta(seconds=1))
    row: dict[str, Value] = {name: make(rng, at) for name, make in _SHIPMENT_MAKERS}
    row |= {
        "shipment_id": shipment_id,
        "order_id": order_id,
        "tracking_number": f"TRK{shipment_id:012d}",
        "carrier_code": rng.choice(("NORD", "PELI", "SWFT")),
        "service_level": rng.choice(("economy", "standard", "express")),
        "status": SHIPMENT_STATUSES[0],
        "created_at": announced_at,
        "delivered_at": None,
        "last_scanned_at": announced_at,
        "returned_on": None,
        "package_count": rng.randrange(1, 5),
        "currency_code": rng.choice(_CURRENCIES),
        "delivery_instructions": dealt(shipment_id, AWKWARD_TEXTS),
        "signed_by": None,
        "incoterm": rng.choice(("DAP", "DDP", "EXW")),
        "external_reference": BEYOND_DOUBLE + shipment_id,
        "delivery_attempts": 0,
        "label_checksum": rng.getrandbits(64).to_bytes(8, "big"),
        "signature_image": dealt(shipment_id, AWKWARD_BYTES),
    }
    if shipment_id % 31 == 0:
        row["declared_value"] = dealt(shipment_id // 31, AWKWARD_AMOUNTS)
        row["picked_at"] = dealt(shipment_id // 31, AWKWARD_TIMES)
        row["promised_on"] = dealt(shipment_id // 31, AWKWARD_DATES)
    return row


_Maker = Callable[[Random, datetime], Value]

_TEXTS_BY_ENDING: dict[str, _Maker] = {
    "_name": lambda rng, at: f"{rng.choice(_FIRST_NAMES)} {rng.choice(_LAST_NAMES)}",
    "_company": lambda rng, at: f"{rng.choice(_LAST_NAMES)} & Sons",
    "_street": lambda rng, at: rng.choice(_STREETS),
    "_house_number": lambda rng, at: f"{rng.randrange(1, 200)}{rng.choice(('', '', 'b'))}",
    "_postal_code": lambda rng, at: f"{rng.randrange(100_000):05d}",
    "_city": lambda rng, at: rng.choice(_CITIES),
    "_country_code": lambda rng, at: rng.choice(_COUNTRIES),
    "_phone": lambda rng, at: f"+00 {rng.randrange(10**9):09d}",
    "_email": lambda rng, at: f"box{rng.randrange(10**6)}@example.com",
}

_MAKERS_BY_TYPE: dict[str, _Maker] = {
    "bigint": lambda rng, at: rng.getrandbits(60),
    "int": lambda rng, at: rng.randrange(10),
    "string": lambda rng, at: f"X{rng.randrange(10_000):04d}",
    "timestamp": lambda rng, at: moment(rng, at, timedelta(days=2)),
    "date": lambda rng, at: at.date() + timedelta(days=rng.randrange(10)),
    "boolean": lambda rng, at: rng.random() < 0.5,
    "decimal(18,2)": lambda rng, at: amount(rng, 1_000),
    "decimal(12,6)": lambda rng, at: Decimal(rng.randrange(10**7)).scaleb(-6),
    "decimal(9,3)": lambda rng, at: Decimal(rng.randrange(10**5)).scaleb(-3),
    "decimal(9,2)": lambda rng, at: Decimal(rng.randrange(10**4)).scaleb(-2),
    "decimal(5,2)": lambda rng, at: Decimal(rng.randrange(-3_000, 3_000)).scaleb(-2),
    "binary": lambda rng, at: rng.getrandbits(64).to_bytes(8, "big"),
}


def _maker(name: str, data_type: str) -> _Maker:
    """Return what makes a value for a column of this name and type, NULL one time in four."""
    make = _MAKERS_BY_TYPE[data_type]
    if data_type == "string":
        endings = (ending for ending in _TEXTS_BY_ENDING if name.endswith(ending))
        make = _TEXTS_BY_ENDING.get(next(endings, ""), make)
    return lambda rng, at: make(rng, at) if rng.random() < 0.75 else None


_SHIPMENT_MAKERS = tuple(
    (column.name, _maker(column.name, column.data_type)) for column in SHIPMENTS.columns
)
