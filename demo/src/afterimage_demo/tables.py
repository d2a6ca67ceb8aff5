"""The demo's five tables, and how the replication task is set up for each of them.

`demo/models/staging/qlik/_qlik__sources.yml` declares the same columns and settings for dbt;
a unit test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from afterimage_demo.masks import (
    MaskForm,
    full_hex,
    lower_hex,
    message_hex,
    padded_bytes,
    prefixed_hex,
    short_hex,
    trimmed_bytes,
    widest_bytes,
)

Value = int | str | Decimal | date | datetime | bool | bytes | None
"""A column's value; timestamps are aware and in UTC."""

Row = Mapping[str, Value]
"""Column name to value, every column of the table present. Never changed once it is made."""

Key = tuple[Value, ...]
"""The values of the key columns, in the table's key order."""

ALL_HEADERS = (
    "header__change_seq",
    "header__change_oper",
    "header__change_mask",
    "header__stream_position",
    "header__operation",
    "header__transaction_id",
    "header__timestamp",
)


@dataclass(frozen=True)
class Column:
    """A data column: its name and its Spark type, such as `decimal(18,2)`."""

    name: str
    data_type: str


@dataclass(frozen=True)
class Table:
    """A source table and the shape of its change table and base table.

    mask_forms: the forms that the masks take, in turns; all text or all binary.
    base: `frozen` = the full load plus later inserts, `live` = kept up to date.
    delete_image: what a `D` record holds, the key alone or the whole row.
    lob_columns: never set a mask bit, and come as NULL in an update that leaves them alone.
    filled_columns: set by the replication tool with every insert and update.
    landed_as_text: every raw column is text, header columns included.
    epoch_timestamps: `header__timestamp` is 1970-01-01, as with PostgreSQL, most of the time.
    masks_skip_nulls: an `I` record sets no bit for a column that is NULL.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    mask_forms: tuple[MaskForm, ...]
    base: Literal["frozen", "live"]
    delete_image: Literal["key", "row"]
    header_columns: tuple[str, ...] = ALL_HEADERS
    before_images: bool = True
    lob_columns: tuple[str, ...] = ()
    filled_columns: tuple[str, ...] = ()
    landed_as_text: bool = False
    epoch_timestamps: bool = False
    masks_skip_nulls: bool = False

    @property
    def change_table(self) -> str:
        """The name of the raw change table."""
        return f"{self.name}__ct"

    @property
    def width(self) -> int:
        """The number of columns of the change table: the bits that a mask may use."""
        return len(self.header_columns) + len(self.columns)

    def key_of(self, row: Row) -> Key:
        """Return the row's key."""
        return tuple(row[name] for name in self.key)

    def raw_types(self, *, with_headers: bool) -> dict[str, str]:
        """Return the raw table's columns, in order, with the Spark types that they land with."""
        types = dict.fromkeys(self.header_columns, "string") if with_headers else {}
        types |= {column.name: column.data_type for column in self.columns}
        if self.landed_as_text:
            return dict.fromkeys(types, "string")
        if with_headers:
            types["header__timestamp"] = "timestamp"
            if isinstance(self.mask_forms[0](0, self.width), bytes):
                types["header__change_mask"] = "binary"
        return types


def _columns(lines: str) -> tuple[Column, ...]:
    """Read one column a line: its name and its type."""
    return tuple(Column(*line.split()) for line in lines.strip().splitlines())


CUSTOMERS = Table(
    name="customers",
    columns=_columns("""
        customer_id     bigint
        customer_number string
        first_name      string
        last_name       string
        email           string
        phone           string
        city            string
        country_code    string
        birth_date      date
        credit_limit    decimal(18,2)
        loyalty_points  bigint
        is_active       boolean
        notes           string
        created_at      timestamp
        replicated_at   timestamp
    """),
    key=("customer_id",),
    mask_forms=(full_hex,),
    base="live",
    delete_image="row",
    lob_columns=("notes",),
    filled_columns=("replicated_at",),
    epoch_timestamps=True,
)

