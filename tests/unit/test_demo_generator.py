"""The demo's data shows every feature that it promises, and its truth follows from its events."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from afterimage_demo import masks
from afterimage_demo.database import Event
from afterimage_demo.generate import DemoData, generate
from afterimage_demo.tables import TABLES, Key, Row, Table
from afterimage_demo.values import AWKWARD_TEXTS, line_amount

RawRow = dict[str, Any]

SOURCES = Path(__file__).parents[2] / "demo/models/staging/qlik/_qlik__sources.yml"
SEQ = "header__change_seq"
OPER = "header__change_oper"
MASK = "header__change_mask"


@pytest.fixture(scope="module")
def data() -> DemoData:
    return generate()


def records(data: DemoData, table: str, *batches: int) -> list[RawRow]:
    """The change records of a table, of all batches or of these."""
    return [
        row
        for batch in data.batches
        if not batches or batch.number in batches
        for row in batch.tables[f"{table}__ct"].to_pylist()
    ]


def accepted(data: DemoData, table: str) -> list[RawRow]:
    """The change records of a table that are neither malformed nor conflict with another one."""
    rejected = {reject.change_seq for reject in data.expected_rejects if reject.table == table}
    return [row for row in records(data, table) if row[SEQ] not in rejected]


def events_of(data: DemoData, table: str, oper: str) -> list[Event]:
    return [event for event in data.events if event.table == table and event.oper == oper]


def key_changes(data: DemoData) -> list[tuple[Event, int, int]]:
    """Customers' key changes: the event, the old key and the new one."""
    return [
        (event, event.before["customer_id"], event.after["customer_id"])  # type: ignore[misc]
        for event in events_of(data, "customers", "U")
        if event.before and event.after
        if event.before["customer_id"] != event.after["customer_id"]
    ]


def changed(event: Event) -> set[str]:
    assert event.before is not None
    assert event.after is not None
    return {name for name, value in event.after.items() if value != event.before[name]}


# -- an independent decoder of masks ---------------------------------------------------------


def ordinals(mask: str | bytes | None) -> set[int]:
    """1-based ordinals of the set bits, read bit by bit from the vendor's description."""
    if mask is None:
        return set()
    if isinstance(mask, str):
        digits = mask.lower().removeprefix("0x")
        return {
            4 * place + bit + 1
            for place, digit in enumerate(reversed(digits))
            for bit in range(4)
            if int(digit, 16) & (1 << bit)
        }
    return {
        8 * place + bit + 1
        for place, byte in enumerate(mask)
        for bit in range(8)
        if byte & (1 << bit)
    }


def marked(table: Table, row: RawRow) -> set[str]:
    return {list(row)[ordinal - 1] for ordinal in ordinals(row[MASK])}


def test_captured_mask_is_decoded_and_written_as_documented() -> None:
    assert ordinals("008080") == {8, 16}
    assert masks.message_hex(masks.bits_of({8, 16}), 16) == "008080"
    assert masks.trimmed_bytes(masks.bits_of({8, 16}), 16) == b"\x80\x80"


@pytest.mark.parametrize(
    "form",
    [
        masks.full_hex,
        masks.short_hex,
        masks.message_hex,
        masks.lower_hex,
        masks.prefixed_hex,
        masks.trimmed_bytes,
        masks.padded_bytes,
        masks.widest_bytes,
    ],
)
def test_every_form_holds_the_same_bits_at_every_width(form: masks.MaskForm) -> None:
    for width in range(1, 131):
        for expected in (set(), {1}, {width}, set(range(1, width + 1, 3))):
            assert ordinals(form(masks.bits_of(expected), width)) == expected


def test_masks_name_the_columns_that_the_operation_says(data: DemoData) -> None:
    for name, table in TABLES.items():
        columns = {column.name for column in table.columns}
        lobs = set(table.lob_columns)
        by_seq = {event.change_seq: event for event in data.events if event.table == name}
        for row in accepted(data, name):
            event = by_seq[row[SEQ]]
            expected = {
                "I": columns - lobs,
                "U": changed(event) - lobs if row[OPER] == "U" else set(),
                "D": set(table.key),
            }.get(row[OPER], set())
            if row[OPER] == "I" and table.masks_skip_nulls:
                assert event.after is not None
                expected = {column for column in expected if event.after[column] is not None}
            assert marked(table, row) == expected


