"""stage_qlik_change_table and change_mask_fits on a few raw tables, each set up in another way.

What is expected comes from the vendor's page "Change Tables", and is written out here: a mask bit
is a column's place in the table, and so on. A small dbt project holds one staging view per setting;
one run builds them all. If a record has a name, it is in its transaction_id.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from dbt_afterimage.storage.local_relation import local_rows
from tests.functional.dbt_project import DbtFailedError, DbtProject
from tests.log_reader import read_rows

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

ROOT = Path(__file__).parents[2]
SCHEMA = "staging"

# what the columns of a table are, and its records
RawTable = tuple[dict[str, str], list[tuple[Any, ...]]]
Staged = dict[str, Any]

EPOCH = datetime(1970, 1, 1)
PLACED_AT = datetime(2026, 3, 2, 7, 59, 59, 123456)
FIRST_PARTITION = "20260302T080000_20260302T090000"
SECOND_PARTITION = "20260302T090000_20260302T100000"


def seq(number: int = 1, time: str = "2026030208000025") -> str:
    """A change_seq: time to the hundredth of a second, then a counter of 19 digits."""
    return f"{time}{number:019d}"


def seq_in(hours: int) -> str:
    time = datetime.now(timezone.utc) + timedelta(hours=hours)
    return seq(time=f"{time:%Y%m%d%H%M%S}00")


# --- the raw tables

# The seven headers hold the bits 0 to 6, so order_id has bit 7 (0080), status 8 (0100), amount 9
# (0200), placed_at 10 (0400) and notes 11 (0800); the partition holds the place of bit 12.
ORDERS_COLUMNS = {
    "header__change_seq": "string",
    "header__change_oper": "string",
    "header__change_mask": "string",
    "header__stream_position": "string",
    "header__operation": "string",
    "header__transaction_id": "string",
    "header__timestamp": "timestamp",
    "order_id": "bigint",
    "status": "string",
    "amount": "decimal(18,2)",
    "placed_at": "timestamp",
    "notes": "string",
    "header__partition_name": "string",
}
ORDERS_DATA = ["order_id", "status", "amount", "placed_at", "notes"]
ALL_BUT_NOTES = ["order_id", "status", "amount", "placed_at"]
WORDS = {"I": "INSERT", "U": "UPDATE", "D": "DELETE", "B": "BEFOREIMAGE"}

# the masks of updates: what they say, by default and read least significant byte first with the
# first data bit at 2
MASKS: dict[str | None, tuple[list[str] | None, list[str] | None]] = {
    "0100": (["status"], None),
    "0F80": (ORDERS_DATA, None),
    "0f80": (ORDERS_DATA, None),
    "0x0f80": (ORDERS_DATA, None),
    "0X0F80": (ORDERS_DATA, None),
    "F80": (ORDERS_DATA, None),
    "0x180": (["order_id", "status"], None),
    "0000000F80": (ORDERS_DATA, None),
    "00": ([], []),
    "": ([], []),
    None: (None, None),
    # bits of header columns are not data columns
    "0181": (["order_id", "status"], None),
    "1100": (["status"], None),
    # byte 0 is 0x24, bits 2 and 5, or 0x04, bit 2
    "24": ([], ["order_id", "placed_at"]),
    "0400": (["placed_at"], ["order_id"]),
}
MALFORMED_MASKS = ["0G80", "0x0x80", " 0F80", "yes"]
# 13 columns have the bits 0 to 12
TOO_WIDE_MASKS = ["2000", "10000", "800100", "01" + "00" * 128]

BAD_SEQS = {
    None: "null_change_seq",
    "": "malformed_change_seq",
    seq()[:-1]: "malformed_change_seq",
    seq() + "0": "malformed_change_seq",
    seq()[:-1] + "x": "malformed_change_seq",
    " " + seq()[1:]: "malformed_change_seq",
    "-" + seq()[1:]: "malformed_change_seq",
    seq(time="2026023008000000"): "malformed_change_seq",
    seq(time="2026133108000000"): "malformed_change_seq",
    seq(time="2026030224000000"): "malformed_change_seq",
    seq(time="2026030208600000"): "malformed_change_seq",
    seq(time="2026030208006000"): "malformed_change_seq",
    seq(time="0000000000000000"): "malformed_change_seq",
    seq(time="2999010100000000"): "future_change_seq",
    seq_in(hours=26): "future_change_seq",
}

# oper, mask, notes -> whether the notes are known
LOBS: dict[str, tuple[str, str | None, str | None, bool]] = {
    "lob left alone": ("U", "0100", None, False),
    "lob set to null": ("U", "0900", None, True),
    "lob sent without its bit": ("U", "0100", "text", True),
    "lob without a mask": ("U", None, None, False),
    "lob in a before image": ("B", "", None, False),
    "lob sent in a before image": ("B", "", "text", True),
    "lob of an insert": ("I", "0780", None, True),
}


def order(name: str, oper: str | None = "U", mask: str | None = "0100", **others: Any) -> Any:
    """A record of orders whose parts agree, except for what `others` overwrites."""
    record = {
        "header__change_seq": seq(),
        "header__change_oper": oper,
        "header__change_mask": mask,
        "header__stream_position": None,
        "header__operation": WORDS.get(oper or ""),
        "header__transaction_id": name,
        "header__timestamp": EPOCH,
        "order_id": 9007199254740993,
        "status": "new",
        "amount": Decimal("12.50"),
        "placed_at": PLACED_AT,
        "notes": "text",
        "header__partition_name": FIRST_PARTITION,
        **others,
    }
    return tuple(record[column] for column in ORDERS_COLUMNS)


ORDERS: RawTable = (
    ORDERS_COLUMNS,
    [
        order("insert", "I", "0F80", status=None, amount=None),
        order("update", "U", "0300"),
        order("before image", "B", ""),
        order("delete", "D", "0080", status=None, amount=None, placed_at=None, notes=None),
        *(order(f"mask {mask}", "U", mask) for mask in MASKS),
        *(order(f"malformed {mask}", "U", mask) for mask in MALFORMED_MASKS),
        *(order(f"too wide {mask}", "U", mask) for mask in TOO_WIDE_MASKS),
        *(
            order(f"truncate {oper} {mask}", oper, mask, header__operation="TRUNCATE")
            for oper, mask in (("T", None), ("U", "0F80"), (None, "yes"), ("X", "ffffff"))
        ),
        *(order(f"unknown {oper}", oper) for oper in ("X", "i", "", "T", "UU")),
        order("unknown None", None, header__operation="UPDATE"),
        *(order(f"seq {bad}", header__change_seq=bad) for bad in BAD_SEQS),
        order("soon", header__change_seq=seq_in(hours=22)),
        *(order(name, oper, mask, notes=notes) for name, (oper, mask, notes, _) in LOBS.items()),
        order("copy"),
        order("copy", header__partition_name=SECOND_PARTITION),
        order("copy", header__partition_name=None),
    ],
)

# lacks placed_at, has warehouse besides, and spells a name in another way
ORDERS_BASE: RawTable = (
    {
        "ORDER_ID": "int",
        "warehouse": "string",
        "notes": "string",
        "amount": "string",
        "status": "string",
    },
    [(1, "north", None, "12.50", "new"), (2, "south", "text", "a lot", "paid")],
)

# Three headers and the bare partition: the items have the bits 4 to 9.
ITEMS: RawTable = (
    {
        "hdr_change_seq": "string",
        "HDR_change_oper": "string",
        "hdr_change_mask": "binary",
        "partition_name": "string",
        "item_1": "int",
        "item_2": "int",
        "item_3": "int",
        "item_4": "int",
        "item_5": "int",
        "item_6": "int",
    },
    [
        (seq(), "U", None if mask is None else bytes.fromhex(mask), FIRST_PARTITION, *[number] * 6)
        for number, mask in enumerate(
            ["10", "1000", "0002", "F003", "", None, "00", "0004", "10" + "00" * 127, "00" * 129]
        )
    ]
    + [(seq(), "U", b"\x10", SECOND_PARTITION, *[0] * 6)],
)
ALL_ITEMS = [f"item_{number}" for number in range(1, 7)]

# No prefix: six headers, so id has bit 6 and Name bit 7.
BARE: RawTable = (
    {
        "change_seq": "string",
        "change_oper": "string",
        "change_mask": "string",
        "operation": "string",
        "timestamp": "string",
        "partition_name": "string",
        "id": "int",
        "Name": "string",
    },
    [
        (seq(), "I", "c0", "INSERT", "2026-03-02 08:00:00.123456", FIRST_PARTITION, 1, "a"),
        (seq(), "U", "80", "UPDATE", None, FIRST_PARTITION, 2, "b"),
        (seq(), "U", "80", "UPDATE", "never", FIRST_PARTITION, 3, "b"),
        (seq(), "T", None, "TRUNCATE", "never", FIRST_PARTITION, 4, "c"),
    ],
)

# The two headers that are required, and no other.
LEAN: RawTable = (
    {
        "header__change_seq": "string",
        "header__change_oper": "string",
        "first": "int",
        "second": "int",
        "third": "int",
        "note": "string",
    },
    [
        (seq(1), "I", 1, None, 1, None),
        (seq(1), "I", 1, 1, None, None),
        (seq(2), "U", 2, 1, 1, None),
        (seq(2), "U", 3, 1, 1, "text"),
        (seq(3), "T", 4, None, None, None),
    ],
)

TEXT_TYPES = {
    "header__change_seq": "string",
    "header__change_oper": "string",
    "header__change_mask": "string",
    "header__timestamp": "timestamp",
    "header__partition_name": "string",
    "name": "string",
    "number": "bigint",
    "price": "decimal(9,2)",
    "rate": "decimal(38,10)",
    "shipped_on": "date",
    "seen_at": "timestamp",
    "is_open": "boolean",
    "ratio": "double",
    "payload": "binary",
    "local_at": "timestamp_ntz",
}
BAD_TEXTS = [
    ("number", "12x"),
    ("number", ""),
    ("number", "1.5"),
    ("number", "9223372036854775808"),
    ("price", "cheap"),
    # neither too large, nor rounded
    ("price", "10000000.00"),
    ("price", "1.005"),
    ("price", "3E-45"),
    ("price", f"1.{'0' * 40}1"),
    ("price", "1.239\t"),
    ("rate", "1.5E-21"),
    ("rate", "0.12345678915"),
    ("rate", "-1.000000000000000000005"),
    ("rate", "1" * 29),
    ("shipped_on", "2026-02-30"),
    # neither cut, nor filled up
    ("shipped_on", "2026-03-01 10:00"),
    ("shipped_on", "2026-03-01T00:00:01"),
    ("shipped_on", "2026"),
    ("shipped_on", "2026-03"),
    ("seen_at", "noon"),
    ("seen_at", "2026"),
    ("seen_at", "10:00"),
    ("seen_at", "T10:00:00"),
    ("seen_at", "2026-03-02 08:00:00.1234567"),
    ("seen_at", "2026-03-02T08:00:00.000000001Z"),
    ("is_open", "maybe"),
    ("ratio", "half"),
    ("ratio", "1e400"),
    ("payload", "DEADBEE"),
    ("local_at", "2026-03-02T10:00:00+02:00"),
    ("local_at", "2026-03-02 10:00:00 CET"),
    ("payload", "0xyz"),
    ("payload", "deadbeeg"),
    ("header__timestamp", "never"),
]


def texts(name: str, **others: str | None) -> tuple[str | None, ...]:
    """A record of the table in which every column is text; NULL where `others` says nothing."""
    record: dict[str, str | None] = {
        "header__change_seq": seq(),
        "header__change_oper": "I",
        "header__partition_name": FIRST_PARTITION,
        "name": name,
        **others,
    }
    return tuple(record.get(column) for column in TEXT_TYPES)


TEXTS: RawTable = (
    dict.fromkeys(TEXT_TYPES, "string"),
    [
        texts(
            "good",
            # five headers: name has bit 5, payload bit 13
            header__change_mask="2020",
            header__timestamp="2026-03-02 07:59:59.5",
            number="9007199254740993",
            price="-12.5",
            rate="0.1234567891",
            shipped_on="2026-03-02",
            seen_at="2026-03-02 08:00:00.123456",
            is_open="true",
            ratio="0.1",
            payload="0xDEADbeef",
        ),
        texts("nulls"),
        texts(
            "zeros",
            price="1.500",
            rate="0E-20",
            shipped_on="2026-03-02 00:00:00.000",
            seen_at="2026-3-2 8:00:00.100000000",
            local_at="2026-03-02T10:00:00Z",
            ratio="Infinity",
            payload="00FF",
        ),
        texts("empty", payload=""),
        *(texts(f"{column} {text}", **{column: text}) for column, text in BAD_TEXTS),
    ],
)

# Raw columns that have a type already, and are declared with a smaller one.
DECLARED_TYPES = {"price": "decimal(38,2)", "rate": "decimal(5,2)", "shipped_on": "date"}
TYPED: RawTable = (
    {
        "header__change_seq": "string",
        "header__change_oper": "string",
        "name": "string",
        "price": "decimal(38,10)",
        "rate": "decimal(9,4)",
        "shipped_on": "timestamp",
    },
    [
        (seq(), "I", name, price, rate, shipped_on)
        for name, price, rate, shipped_on in (
            ("good", Decimal("1" * 28 + ".25"), Decimal("1.5"), datetime(2026, 3, 2)),
            ("nulls", None, None, None),
            ("price", Decimal("0.005"), None, None),
            ("price carried", Decimal("9" * 28 + ".999"), None, None),
            ("rate", None, Decimal("1.505"), None),
            ("rate too large", None, Decimal(1000), None),
            ("shipped_on", None, None, datetime(2026, 3, 2, 0, 0, 0, 1)),
        )
    ],
)

# Seven headers and nine data columns: bits 7 to 15, two bytes in either order.
FITS_COLUMNS = {
    **{name: ORDERS_COLUMNS[name] for name in list(ORDERS_COLUMNS)[:7]},
    **{f"c{number}": "int" for number in range(1, 10)},
}


def fits(number: int, oper: str, mask: str | None, **changed: int) -> tuple[Any, ...]:
    """A record whose data columns are all `number`, except the changed ones."""
    data = {f"c{place}": number for place in range(1, 10)}
    headers = (seq(number), oper, mask, None, WORDS[oper], None, None)
    return headers + tuple({**data, **changed}.values())


FITS: RawTable = (
    FITS_COLUMNS,
    [
        fits(1, "I", "FF80"),
        fits(2, "B", ""),
        fits(2, "U", "0100", c2=0),
        fits(3, "B", "00"),
        fits(3, "U", "8000", c9=0),
        # a changed key
        fits(4, "B", None),
        fits(4, "U", "0080", c1=0),
        fits(5, "D", "0080"),
        # c2 is filled again by the replication tool; c5 is a LOB
        fits(6, "B", ""),
        fits(6, "U", "0300", c3=0, c5=0),
        # says nothing
        fits(7, "U", None),
        fits(8, "U", "0400"),
        # rejected anyway
        fits(9, "I", "yes"),
        fits(10, "U", "10000"),
    ],
)

# a delete whose mask has the bit of c2, not that of the key
ODD: RawTable = (FITS_COLUMNS, [*FITS[1], fits(11, "D", "0100")])

RAW = {
    "orders__ct": ORDERS,
    "orders": ORDERS_BASE,
    "items__ct": ITEMS,
    "bare__ct": BARE,
    "lean__ct": LEAN,
    "texts__ct": TEXTS,
    "typed__ct": TYPED,
    "fits__ct": FITS,
    "odd__ct": ODD,
}

# --- the dbt project

FROZEN = {"kind": "frozen", "load_id": "2026-03-02", "loaded_at": "2026-03-02 07:30:00"}
# view -> raw table, base, settings
VIEWS: dict[str, tuple[str, str | None, dict[str, Any]]] = {
    "orders": ("orders__ct", "orders", {"lob_columns": ["notes"], "base": FROZEN}),
    "orders_lsb_first": (
        "orders__ct",
        None,
        {"mask_byte_order": "lsb_first", "mask_first_data_bit": 2},
    ),
    # status has moved, and a dropped column keeps its place; the LOB has no bit at all
    "orders_moved": (
        "orders__ct",
        "orders",
        {
            "lob_columns": ["notes"],
            "mask_columns": ["ORDER_ID", "dropped", "amount", "placed_at", "status"],
            "base": {"kind": "live", "position": seq(7)},
        },
    ),
    "items": ("items__ct", None, {"header_prefix": "hdr_"}),
    "items_msb_first": (
        "items__ct",
        None,
        {"header_prefix": "hdr_", "mask_byte_order": "msb_first"},
    ),
    "bare": ("bare__ct", None, {"header_prefix": ""}),
    "lean": ("lean__ct", None, {"lob_columns": ["note"]}),
    "texts": ("texts__ct", None, {}),
    "typed": ("typed__ct", None, {}),
    "fits": ("fits__ct", None, {"key": ["c1"], "lob_columns": ["c5"]}),
    "fits_not_lsb": (
        "fits__ct",
        None,
        {"key": ["c1"], "lob_columns": ["c5"], "mask_byte_order": "lsb_first"},
    ),
    "fits_not_6": (
        "fits__ct",
        None,
        {"key": ["c1"], "lob_columns": ["c5"], "mask_first_data_bit": 6},
    ),
    "odd": ("odd__ct", None, {"key": ["c1"], "lob_columns": ["c5"]}),
    "fits_no_lobs": ("fits__ct", None, {"key": ["c1"]}),
    "odd_refused": ("odd__ct", None, {"key": ["c1"], "lob_columns": ["c5"]}),
}
MASK_TESTS: dict[str, list[Any]] = {
    **{view: ["change_mask_fits"] for view in ("fits", "fits_not_lsb", "fits_not_6", "odd")},
    **{
        view: [{"change_mask_fits": {"arguments": {"tolerated_share": 0}}}]
        for view in ("fits_no_lobs", "odd_refused")
    },
}


def write_project(folder: Path) -> Path:
    """A dbt project with this project's macros, and a source table and a model per view."""
    models = folder / "models"
    models.mkdir(parents=True)
    (folder / "macros").symlink_to(ROOT / "macros", target_is_directory=True)
    project = {
        "name": "afterimage",
        "profile": "afterimage",
        "macro-paths": ["macros"],
        "models": {"afterimage": {"+materialized": "staging_view"}},
    }
    tables: list[dict[str, Any]] = [{"name": "orders"}]
    properties: list[dict[str, Any]] = []
    for view, (raw, base, settings) in VIEWS.items():
        table: dict[str, Any] = {"name": f"{view}__ct", "identifier": raw}
        table["config"] = {"meta": {"afterimage": settings}}
        declared = {"texts": TEXT_TYPES, "typed": DECLARED_TYPES}.get(view, {})
        table["columns"] = [{"name": name, "data_type": kind} for name, kind in declared.items()]
        tables.append(table)
        of_base = f", base='{base}'" if base else ""
        (models / f"stg_{view}.sql").write_text(
            f"{{{{ stage_qlik_change_table('raw', '{view}__ct'{of_base}) }}}}\n", encoding="utf-8"
        )
        properties.append({"name": f"stg_{view}", "data_tests": MASK_TESTS.get(view, [])})
    meta = {"afterimage": {"system": "qlik_change_table"}}
    source = {"name": "raw", "schema": SCHEMA, "config": {"meta": meta}, "tables": tables}
    files = {
        "dbt_project.yml": project,
        "models/models.yml": {"version": 2, "sources": [source], "models": properties},
    }
    for name, content in files.items():
        (folder / name).write_text(yaml.safe_dump(content), encoding="utf-8")
    return folder


