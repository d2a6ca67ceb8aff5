"""The demo's changes as the plant's OpenEdge database records them: a tracking and change tables.

The same simulated database as in the Qlik demo, under other names. Policies differ by table:
operators are captured at level 3, deliveries at level 2, work orders at level 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from afterimage_demo.arrow import to_arrow
from afterimage_demo.database import Event
from afterimage_demo.generate import DemoBatch, DemoData, generate
from afterimage_demo.qlik import RawRow
from afterimage_demo.tables import Key, Row, Value

TRACKING = "cdc_change_tracking"
OVERLAP = 40
"""How many sequences of each table an extract reads again."""

UNKNOWN_OPERATION = 13
PARTITIONS = 3


@dataclass(frozen=True)
class PlantTable:
    """A source table of the plant, and the policy that captures it.

    Attributes:
        source: the simulated table.
        number: the table's number in the database.
        level: the level of its policy.
        columns: column -> (column of the simulated table, type as it lands).
        key: the simulated key column.
        array: columns of the simulated table that make one array field, by its name.
        has_partitions: its rows are in partitions, by their key.
    """

    source: str
    number: int
    level: int
    columns: Mapping[str, tuple[str, str]]
    key: str
    array: Mapping[str, Sequence[str]] = field(default_factory=dict)
    has_partitions: bool = False

    @property
    def types(self) -> dict[str, str]:
        """Column -> type, in the order of the fields."""
        types = {name: kind for name, (_, kind) in self.columns.items()}
        return types | dict.fromkeys(self.array, "string")

    def image(self, row: Row) -> RawRow:
        """A row with the names and values of the plant."""
        values: RawRow = {name: row[column] for name, (column, _) in self.columns.items()}
        return values | {
            name: ";".join(_element(row[column]) for column in columns)
            for name, columns in self.array.items()
        }


OPERATORS = PlantTable(
    source="customers",
    number=101,
    level=3,
    columns={
        "operator-id": ("customer_id", "bigint"),
        "operator-no": ("customer_number", "string"),
        "first-name": ("first_name", "string"),
        "last-name": ("last_name", "string"),
        "city": ("city", "string"),
        "country-code": ("country_code", "string"),
        "hourly-rate": ("credit_limit", "decimal(18,2)"),
        "badge-points": ("loyalty_points", "bigint"),
        "is-active": ("is_active", "boolean"),
        "hired-at": ("created_at", "timestamp"),
    },
    key="customer_id",
    array={"contacts": ("email", "phone")},
)
DELIVERIES = PlantTable(
    source="shipments",
    number=102,
    level=2,
    columns={
        "delivery_id": ("shipment_id", "bigint"),
        "work_order_id": ("order_id", "bigint"),
        "tracking_number": ("tracking_number", "string"),
        "carrier_code": ("carrier_code", "string"),
        "service_level": ("service_level", "string"),
        "status": ("status", "string"),
    },
    key="shipment_id",
    has_partitions=True,
)
WORK_ORDERS = PlantTable(
    source="orders",
    number=103,
    level=1,
    columns={
        "work_order_id": ("order_id", "bigint"),
        "operator_id": ("customer_id", "bigint"),
        "status": ("status", "string"),
        "due_on": ("required_on", "date"),
        "costs": ("total_amount", "decimal(18,2)"),
    },
    key="order_id",
)
TABLES = {"operators": OPERATORS, "deliveries": DELIVERIES, "work_orders": WORK_ORDERS}

TRACKING_TYPES = {
    "_Policy-Id": "string",
    "_Tran-Id": "int",
    "_Time-Stamp": "timestamp",
    "_Change-Sequence": "bigint",
    "_Operation": "int",
    "_Change-FieldMap": "binary",
    "_Recid": "bigint",
    "_Source-Table-Number": "int",
    "_Partition-Id": "int",
    "_Tenant-Id": "int",
    "_User-Misc": "string",
    "_User-Name": "string",
}
CHANGE_TYPES = {
    "_Tran-Id": "int",
    "_Time-Stamp": "timestamp",
    "_Change-Sequence": "bigint",
    "_Continuation-Position": "int",
    "_ArrayIndex": "int",
    "_Fragment": "int",
    "_Operation": "int",
}
_USERS = ("ahansen", "bkaya", "clemaire", "dnovak")
_OPERATIONS = {"I": 1, "D": 2, "U": 4, "T": 7}


def deliveries(scale: int, seed: int, batches: int) -> list[DemoBatch]:
    """What each extract brings to the raw tables."""
    data = generate(scale=scale, seed=seed, batches=batches)
    landed: list[dict[str, tuple[dict[str, str], list[RawRow]]]] = [
        {TRACKING: (TRACKING_TYPES, [])} for _ in range(batches)
    ]
    for name, table in TABLES.items():
        capture = _Capture(table)
        for event in data.events:
            if event.table == table.source:
                capture.write(event)
        if table.level > 1:
            capture.spoil()
        types = CHANGE_TYPES | table.types
        for number, (tracking, changes) in enumerate(capture.extracts(batches)):
            landed[number][TRACKING][1].extend(tracking)
            if table.level > 1:
                landed[number][f"cdc_{name}"] = (types, changes)
        if table.level > 1:
            _land_base(landed, name, table, data)
    return [
        DemoBatch(
            number,
            {name: to_arrow(types, rows) for name, (types, rows) in tables.items()},
            frozenset(),
        )
        for number, tables in enumerate(landed, 1)
    ]


def _land_base(
    landed: list[dict[str, tuple[dict[str, str], list[RawRow]]]],
    name: str,
    table: PlantTable,
    data: DemoData,
) -> None:
    """The rows before the first change, read once: a frozen base table."""
    types = dict(table.types)
    if table.has_partitions:
        types["partition_id"] = "int"
    rows = []
    for row in data.truth[table.source][0].values():
        base = table.image(row)
        if table.has_partitions:
            base["partition_id"] = _partition(row[table.key])
        rows.append(base)
    landed[0][name] = (types, rows)


class _Capture:
    """The database's triggers: what they write for each change of one table."""

    def __init__(self, table: PlantTable) -> None:
        self._table = table
        self._records: list[tuple[int, RawRow, list[RawRow]]] = []
        self._recids: dict[Key, int] = {}

    def write(self, event: Event) -> None:
        """Add the tracking row of a change, and its rows in the change table."""
        if event.oper == "T":
            # a truncate of the table is one of each partition
            for partition in range(PARTITIONS):
                self._record(event, 7, None, partition, [])
            return
        code = _OPERATIONS[event.oper]
        before = self._table.image(event.before) if event.before else None
        after = self._table.image(event.after) if event.after else None
        if code == 4:
            assert before is not None and after is not None
            changed = [name for name in after if after[name] != before[name]]
            known = {*changed, *self._key_columns()}
            images = [(3, before)] * (self._table.level == 3) + [(4, after)]
            rows = [
                (operation, {name: image[name] if name in known else None for name in image})
                for operation, image in images
            ]
            stored = _field_map([list(after).index(name) for name in changed])
            self._record(event, code, stored, None, rows)
        else:
            self._record(event, code, None, None, [(code, after or before or {})])

    def spoil(self) -> None:
        """Add a tracking row with an operation that does not exist, and one whose change is gone.

        And one that is not a change of a row: a field was added.

        They come before all others, so that the look-back has passed them.
        """
        _, tracking, _ = self._records[0]
        self._records[:0] = [
            (1, tracking | {"_Change-Sequence": 1, "_Operation": UNKNOWN_OPERATION}, []),
            (1, tracking | {"_Change-Sequence": 2, "_Operation": 1, "_Change-FieldMap": None}, []),
            (1, tracking | {"_Change-Sequence": 3, "_Operation": 12, "_Change-FieldMap": None}, []),
        ]

    def extracts(self, batches: int) -> list[tuple[list[RawRow], list[RawRow]]]:
        """The tracking rows and change rows of each extract.

        An extract begins a few sequences before the end of the one before. The first one lacks the
        change rows of its last change, and another change whose transaction was still open.
        """
        found: list[tuple[list[RawRow], list[RawRow]]] = []
        for number in range(1, batches + 1):
            own = [record for record in self._records if record[0] == number]
            earlier = [record for record in self._records if record[0] < number]
            late = own.pop(-5) if number == 1 else None
            chosen = [*earlier[-OVERLAP:], *own]
            tracking = [row for _, row, _ in chosen]
            changes = [row for _, _, rows in chosen for row in rows]
            if late is not None and own[-1][2]:
                changes = changes[: -len(own[-1][2])]
            found.append((tracking, changes))
        return found

    def _record(
        self,
        event: Event,
        code: int,
        stored: bytes | None,
        partition: int | None,
        images: list[tuple[int, RawRow]],
    ) -> None:
        # numbers have gaps, and those of two tables have nothing to do with each other
        sequence = 10 + 3 * len(self._records) + self._table.number % 7
        row = event.after or event.before or {}
        recid = self._recid(event)
        if partition is None:
            partition = _partition(row[self._table.key]) if self._table.has_partitions else 0
        shared: RawRow = {
            "_Tran-Id": event.transaction_number,
            "_Time-Stamp": event.committed_at,
            "_Change-Sequence": sequence,
        }
        tracking: RawRow = {
            "_Policy-Id": f"policy of table {self._table.number}",
            **shared,
            "_Operation": code,
            "_Change-FieldMap": stored,
            "_Recid": recid,
            "_Source-Table-Number": self._table.number,
            "_Partition-Id": partition,
            "_Tenant-Id": 0,
            "_User-Misc": None,
            "_User-Name": _USERS[event.transaction_number % len(_USERS)],
        }
        split: RawRow = {"_Continuation-Position": 0, "_ArrayIndex": 0, "_Fragment": 0}
        changes = [{**shared, **split, "_Operation": of_row, **image} for of_row, image in images]
        self._records.append(
            (event.batch, {name: tracking[name] for name in TRACKING_TYPES}, changes)
        )

    def _recid(self, event: Event) -> int:
        """The record's number; it stays when the key changes."""
        keys = [(row[self._table.key],) for row in (event.before, event.after) if row]
        if not keys:
            return 0
        recid = self._recids.setdefault(keys[0], 4_000 + 64 * len(self._recids))
        self._recids[keys[-1]] = recid
        return recid

    def _key_columns(self) -> list[str]:
        return [name for name, (col, _) in self._table.columns.items() if col == self._table.key]


def _element(value: Value) -> str:
    """An element of an array as SQL writes it."""
    return "?" if value is None else str(value).replace(";", "~;")


def _partition(key: Value) -> int:
    assert isinstance(key, int)
    return key % PARTITIONS


def _field_map(places: Sequence[int]) -> bytes:
    """Bit n is the n-th field: byte 1 first, least significant bit first, all 256 bytes."""
    bits: dict[int, int] = defaultdict(int)
    for place in places:
        bits[place // 8] |= 1 << place % 8
    return bytes(bits[byte] for byte in range(256))