def test_masks_take_every_form(data: DemoData) -> None:
    forms: dict[str, set[object]] = {
        name: {row[MASK] for row in accepted(data, name) if row[OPER] != "B"} for name in TABLES
    }
    assert all(re.fullmatch("[0-9A-F]{6}", str(mask)) for mask in forms["customers"])
    assert {2, 5, 6} == {len(str(mask)) for mask in forms["products"]}
    assert all(isinstance(mask, bytes) and mask[-1:] != b"\0" for mask in forms["orders"])
    assert any(str(mask).startswith("0x") for mask in forms["order_items"])
    assert any(str(mask).islower() and str(mask)[1] != "x" for mask in forms["order_items"])
    widths = {len(mask) for mask in forms["shipments"] if isinstance(mask, bytes)}
    assert {11, 128} < widths
    before_images = {row[MASK] for row in accepted(data, "orders") if row[OPER] == "B"}
    assert before_images == {None, b""}


# -- the data as a whole ---------------------------------------------------------------------


def test_same_arguments_give_the_same_data(data: DemoData) -> None:
    again = generate()
    assert again.events == data.events
    assert again.expected_rejects == data.expected_rejects
    for batch, other in zip(data.batches, again.batches, strict=True):
        assert all(batch.tables[name].equals(other.tables[name]) for name in batch.tables)
    assert generate(seed=8).events != data.events


def test_sizes_grow_with_scale(data: DemoData) -> None:
    loaded = {name: len(states[0]) for name, states in data.truth.items()}
    assert loaded == {
        "customers": 300,
        "products": 200,
        "orders": 1_500,
        "order_items": 4_000,
        "shipments": 400,
    }
    assert 2_400 < sum(len(records(data, name)) for name in TABLES) < 2_700
    tripled = generate(scale=3, batches=1)
    assert {name: len(states[0]) for name, states in tripled.truth.items()} == {
        name: 3 * rows for name, rows in loaded.items()
    }


@pytest.mark.parametrize("seed", range(5))
def test_any_seed_and_number_of_batches_will_do(seed: int) -> None:
    assert len(generate(seed=seed, batches=4).batches) == 4


def test_nothing_to_generate_is_refused() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        generate(scale=0)
    with pytest.raises(ValueError, match="1 or more"):
        generate(batches=0)


def test_raw_tables_have_the_declared_columns_and_types(data: DemoData) -> None:
    (source,) = yaml.safe_load(SOURCES.read_text(encoding="utf-8"))["sources"]
    declared = {entry["name"]: entry for entry in source["tables"]}
    assert declared.keys() == data.batches[0].tables.keys()
    for name, table in TABLES.items():
        columns = {column.name: column.data_type for column in table.columns}
        types = table.raw_types(with_headers=True)
        headers = {column: types[column] for column in table.header_columns}
        for raw, expected in ((f"{name}__ct", headers | columns), (name, columns)):
            entries = declared[raw]["columns"]
            assert {entry["name"]: entry["data_type"] for entry in entries} == expected
            assert list(expected) == data.batches[0].tables[raw].column_names
            assert all(entry["description"] for entry in [declared[raw], *entries])
        settings = declared[f"{name}__ct"]["config"]["meta"]["afterimage"]
        assert tuple(settings["key"]) == table.key
        assert settings["base"]["kind"] == table.base
        assert settings.get("before_images", True) == table.before_images
        assert tuple(settings.get("lob_columns", ())) == table.lob_columns
        assert tuple(settings.get("ignore", ())) == table.filled_columns