class Project:
    """The staging views, as plain rows, and what change_mask_fits finds on them."""

    def __init__(self, spark: SparkSession, project: DbtProject) -> None:
        self._spark = spark
        self._project = project
        self._views: dict[str, list[Staged]] = {}
        project("run")
        compiled = project("compile", "--select", "test_type:generic")
        self._tests = {
            result.node.attached_node.split(".")[-1]: result.node.compiled_code
            for result in compiled.results
            if result.node.resource_type == "test"
        }

    def rows(self, view: str) -> list[Staged]:
        if view not in self._views:
            self._views[view] = read_rows(self._spark.table(f"{SCHEMA}.stg_{view}"))
        return self._views[view]

    def row(self, view: str, name: Any, column: str = "transaction_id") -> Staged:
        """The record with this name, or with another column's value."""
        (row,) = [row for row in self.rows(view) if row[column] == name]
        return row

    def run_tests(self, view: str) -> None:
        self._project("test", "--select", f"stg_{view}")

    def misfits(self, view: str) -> list[Row]:
        return self._spark.sql(self._tests[f"stg_{view}"]).collect()


@pytest.fixture(scope="module")
def staged(
    spark: SparkSession,
    table_format: str,
    make_dbt_project: Callable[..., DbtProject],
    tmp_path_factory: pytest.TempPathFactory,
) -> Project:
    spark.sql(f"create schema if not exists {SCHEMA}")
    for name, (columns, rows) in RAW.items():
        types = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        frame = local_rows(spark, rows, types).coalesce(1)
        frame.writeTo(f"{SCHEMA}.{name}").using(table_format).createOrReplace()
    folder = write_project(tmp_path_factory.mktemp("project") / "staging")
    return Project(spark, make_dbt_project(folder, schema=SCHEMA))