PRODUCTS = Table(
    name="products",
    columns=_columns("""
        product_id         bigint
        sku                string
        product_name       string
        description        string
        category           string
        supplier_reference bigint
        unit_price         decimal(18,2)
        tax_rate           decimal(5,2)
        weight_kg          decimal(9,3)
        stock_quantity     int
        is_discontinued    boolean
        introduced_on      date
        price_changed_at   timestamp
    """),
    key=("product_id",),
    mask_forms=(message_hex, short_hex),
    base="frozen",
    delete_image="key",
    before_images=False,
)

ORDERS = Table(
    name="orders",
    columns=_columns("""
        order_id         bigint
        customer_id      bigint
        status           string
        ordered_at       timestamp
        required_on      date
        dispatched_at    timestamp
        currency_code    string
        total_amount     decimal(18,2)
        is_gift          boolean
        gift_message     string
        sales_channel    string
        internal_comment string
    """),
    key=("order_id",),
    mask_forms=(trimmed_bytes,),
    base="frozen",
    delete_image="row",
)

ORDER_ITEMS = Table(
    name="order_items",
    columns=_columns("""
        order_id         bigint
        line_number      int
        product_id       bigint
        quantity         int
        unit_price       decimal(18,2)
        discount_percent decimal(5,2)
        promised_on      date
        is_backordered   boolean
        remark           string
        updated_at       timestamp
    """),
    key=("order_id", "line_number"),
    mask_forms=(prefixed_hex, lower_hex),
    base="live",
    delete_image="key",
    header_columns=(
        "header__change_seq",
        "header__change_oper",
        "header__change_mask",
        "header__transaction_id",
        "header__partition_name",
    ),
    landed_as_text=True,
)

SHIPMENTS = Table(
    name="shipments",
    # 75 columns: with the header columns a mask of 11 bytes, more than a 64-bit integer holds.
    columns=_columns("""
        shipment_id             bigint
        order_id                bigint
        tracking_number         string
        carrier_code            string
        service_level           string
        status                  string
        created_at              timestamp
        picked_at               timestamp
        packed_at               timestamp
        dispatched_at           timestamp
        delivered_at            timestamp
        last_scanned_at         timestamp
        promised_on             date
        estimated_delivery_on   date
        customs_cleared_on      date
        returned_on             date
        sender_name             string
        sender_company          string
        sender_street           string
        sender_house_number     string
        sender_postal_code      string
        sender_city             string
        sender_region           string
        sender_country_code     string
        sender_phone            string
        recipient_name          string
        recipient_company       string
        recipient_street        string
        recipient_house_number  string
        recipient_postal_code   string
        recipient_city          string
        recipient_region        string
        recipient_country_code  string
        recipient_phone         string
        recipient_email         string
        package_count           int
        package_type            string
        gross_weight_kg         decimal(9,3)
        net_weight_kg           decimal(9,3)
        length_cm               decimal(9,2)
        width_cm                decimal(9,2)
        height_cm               decimal(9,2)
        volume_m3               decimal(12,6)
        is_fragile              boolean
        is_stackable            boolean
        currency_code           string
        declared_value          decimal(18,2)
        insured_value           decimal(18,2)
        freight_cost            decimal(18,2)
        fuel_surcharge          decimal(18,2)
        customs_duty            decimal(18,2)
        import_tax              decimal(18,2)
        cash_on_delivery        decimal(18,2)
        total_cost              decimal(18,2)
        is_signature_required   boolean
        is_insured              boolean
        is_hazardous            boolean
        hazard_class            string
        minimum_temperature_c   decimal(5,2)
        maximum_temperature_c   decimal(5,2)
        delivery_instructions   string
        pickup_instructions     string
        signed_by               string
        incoterm                string
        commodity_code          string
        origin_country_code     string
        customs_reference       string
        origin_hub_code         string
        destination_hub_code    string
        current_hub_code        string
        route_code              string
        external_reference      bigint
        delivery_attempts       int
        label_checksum          binary
        signature_image         binary
    """),
    key=("shipment_id",),
    mask_forms=(trimmed_bytes, padded_bytes, trimmed_bytes, widest_bytes),
    base="frozen",
    delete_image="row",
    masks_skip_nulls=True,
)

TABLES: dict[str, Table] = {
    table.name: table for table in (CUSTOMERS, PRODUCTS, ORDERS, ORDER_ITEMS, SHIPMENTS)
}