def test_values_land_with_their_types(data: DemoData) -> None:
    schema = data.batches[0].tables["shipments__ct"].schema
    assert schema.field("header__timestamp").type == pa.timestamp("us", tz="UTC")
    assert schema.field("declared_value").type == pa.decimal128(18, 2)
    assert schema.field("promised_on").type == pa.date32()
    assert schema.field("label_checksum").type == pa.binary()
    assert len(TABLES["shipments"].columns) == 75
    items = data.batches[0].tables["order_items__ct"].schema
    assert set(items.types) == {pa.string()}


def test_awkward_values_are_in_the_change_tables(data: DemoData) -> None:
    texts = {row["remark"] for row in records(data, "order_items")}
    assert texts >= set(AWKWARD_TEXTS)
    customers = records(data, "customers")
    assert min(row["order_id"] for row in accepted(data, "orders")) > 2**53
    assert {b"", b"\x00", None} < {row["signature_image"] for row in records(data, "shipments")}
    loaded = data.truth["customers"][0].values()
    assert Decimal("9999999999999999.99") in {row["credit_limit"] for row in loaded}
    assert min(row["created_at"] for row in loaded if isinstance(row["created_at"], datetime)) < (
        datetime(1970, 1, 1, tzinfo=timezone.utc)
    )
    assert any(row["created_at"].microsecond for row in customers if row["created_at"])
    assert date(9999, 12, 31) in {row["required_on"] for row in data.truth["orders"][0].values()}
    assert {True, False, None} == {row["is_active"] for row in customers}


# -- order, pairs and repetitions ------------------------------------------------------------


def test_positions_are_unique_ascending_and_well_formed(data: DemoData) -> None:
    positions = [event.change_seq for event in data.events]
    assert positions == sorted(set(positions))
    assert all(re.fullmatch(r"\d{35}", position) for position in positions)
    assert {position[:8] for position in positions} == {"20260302", "20260303"}
    assert max(Counter(position[:16] for position in positions).values()) > 1


def late_in(data: DemoData, name: str) -> set[str]:
    """Positions of a table that only the second batch brings, though they are of the first."""
    earlier = {row[SEQ] for row in records(data, name, 1)}
    own = {event.change_seq for event in data.events if event.batch == 1}
    return {row[SEQ] for row in records(data, name, 2)} & own - earlier


def test_one_update_is_late(data: DemoData) -> None:
    assert {name for name in TABLES if late_in(data, name)} == {"orders"}
    (late,) = late_in(data, "orders")
    opers = [row[OPER] for row in records(data, "orders", 2) if row[SEQ] == late]
    newer = [row for row in records(data, "orders", 1) if row[SEQ] > late]
    assert (sorted(opers), bool(newer)) == (["B", "U"], True)


def test_later_batches_are_newer_but_for_what_is_late(data: DemoData) -> None:
    latest = max(event.change_seq for event in data.events if event.batch == 1)
    assert latest < min(event.change_seq for event in data.events if event.batch == 2)
    for name in TABLES:
        earlier = {repr(row | {"header__partition_name": ""}) for row in records(data, name, 1)}
        rejected = {reject.change_seq for reject in data.expected_rejects}
        for row in records(data, name, 2):
            if row[SEQ] not in rejected | late_in(data, name) and row[SEQ] <= latest:
                assert repr(row | {"header__partition_name": ""}) in earlier


def test_updates_and_before_images_share_their_position(data: DemoData) -> None:
    for name, table in TABLES.items():
        opers = defaultdict(set)
        for row in accepted(data, name):
            opers[row[SEQ]].add(row[OPER])
        with_updates = {frozenset(found) for found in opers.values() if "U" in found}
        assert with_updates == {frozenset("BU" if table.before_images else "U")}
        assert frozenset("B") not in map(frozenset, opers.values())


def test_one_pair_is_split_over_the_batches(data: DemoData) -> None:
    before = records(data, "customers", 1)[-1]
    assert before[OPER] == "B"
    assert not [row for row in records(data, "customers", 1)[:-1] if row[SEQ] == before[SEQ]]
    (update,) = (row for row in records(data, "customers", 2) if row[SEQ] == before[SEQ])
    assert update[OPER] == "U"
    assert before[SEQ] > max(event.change_seq for event in data.events if event.batch == 1)
    assert data.truth["customers"][1][(15,)]["city"] == before["city"]
    assert data.truth["customers"][2][(15,)]["city"] == update["city"] == "Between two days"