# --- operations, times, and the rest of the header


@pytest.mark.parametrize(
    ("name", "oper", "changed"),
    [
        ("insert", "I", ORDERS_DATA),
        ("update", "U", ["status", "amount"]),
        ("delete", "D", ["order_id"]),
        ("before image", "B", None),
    ],
)
def test_operations(staged: Project, name: str, oper: str, changed: list[str] | None) -> None:
    row = staged.row("orders", name)
    assert row["change_oper"] == oper
    # no bit is set in the mask of a before image
    assert (row["declared_changed_columns"] or None) == changed
    assert row["reject_reason"] is None
    assert row["order_id"] == 9007199254740993


def test_every_raw_record_is_staged_once(staged: Project) -> None:
    for view, (raw, base, _) in VIEWS.items():
        of_base = len(RAW[base][1]) if base else 0
        assert len(staged.rows(view)) == len(RAW[raw][1]) + of_base, view


def test_the_header(staged: Project) -> None:
    row = staged.row("orders", "insert")
    assert row["change_seq"] == seq()
    assert row["changed_at"] == datetime(2026, 3, 2, 8, 0, 0, 250_000)
    # its timestamp, 1970, means a time that the source does not know yet
    assert row["source_timestamp"] is None
    assert row["arrival"] == FIRST_PARTITION
    empty = ("transaction_event", "known_columns", "truncate_scope", "load_id")
    assert [row[column] for column in empty] == [None] * 4
    assert list(row)[-5:] == ORDERS_DATA
    assert (row["status"], row["placed_at"], row["notes"]) == (None, PLACED_AT, "text")


