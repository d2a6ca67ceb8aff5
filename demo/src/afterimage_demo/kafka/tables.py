"""The tables of the web shop, and how each of them is sent.

The same simulated database as in the Qlik demo, under other names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from afterimage_demo.tables import Row, Value

Form = Literal["json_envelope", "json_bare", "avro_envelope", "avro_registry"]


@dataclass(frozen=True)
class ShopTable:
    """A table of the shop.

    Attributes:
        name: in the shop's database.
        source: the simulated table.
        topic: where its messages go.
        form: of its messages.
        columns: column -> (column of the simulated table, Spark type), in the order of ordinals.
        key: names of its key columns.
        before_images: updates carry the image before.
        added: the column that the task replicates from the middle of the second delivery on.
        is_reloaded: a part of its changes is lost, and a second full load makes up for it.
    """

    name: str
    source: str
    topic: str
    form: Form
    columns: Mapping[str, tuple[str, str]]
    key: tuple[str, ...]
    before_images: bool = True
    added: str | None = None
    is_reloaded: bool = False

    @property
    def types(self) -> dict[str, str]:
        """Column -> Spark type."""
        return {name: kind for name, (_, kind) in self.columns.items()}

    def columns_of(self, version: int) -> list[str]:
        """Names of its columns in a version of the table, from 1."""
        return [name for name in self.columns if version > 1 or name != self.added]

    def image(self, row: Row) -> dict[str, Value]:
        """A row with the names of the shop, all columns."""
        return {name: row[column] for name, (column, _) in self.columns.items()}


SHOPPERS = ShopTable(
    name="shoppers",
    source="customers",
    topic="shop.shoppers",
    form="json_envelope",
    columns={
        "shopper_id": ("customer_id", "bigint"),
        "first_name": ("first_name", "string"),
        "last_name": ("last_name", "string"),
        "email": ("email", "string"),
        "city": ("city", "string"),
        "country_code": ("country_code", "string"),
        "born_on": ("birth_date", "date"),
        "voucher_balance": ("credit_limit", "decimal(18,2)"),
        "bonus_points": ("loyalty_points", "bigint"),
        "is_subscribed": ("is_active", "boolean"),
        "registered_at": ("created_at", "timestamp"),
    },
    key=("shopper_id",),
)
CARTS = ShopTable(
    name="carts",
    source="orders",
    topic="shop.carts",
    form="json_bare",
    columns={
        "cart_id": ("order_id", "bigint"),
        "shopper_id": ("customer_id", "bigint"),
        "status": ("status", "string"),
        "opened_at": ("ordered_at", "timestamp"),
        "deliver_on": ("required_on", "date"),
        "currency_code": ("currency_code", "string"),
        "total_amount": ("total_amount", "decimal(18,2)"),
        "is_gift": ("is_gift", "boolean"),
        "gift_message": ("gift_message", "string"),
    },
    key=("cart_id",),
)
ARTICLES = ShopTable(
    name="articles",
    source="products",
    topic="shop.articles",
    form="avro_registry",
    columns={
        "article_id": ("product_id", "bigint"),
        "sku": ("sku", "string"),
        "article_name": ("product_name", "string"),
        "category": ("category", "string"),
        "unit_price": ("unit_price", "decimal(18,2)"),
        "weight_kg": ("weight_kg", "decimal(9,3)"),
        "stock_quantity": ("stock_quantity", "int"),
        "is_discontinued": ("is_discontinued", "boolean"),
        "introduced_on": ("introduced_on", "date"),
        "price_changed_at": ("price_changed_at", "timestamp"),
    },
    key=("article_id",),
    before_images=False,
    is_reloaded=True,
)
CART_LINES = ShopTable(
    name="cart_lines",
    source="order_items",
    topic="checkout.changes",
    form="avro_envelope",
    columns={
        "cart_id": ("order_id", "bigint"),
        "line_number": ("line_number", "int"),
        "article_id": ("product_id", "bigint"),
        "quantity": ("quantity", "int"),
        "unit_price": ("unit_price", "decimal(18,2)"),
        "discount_percent": ("discount_percent", "decimal(5,2)"),
        "promised_on": ("promised_on", "date"),
        "is_backordered": ("is_backordered", "boolean"),
        "remark": ("remark", "string"),
        "edited_at": ("updated_at", "timestamp"),
    },
    key=("cart_id", "line_number"),
    added="discount_percent",
)
TABLES = {table.name: table for table in (SHOPPERS, CARTS, ARTICLES, CART_LINES)}
METADATA_TOPIC = "checkout.metadata"
SCHEMA = "webshop"
"""The schema of the tables in the shop's database, as metadata messages name it."""