def test_one_pair_arrives_in_reverse(data: DemoData) -> None:
    rows = records(data, "orders", 1)
    reversed_pairs = [
        first
        for first, second in pairwise(rows)
        if first[OPER] == "U" and second[OPER] == "B" and first[SEQ] == second[SEQ]
    ]
    assert reversed_pairs


@pytest.mark.parametrize("table", TABLES)
def test_records_are_repeated_within_and_across_batches(data: DemoData, table: str) -> None:
    def contents(*batches: int) -> Counter[str]:
        rows = (row | {"header__partition_name": ""} for row in records(data, table, *batches))
        return Counter(map(repr, rows))

    assert max(contents(1).values()) == 2
    assert len(contents(1) & contents(2)) == 4


def test_partitions_name_their_batch(data: DemoData) -> None:
    assert {row["header__partition_name"] for row in records(data, "order_items", 1)} == {
        "20260302T080000_20260302T200000"
    }
    assert {row["header__partition_name"] for row in records(data, "order_items", 2)} == {
        "20260303T080000_20260303T200000"
    }


# -- operations ------------------------------------------------------------------------------


def test_transactions_span_tables(data: DemoData) -> None:
    tables = defaultdict(set)
    for event in data.events:
        tables[event.transaction_number].add(event.table)
    spans = {frozenset(names) for names in tables.values()}
    assert {"orders", "order_items", "products"} in spans
    assert {"customers", "orders"} in spans


def test_deletes_hold_the_key_or_the_row(data: DemoData) -> None:
    for name, table in TABLES.items():
        deleted = [row for row in accepted(data, name) if row[OPER] == "D"]
        assert deleted
        for row in deleted:
            others = [row[column.name] for column in table.columns if column.name not in table.key]
            assert (set(others) == {None}) == (table.delete_image == "key")


def test_deleted_orders_come_back(data: DemoData) -> None:
    deleted: dict[object, Event] = {}
    returns: set[tuple[bool, bool]] = set()
    for event in data.events:
        if event.table == "orders" and event.before and event.oper == "D":
            deleted[event.before["order_id"]] = event
        elif event.table == "orders" and event.after and event.oper == "I":
            earlier = deleted.get(event.after["order_id"])
            if earlier is not None:
                same_transaction = earlier.transaction_number == event.transaction_number
                returns.add((same_transaction, earlier.batch == event.batch))
    # in one transaction, in the same batch, in the next batch
    assert returns == {(True, True), (False, True), (False, False)}


def test_customers_change_their_keys(data: DemoData) -> None:
    moves = {(old, new): event for event, old, new in key_changes(data)}
    origins = {old for old, _ in moves}
    ends_of_chain = [(old, new) for old, new in moves if new in origins and (new, old) not in moves]
    ((first, middle),) = ends_of_chain
    (last,) = (event for (old, _), event in moves.items() if old == middle)
    assert (moves[first, middle].batch, last.batch) == (1, 2)
    assert moves[13, 14].transaction_number == moves[14, 13].transaction_number
    assert 11 in origins
    assert len(moves) == 5
    rows = {(row[SEQ], row[OPER]): row for row in accepted(data, "customers")}
    for (old, new), event in moves.items():
        assert rows[event.change_seq, "B"]["customer_id"] == old
        assert rows[event.change_seq, "U"]["customer_id"] == new