@pytest.mark.parametrize("name", ["T None", "U 0F80", "None yes", "X ffffff"])
def test_a_truncate_is_found_by_its_operation(staged: Project, name: str) -> None:
    """Neither its letter nor what else it holds is documented, so nothing of it is rejected."""
    row = staged.row("orders", f"truncate {name}")
    assert (row["change_oper"], row["reject_reason"]) == ("T", None)
    assert row["declared_changed_columns"] is None
    assert row["truncate_scope"] is None
    assert [row[column] for column in ORDERS_DATA] == [None] * 5


@pytest.mark.parametrize("oper", ["X", "i", "", "T", "UU", None])
def test_unknown_operations(staged: Project, oper: str | None) -> None:
    row = staged.row("orders", f"unknown {oper}")
    assert (row["change_oper"], row["reject_reason"]) == (None, "unknown_operation")
    assert json.loads(row["raw_record"])["header__change_oper"] == oper


@pytest.mark.parametrize(
    ("bad", "reason"),
    BAD_SEQS.items(),
    # not the positions themselves: one of them is made of the time, which differs by worker
    ids=[f"{number}-{reason}" for number, reason in enumerate(BAD_SEQS.values())],
)
def test_bad_positions(staged: Project, bad: str | None, reason: str) -> None:
    row = staged.row("orders", f"seq {bad}")
    assert (row["change_seq"], row["reject_reason"]) == (bad, reason)


def test_a_position_of_today_is_not_in_the_future(staged: Project) -> None:
    assert staged.row("orders", "soon")["reject_reason"] is None


# --- masks


@pytest.mark.parametrize(("mask", "expected"), MASKS.items(), ids=str)
def test_text_masks(
    staged: Project, mask: str | None, expected: tuple[list[str] | None, list[str] | None]
) -> None:
    row = staged.row("orders", f"mask {mask}")
    assert (row["declared_changed_columns"], row["reject_reason"]) == (expected[0], None)
    if expected[1] is not None:
        row = staged.row("orders_lsb_first", f"mask {mask}")
        assert (row["declared_changed_columns"], row["reject_reason"]) == (expected[1], None)


@pytest.mark.parametrize(
    ("kind", "masks"), [("malformed", MALFORMED_MASKS), ("too wide", TOO_WIDE_MASKS)]
)
def test_text_masks_that_cannot_be_meant(staged: Project, kind: str, masks: list[str]) -> None:
    reasons = {staged.row("orders", f"{kind} {mask}")["reject_reason"] for mask in masks}
    assert reasons == {{"malformed": "malformed_mask", "too wide": "mask_too_wide"}[kind]}


def test_a_mask_too_wide_by_another_reading(staged: Project) -> None:
    """Two headers and five columns have the bits 0 to 6; 0x80 in byte 0 is bit 7."""
    assert staged.row("orders_lsb_first", "mask 0F80")["reject_reason"] == "mask_too_wide"
    assert staged.row("orders_lsb_first", "delete")["reject_reason"] == "mask_too_wide"