def test_shipments_are_truncated_and_filled_again(data: DemoData) -> None:
    (truncate,) = events_of(data, "shipments", "T")
    assert truncate.batch == 2
    (record,) = {repr(row): row for row in records(data, "shipments") if row[OPER] == "T"}.values()
    assert record["header__operation"] == "TRUNCATE"
    payload = [record[column.name] for column in TABLES["shipments"].columns]
    assert set(payload) == {None} == {record[MASK]}
    later = [event for event in events_of(data, "shipments", "I") if event.batch == 2]
    filled = {
        event.after["shipment_id"]
        for event in later
        if event.after and event.change_seq > truncate.change_seq
    }
    loaded = {key[0] for key in data.truth["shipments"][0]}
    assert len(filled) >= 100
    assert len(filled & loaded) == 3


def test_lobs_are_unknown_unless_they_changed(data: DemoData) -> None:
    updates = {event.change_seq: event for event in events_of(data, "customers", "U")}
    rows = [row for row in accepted(data, "customers") if row[OPER] == "U"]
    shown = set()
    for row in rows:
        event = updates[row[SEQ]]
        assert event.after is not None
        lob_changed = "notes" in changed(event)
        assert row["notes"] == (event.after["notes"] if lob_changed else None)
        assert not lob_changed or row["notes"] is not None
        shown.add(lob_changed)
    assert shown == {True, False}
    annotated = [row["notes"] for row in rows if row["customer_id"] == 16]
    assert "prefers a call\nto a letter" in annotated
    assert None in annotated


def test_some_updates_touch_the_filled_column_only(data: DemoData) -> None:
    updates = events_of(data, "customers", "U")
    assert all("replicated_at" in changed(event) for event in updates)
    assert any(changed(event) == {"replicated_at"} for event in updates)


def test_timestamps_of_customers_are_from_1970_at_times(data: DemoData) -> None:
    years = {
        name: {row["header__timestamp"].year for row in records(data, name)}
        for name, table in TABLES.items()
        if "header__timestamp" in table.header_columns
    }
    assert years.pop("customers") == {1970, 2026}
    assert set.union(*years.values()) == {2026}


def test_order_items_store_a_subset_of_the_headers(data: DemoData) -> None:
    assert data.batches[0].tables["order_items__ct"].column_names[:6] == [
        "header__change_seq",
        "header__change_oper",
        "header__change_mask",
        "header__transaction_id",
        "header__partition_name",
        "order_id",
    ]


# -- malformed records -----------------------------------------------------------------------


def test_every_malformed_record_arrives_with_its_batch(data: DemoData) -> None:
    assert Counter(reject.reason.partition(":")[0] for reject in data.expected_rejects) == {
        "orphan_before_image": 2,
        "null_change_seq": 1,
        "malformed_mask": 1,
        "malformed_change_seq": 2,
        "unknown_operation": 1,
        "conflicting_duplicate": 2,
        "future_change_seq": 1,
        "uncastable_value": 2,
        "mask_too_wide": 2,
        "null_key": 2,
    }
    for reject in data.expected_rejects:
        arriving = {row[SEQ] for row in records(data, reject.table, reject.batch)}
        assert reject.change_seq in arriving


def test_malformed_records_break_what_their_reason_says(data: DemoData) -> None:
    for reject in data.expected_rejects:
        found = [row for row in records(data, reject.table) if row[SEQ] == reject.change_seq]
        row, table = found[-1], TABLES[reject.table]
        reason, _, column = reject.reason.partition(":")
        if reason == "orphan_before_image":
            assert {row[OPER] for row in found} == {"B"}
        elif reason == "null_change_seq":
            assert row[SEQ] is None
        elif reason == "malformed_mask":
            assert not re.fullmatch(r"(0x)?[0-9a-fA-F]*", row[MASK])
        elif reason == "malformed_change_seq":
            assert not re.fullmatch(r"\d{4}(0[1-9]|1[0-2])\d{29}", row[SEQ])
        elif reason == "future_change_seq":
            assert row[SEQ].startswith("2999")
        elif reason == "unknown_operation":
            assert row[OPER] == "X"
        elif reason == "mask_too_wide":
            assert max(ordinals(row[MASK])) > table.width
        elif reason == "uncastable_value":
            assert (column, row[column]) in {("quantity", "many"), ("promised_on", "2026-02-30")}
        elif reason == "null_key":
            assert None in table.key_of(row)
        else:
            assert reason == "conflicting_duplicate"
            assert len(set(map(repr, found))) == 2
            assert len({(table.key_of(row), row[OPER]) for row in found}) == 1