@pytest.mark.parametrize(
    ("mask", "changed"),
    [
        ("0F80", {"order_id", "amount", "placed_at", "status"}),
        ("0100", set()),
        ("0400", {"placed_at"}),
        ("0181", {"order_id"}),
    ],
)
def test_mask_columns(staged: Project, mask: str, changed: set[str]) -> None:
    row = staged.row("orders_moved", f"mask {mask}")
    assert set(row["declared_changed_columns"]) == changed
    # five columns, listed: nothing has bit 12, or 13
    assert staged.row("orders_moved", "mask 1100")["reject_reason"] == "mask_too_wide"


@pytest.mark.parametrize(
    ("view", "number", "changed", "reason"),
    [
        ("items", 0, ["item_1"], None),
        ("items", 1, ["item_1"], None),
        ("items", 2, ["item_6"], None),
        ("items", 3, ALL_ITEMS, None),
        ("items", 4, [], None),
        ("items", 5, None, None),
        ("items", 6, [], None),
        ("items", 7, [], "mask_too_wide"),
        # the vendor has varbinary(128)
        ("items", 8, ["item_1"], None),
        ("items", 9, [], "mask_too_wide"),
        ("items_msb_first", 0, ["item_1"], None),
        ("items_msb_first", 2, [], None),
        ("items_msb_first", 7, [], None),
        ("items_msb_first", 4, [], None),
    ],
)
def test_binary_masks(
    staged: Project, view: str, number: int, changed: list[str] | None, reason: str | None
) -> None:
    for row in staged.rows(view):
        if row["item_1"] == number:
            assert (row["declared_changed_columns"], row["reject_reason"]) == (changed, reason)


# --- columns that are unknown


@pytest.mark.parametrize("name", LOBS)
def test_lob_columns(staged: Project, name: str) -> None:
    is_known = LOBS[name][3]
    assert staged.row("orders", name)["known_columns"] == (None if is_known else ALL_BUT_NOTES)
    # without lob_columns every value is what it is
    assert staged.row("orders_lsb_first", name)["known_columns"] is None


@pytest.mark.parametrize(
    ("name", "is_known"),
    [("lob set to null", False), ("lob sent without its bit", True), ("lob of an insert", True)],
)
def test_a_lob_without_a_bit(staged: Project, name: str, is_known: bool) -> None:
    known = staged.row("orders_moved", name)["known_columns"]
    assert known == (None if is_known else ALL_BUT_NOTES)


# --- other sets of header columns


def test_another_prefix_and_a_bare_partition(staged: Project) -> None:
    row = staged.row("items", 3, "item_1")
    assert (row["change_seq"], row["change_oper"]) == (seq(), "U")
    assert row["arrival"] == FIRST_PARTITION
    assert (row["source_timestamp"], row["transaction_id"]) == (None, None)
    assert list(row)[-6:] == ALL_ITEMS
    assert "partition_name" not in row
    assert json.loads(row["raw_record"])["partition_name"] == FIRST_PARTITION


def test_an_empty_prefix(staged: Project) -> None:
    first, second = (staged.row("bare", number, "id") for number in (1, 2))
    assert first["source_timestamp"] == datetime(2026, 3, 2, 8, 0, 0, 123456)
    assert first["arrival"] == FIRST_PARTITION
    assert first["declared_changed_columns"] == ["id", "Name"]
    assert second["declared_changed_columns"] == ["Name"]
    assert (second["source_timestamp"], second["reject_reason"]) == (None, None)
    assert list(first)[-2:] == ["id", "Name"]
    assert staged.row("bare", 3, "id")["reject_reason"] == "uncastable_value:timestamp"
    truncate = staged.row("bare", "T", "change_oper")
    assert (truncate["reject_reason"], truncate["id"], truncate["Name"]) == (None, None, None)


def test_only_the_required_headers(staged: Project) -> None:
    row = staged.row("lean", 2, "first")
    assert (row["change_oper"], row["reject_reason"]) == ("U", None)
    assert row["changed_at"] == datetime(2026, 3, 2, 8, 0, 0, 250_000)
    missing = ("source_timestamp", "transaction_id", "arrival", "declared_changed_columns")
    assert [row[column] for column in missing] == [None] * 4
    # without a mask nothing says that the LOB was set to NULL
    assert row["known_columns"] == ["first", "second", "third"]
    assert staged.row("lean", 3, "first")["known_columns"] is None
    # without `operation` no truncate can be distinguished from an unknown letter
    assert staged.row("lean", 4, "first")["reject_reason"] == "unknown_operation"


# --- declared types


def test_text_becomes_its_declared_type(staged: Project) -> None:
    row = staged.row("texts", "good", "name")
    assert row["reject_reason"] is None
    assert row["declared_changed_columns"] == ["name", "payload"]
    assert row["source_timestamp"] == datetime(2026, 3, 2, 7, 59, 59, 500_000)
    assert {name: row[name] for name in list(TEXT_TYPES)[5:]} == {
        "name": "good",
        "local_at": None,
        "number": 9007199254740993,
        "price": Decimal("-12.50"),
        "rate": Decimal("0.1234567891"),
        "shipped_on": date(2026, 3, 2),
        "seen_at": datetime(2026, 3, 2, 8, 0, 0, 123456),
        "is_open": True,
        "ratio": 0.1,
        "payload": b"\xde\xad\xbe\xef",
    }
    # the raw record is as it came
    assert json.loads(row["raw_record"])["payload"] == "0xDEADbeef"


def test_values_that_look_wrong_and_are_not(staged: Project) -> None:
    nulls, zeros, empty = (staged.row("texts", n, "name") for n in ("nulls", "zeros", "empty"))
    assert [row["reject_reason"] for row in (nulls, zeros, empty)] == [None] * 3
    assert [nulls[name] for name in list(TEXT_TYPES)[6:]] == [None] * 9
    assert (zeros["price"], zeros["rate"]) == (Decimal("1.50"), Decimal(0))
    assert zeros["shipped_on"] == date(2026, 3, 2)
    assert zeros["seen_at"] == datetime(2026, 3, 2, 8, 0, 0, 100_000)
    assert zeros["local_at"] == datetime(2026, 3, 2, 10)
    assert zeros["ratio"] == math.inf
    assert (zeros["payload"], empty["payload"]) == (b"\0\xff", b"")


@pytest.mark.parametrize(("column", "text"), BAD_TEXTS)
def test_a_value_that_does_not_cast_is_rejected(staged: Project, column: str, text: str) -> None:
    row = staged.row("texts", f"{column} {text}", "name")
    assert row["reject_reason"] == f"uncastable_value:{column}"
    assert json.loads(row["raw_record"])[column] == text


def test_a_value_that_does_not_fit_a_smaller_type_is_rejected(staged: Project) -> None:
    good = staged.row("typed", "good", "name")
    assert (good["price"], good["rate"], good["shipped_on"]) == (
        Decimal("1" * 28 + ".25"),
        Decimal("1.50"),
        date(2026, 3, 2),
    )
    reasons = {row["name"]: row["reject_reason"] for row in staged.rows("typed")}
    assert reasons == {
        "good": None,
        "nulls": None,
        "price": "uncastable_value:price",
        "price carried": "uncastable_value:price",
        "rate": "uncastable_value:rate",
        "rate too large": "uncastable_value:rate",
        "shipped_on": "uncastable_value:shipped_on",
    }


# --- the base table