def test_orphans_are_out_of_the_look_back_when_their_batch_ends(data: DemoData) -> None:
    for reject in data.expected_rejects:
        if reject.reason == "orphan_before_image":
            latest = max(
                event.committed_at
                for event in data.events
                if (event.table, event.batch) == (reject.table, reject.batch)
            )
            seen = datetime.strptime(str(reject.change_seq)[:14], "%Y%m%d%H%M%S")
            assert (latest - seen.replace(tzinfo=timezone.utc)).total_seconds() > 15 * 60


def test_contested_rows_are_gone_when_the_batch_ends(data: DemoData) -> None:
    ((table, change_seq),) = data.contested
    (event,) = (event for event in data.events if event.change_seq == change_seq)
    assert event.after is not None
    key = TABLES[table].key_of(event.after)
    assert all(key not in state for state in data.truth[table])


# -- truth -----------------------------------------------------------------------------------


def replayed(data: DemoData) -> Iterator[dict[str, dict[Key, Row]]]:
    """The tables at the end of each batch, from the load and the change records' own meaning."""
    rows = {name: dict(states[0]) for name, states in data.truth.items()}
    for batch in data.batches:
        displaced: dict[tuple[int, str, Key], Row] = {}
        for event in data.events:
            if event.batch != batch.number:
                continue
            table, state = TABLES[event.table], rows[event.table]
            if event.oper == "T":
                state.clear()
            old = table.key_of(event.before) if event.before else None
            new = table.key_of(event.after) if event.after else None
            if old is not None and old != new:
                # A row that a move of the same transaction has displaced is the one that leaves.
                leaving = displaced.pop((event.transaction_number, event.table, old), None)
                leaving = leaving if leaving is not None else state.pop(old)
                assert leaving == event.before
            if new is not None and event.after is not None:
                if old != new and new in state:
                    displaced[event.transaction_number, event.table, new] = state[new]
                assert event.before is None or old != new or state[new] == event.before
                state[new] = event.after
        assert not displaced
        yield rows


def test_replaying_the_events_gives_the_truth(data: DemoData) -> None:
    for number, rows in enumerate(replayed(data), 1):
        for name in TABLES:
            assert rows[name] == data.truth[name][number]


def test_base_tables_are_live_or_frozen(data: DemoData) -> None:
    for name, table in TABLES.items():
        for batch in data.batches:
            assert (name in batch.replaced) == (table.base == "live")
        assert f"{name}__ct" not in data.batches[0].replaced
    for number, batch in enumerate(data.batches, 1):
        live = {row["customer_id"]: row for row in batch.tables["customers"].to_pylist()}
        assert live == {key[0]: row for key, row in data.truth["customers"][number].items()}
    loaded = data.truth["orders"][0]
    first, second = (batch.tables["orders"].to_pylist() for batch in data.batches)
    assert [row for row in first if (row["order_id"],) in loaded] == list(loaded.values())
    inserted = {event.after["order_id"] for event in events_of(data, "orders", "I") if event.after}
    assert {row["order_id"] for row in first[len(loaded) :] + second} == inserted - {
        key[0] for key in loaded
    }


def test_rows_refer_to_rows_and_totals_add_up(data: DemoData) -> None:
    for number in range(len(data.batches) + 1):
        state = {name: data.truth[name][number] for name in TABLES}
        totals: dict[object, Decimal] = defaultdict(Decimal)
        for item in state["order_items"].values():
            assert (item["order_id"],) in state["orders"]
            assert (item["product_id"],) in state["products"]
            totals[item["order_id"]] += line_amount(item)
        for (order_id,), order in state["orders"].items():
            assert (order["customer_id"],) in state["customers"]
            assert order["total_amount"] == totals[order_id]
        for shipment in state["shipments"].values():
            assert (shipment["order_id"],) in state["orders"]