def test_a_frozen_base(staged: Project) -> None:
    good, bad = (staged.row("orders", number, "order_id") for number in (1, 2))
    for row in (good, bad):
        assert (row["change_oper"], row["load_id"]) == ("L", "2026-03-02")
        assert row["changed_at"] == datetime(2026, 3, 2, 7, 30)
        empty = ("change_seq", "arrival", "transaction_id", "source_timestamp", "placed_at")
        assert [row[column] for column in empty] == [None] * 5
        # placed_at is unknown, not NULL
        assert row["known_columns"] == ["order_id", "status", "amount", "notes"]
        assert "warehouse" not in row
    assert (good["status"], good["amount"], good["notes"]) == ("new", Decimal("12.50"), None)
    assert (good["reject_reason"], bad["reject_reason"]) == (None, "uncastable_value:amount")
    assert json.loads(bad["raw_record"]) == {
        "ORDER_ID": 2,
        "warehouse": "south",
        "notes": "text",
        "amount": "a lot",
        "status": "paid",
    }


def test_a_base_with_a_position(staged: Project) -> None:
    row = staged.row("orders_moved", 1, "order_id")
    assert (row["change_seq"], row["changed_at"]) == (seq(7), None)
    assert (row["change_oper"], row["load_id"]) == ("L", "initial")


# --- what identifies a record, and keeps it


def test_copies_in_two_partitions_have_one_hash(staged: Project) -> None:
    copies = [row for row in staged.rows("orders") if row["transaction_id"] == "copy"]
    assert {row["arrival"] for row in copies} == {FIRST_PARTITION, SECOND_PARTITION, None}
    assert len({row["record_hash"] for row in copies}) == 1
    copies = [row for row in staged.rows("items") if row["item_1"] == 0]
    assert {row["arrival"] for row in copies} == {FIRST_PARTITION, SECOND_PARTITION}
    assert len({row["record_hash"] for row in copies}) == 1


def test_other_records_have_other_hashes(staged: Project) -> None:
    """(NULL, 1) is not (1, NULL), and a mask of NULL is not an empty one."""
    for view in ("orders", "items", "lean", "texts", "fits"):
        rows = [row for row in staged.rows(view) if row["transaction_id"] != "copy"]
        contents = {
            json.dumps({**json.loads(row["raw_record"]), "partition_name": None}) for row in rows
        }
        assert len({row["record_hash"] for row in rows}) == len(contents), view


def test_a_raw_record_keeps_nulls_and_microseconds(staged: Project) -> None:
    record = json.loads(staged.row("orders", "insert")["raw_record"])
    assert list(record) == list(ORDERS_COLUMNS)
    times = [
        datetime.fromisoformat(record.pop(name).replace("Z", "+00:00"))
        for name in ("placed_at", "header__timestamp")
    ]
    assert times == [time.replace(tzinfo=timezone.utc) for time in (PLACED_AT, EPOCH)]
    assert record == {
        "header__change_seq": seq(),
        "header__change_oper": "I",
        "header__change_mask": "0F80",
        "header__stream_position": None,
        "header__operation": "INSERT",
        "header__transaction_id": "insert",
        "order_id": 9007199254740993,
        "status": None,
        "amount": None,
        "notes": "text",
        "header__partition_name": FIRST_PARTITION,
    }


# --- change_mask_fits


def test_change_mask_fits_passes(staged: Project) -> None:
    assert staged.misfits("fits") == []


@pytest.mark.parametrize(
    ("view", "misfits", "first", "fitting"),
    [
        # the insert, four updates and the delete; read so, the last mask is not too wide
        ("fits_not_lsb", "6 of 8", f"an insert at change_seq {seq(1)}", 7),
        # the update of c2, the changed key and the delete; three masks with bit 15 are rejected
        ("fits_not_6", "6 of 8", f"an update at change_seq {seq(2)}", 7),
    ],
)
def test_change_mask_fits_says_which_setting_fits(
    staged: Project, view: str, misfits: str, first: str, fitting: int
) -> None:
    (row,) = staged.misfits(view)
    assert row["what_is_wrong"] == (
        f"{misfits} change masks of raw.{view}__ct do not fit the settings, the first of {first}; "
        f"{fitting} fit mask_byte_order msb_first and mask_first_data_bit 7. Fix: set these two in "
        "its `meta.afterimage`"
    )


def test_change_mask_fits_tolerates_one_odd_record(staged: Project) -> None:
    assert staged.misfits("odd") == []
    (row,) = staged.misfits("odd_refused")
    assert row["what_is_wrong"] == (
        "1 of 8 change masks of raw.odd_refused__ct do not fit the settings, the first of a delete "
        f"at change_seq {seq(11)}; no other settings fit more. Fix: if the source writes such "
        "masks, raise `tolerated_share` of this test"
    )


def test_change_mask_fits_names_likely_large_objects(staged: Project) -> None:
    (row,) = staged.misfits("fits_no_lobs")
    assert row["what_is_wrong"].endswith(
        "; no update sets the bit of c5, which some change. Fix: if these are large objects, name "
        "them in `lob_columns`"
    )


def test_a_data_test_says_what_is_wrong(
    staged: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(DbtFailedError, match="Got 1 result"):
        staged.run_tests("odd_refused")
    assert "do not fit the settings, the first of a delete" in capsys.readouterr().out
    staged.run_tests("odd")
