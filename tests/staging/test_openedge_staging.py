"""stage_openedge on small extracts: the rendered SQL on temporary views, against rows by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from tests.openedge_staging import (
    CHANGES,
    DATA,
    TABLE_NUMBER,
    TRACKING,
    Extract,
    activity_sql,
    create_views,
    field_map,
    staged,
    vectors,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime(2026, 3, 2, 12)
EDGE = 10_000
COLUMNS = {"id": "int", "name": "string", "home-city": "string", "note": "string"}


def tracked(
    sequence: int | None, operation: int | None, *fields: int, **other: Any
) -> tuple[Any, ...]:
    """A row of the tracking table; `fields` make its field map."""
    row = {
        "_Policy-Id": "policy",
        "_Tran-Id": 7,
        "_Time-Stamp": NOON,
        "_Change-Sequence": sequence,
        "_Operation": operation,
        "_Change-FieldMap": field_map(*fields) if operation == 4 else None,
        "_Recid": 500,
        "_Source-Table-Number": TABLE_NUMBER,
        "_Partition-Id": 0,
        "_Tenant-Id": 0,
        "_User-Misc": None,
        "_User-Name": "joe",
    }
    return tuple((row | other).values())


def changed(
    sequence: int | None,
    operation: int | None,
    *values: Any,
    split: tuple[int, int, int] = (0, 0, 0),
) -> tuple[Any, ...]:
    """A row of the change table; `split` is its continuation position, array index and fragment."""
    return (7, NOON, sequence, *split, operation, *values)


def extracts(
    tracking: list[Any], changes: list[Any], columns: dict[str, str] = COLUMNS
) -> dict[str, Extract]:
    return {"tracking": (TRACKING, tracking), "changes": ({**CHANGES, **columns}, changes)}


def seq(number: int) -> str:
    return f"{number:019d}"


def only(rows: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in rows]


@pytest.fixture(scope="module")
def level_3(spark: SparkSession) -> list[dict[str, Any]]:
    """One of everything, at level 3, with partitions and tenants."""
    tracking = [
        tracked(1, 1),
        tracked(2, 4, 2),
        tracked(3, 2),
        tracked(4, 4, 2, 3),
        *[
            tracked(code + 10, code, **{"_Partition-Id": 3, "_Tenant-Id": 5})
            for code in range(5, 13)
        ],
        tracked(30, 0),
        tracked(31, 13),
        tracked(None, 1),
        tracked(-1, 1),
        tracked(1, 1, **{"_Source-Table-Number": TABLE_NUMBER + 1}),
        # an extract that overlaps the one before, after a consumer has marked the row
        tracked(1, 1, **{"_User-Misc": "done"}),
    ]
    changes = [
        changed(1, 1, 1, "Ann", "Oslo", None),
        changed(1, 1, 1, "Ann", "Oslo", None),
        # unchanged columns are left out, in both images
        changed(2, 3, 1, "Ann", None, None),
        changed(2, 4, 1, "Anna", None, None),
        changed(3, 2, 1, None, None, None),
        # a column that was set to NULL is known, one that is there is known too
        changed(4, 3, 2, "Bob", "Bonn", None),
        changed(4, 4, 2, "Bert", None, "a note"),
        changed(None, 1, 9, "Nobody", None, None),
        changed(-1, 1, 9, "Nobody", None, None),
    ]
    settings = {"key": ["id"], "partition_column": "partition_id", "tenant_column": "tenant_id"}
    return staged(spark, extracts(tracking, changes), settings)


def test_what_a_loader_writes_beside_a_change_is_no_content(spark: SparkSession) -> None:
    """Extracts overlap, so the same change comes with two times."""
    columns = {**COLUMNS, "_ingested_at": "string"}
    changes = [changed(1, 1, 1, "Ann", "Oslo", None, time) for time in ("10:00", "11:00")]
    rows = staged(spark, extracts([tracked(1, 1)], changes, columns), {"key": ["id"]})
    assert only(rows, "change_oper", "name", "reject_reason") == [("I", "Ann", None)]


def at(rows: list[dict[str, Any]], sequence: int) -> list[dict[str, Any]]:
    return [row for row in rows if row["change_seq"] == seq(sequence)]


def test_an_insert(level_3: list[dict[str, Any]]) -> None:
    (row,) = at(level_3, 1)
    assert {name: row[name] for name in row if name not in ("record_hash", "raw_record")} == {
        "change_seq": "0000000000000000001",
        "change_oper": "I",
        "changed_at": NOON,
        "source_timestamp": NOON,
        "transaction_id": "7",
        "transaction_event": None,
        "source_user": "joe",
        "declared_changed_columns": None,
        "known_columns": None,
        "truncate_scope": None,
        "load_id": None,
        "arrival": None,
        "reject_reason": None,
        "id": 1,
        "name": "Ann",
        "home-city": "Oslo",
        "note": None,
        "partition_id": 0,
        "tenant_id": 0,
    }


def test_an_update_has_two_records_that_know_what_they_hold(level_3: list[dict[str, Any]]) -> None:
    columns = ("change_oper", "declared_changed_columns", "known_columns", "name", "home-city")
    own = ["id", "name", "partition_id", "tenant_id"]
    assert only(at(level_3, 2), *columns) == [
        ("B", None, own, "Ann", None),
        ("U", ["name"], own, "Anna", None),
    ]
    assert only(at(level_3, 4), *columns) == [
        ("B", None, [*own[:2], "home-city", *own[2:]], "Bob", "Bonn"),
        ("U", ["name", "home-city"], None, "Bert", None),
    ]


def test_a_delete(level_3: list[dict[str, Any]]) -> None:
    assert only(at(level_3, 3), "change_oper", "id", "known_columns") == [("D", 1, None)]


def test_operations_on_partitions_and_tenants(level_3: list[dict[str, Any]]) -> None:
    found = {
        row["change_seq"]: (
            row["change_oper"],
            dict(row["truncate_scope"] or []),
            row["id"],
            row["partition_id"],
        )
        for row in level_3
        if row["change_oper"] in ("T", "N")
    }
    partition, tenant = {"partition_id": "3"}, {"tenant_id": "5"}
    scopes = {6: partition, 7: partition, 8: partition, 9: tenant, 10: tenant, 11: partition}
    assert found == {
        **{seq(code + 10): ("T", scope, None, None) for code, scope in scopes.items()},
        **{seq(code + 10): ("N", {}, None, None) for code in (5, 12)},
    }
    assert [row["reject_reason"] for row in level_3 if row["change_oper"] == "T"] == [None] * 6


def test_what_breaks_the_contract(level_3: list[dict[str, Any]]) -> None:
    rejected = only([row for row in level_3 if row["reject_reason"]], "change_seq", "reject_reason")
    assert sorted(rejected, key=str) == [
        (seq(30), "unknown_operation"),
        (seq(31), "unknown_operation"),
        *[(None, "malformed_change_seq")] * 1,
        *[(None, "null_change_seq")] * 2,
    ]


def test_the_raw_record_holds_both_halves(level_3: list[dict[str, Any]]) -> None:
    record = json.loads(at(level_3, 2)[1]["raw_record"])
    assert record["tracking"]["_User-Name"] == "joe"
    assert record["change"]["name"] == "Anna"
    assert record["change"]["note"] is None


@pytest.mark.parametrize("level", [2, 3])
def test_rows_in_the_change_table_make_the_records(spark: SparkSession, level: int) -> None:
    """The rows that an operation leaves become one change, or its first half, which waits."""
    tracking, changes = [], []
    for operation in vectors("operations"):
        code = int(operation["operation"])
        tracking.append(tracked(code, code, 2))
        of_rows = {0: [], 1: [code], 2: [3, 4]}[int(operation[f"rows_at_level_{level}"])]
        changes += [changed(code, of_row, 1, "Ann", "Oslo", "x") for of_row in of_rows]
    settings = {"key": ["id"], "policy_level": level, "partition_column": "p", "tenant_column": "t"}
    rows = staged(spark, extracts(tracking, changes), settings)
    expected = {1: "I", 2: "D", 3: "N", 4: "U" if level == 2 else "BU", 5: "N", 12: "N"}
    assert [(row["change_seq"], row["change_oper"], row["reject_reason"]) for row in rows] == [
        (seq(code), letter, None) for code in range(1, 13) for letter in expected.get(code, "T")
    ]


def test_tracking_rows_of_operation_3_too(spark: SparkSession) -> None:
    """By one reading of the documentation an update has two tracking rows at level 3."""
    changes = [changed(5, 3, 1, "Ann", None, None), changed(5, 4, 1, "Anna", None, None)]
    tracking = [tracked(5, 3), tracked(5, 4, 2)]
    for order in (tracking, tracking[::-1]):
        rows = staged(spark, extracts(order, changes), {"key": ["id"]})
        assert only(rows, "change_oper", "declared_changed_columns", "known_columns") == [
            ("B", None, ["id", "name"]),
            ("U", ["name"], ["id", "name"]),
        ]


def test_a_half_waits_at_the_edge_of_an_extract(spark: SparkSession) -> None:
    tracking = [tracked(1, 1), tracked(EDGE, 1), tracked(EDGE + 2, 1), tracked(EDGE + 10, 2)]
    changes = [
        changed(EDGE + 1, 1, 4, *"xyz"),
        changed(2, 1, 2, *"abc"),
        changed(EDGE + 10, 2, 3, *"abc"),
    ]
    rows = staged(spark, extracts(tracking, changes), {"key": ["id"]})
    assert only(rows, "change_seq", "change_oper", "reject_reason") == [
        (seq(1), None, "incomplete_record"),
        (seq(2), None, "incomplete_record"),
        (seq(EDGE), "N", None),
        (seq(EDGE + 1), "N", None),
        (seq(EDGE + 2), "N", None),
        (seq(EDGE + 10), "D", None),
    ]
    # the other halves come with the next extract
    tracking += [tracked(2, 1), tracked(EDGE + 1, 1)]
    changes += [
        changed(1, 1, 1, *"abc"),
        changed(EDGE, 1, 5, *"abc"),
        changed(EDGE + 2, 1, 6, *"abc"),
    ]
    rows = staged(spark, extracts(tracking, changes), {"key": ["id"]})
    assert only(rows, "change_oper", "reject_reason") == [("I", None)] * 5 + [("D", None)]


def test_copies_have_one_hash_and_other_contents_another(spark: SparkSession) -> None:
    one = extracts([tracked(1, 1)], [changed(1, 1, 1, *"abc")])
    marked = extracts(
        [tracked(1, 1, **{"_User-Misc": "done", "_User-Name": "x"})], [changed(1, 1, 1, *"abc")]
    )
    other = extracts([tracked(1, 1)], [changed(1, 1, 1, *"abd")])
    both = extracts([tracked(1, 1)], [changed(1, 1, 1, *"abc"), changed(1, 1, 1, *"abd")])
    hashes = [
        {row["record_hash"] for row in staged(spark, given, {"key": ["id"]})}
        for given in (one, marked, other, both)
    ]
    assert hashes[0] == hashes[1]
    assert hashes[0].isdisjoint(hashes[2])
    # of two contents of one change the change log keeps one and rejects the other
    assert hashes[3] == hashes[0] | hashes[2]


@pytest.mark.parametrize("kind", ["int", "decimal(10,0)", "string"])
def test_a_record_of_an_unknown_version_is_rejected(spark: SparkSession, kind: str) -> None:
    """`_Version`, by the vendor: "Future to support change table record format changes"."""
    versions = [None, 0, 1, 2, 13]
    landed: list[Any] = [None if v is None else Decimal(v) for v in versions]
    if kind != "decimal(10,0)":
        landed = [v if kind == "int" or v is None else str(v) for v in versions]
    given: dict[str, Extract] = {
        "tracking": (
            {**TRACKING, "_Version": kind},
            [(*tracked(number, 1), version) for number, version in enumerate(landed, 1)],
        ),
        "changes": (
            {**CHANGES, **COLUMNS},
            [changed(number, 1, number, *"abc") for number in range(1, len(versions) + 1)],
        ),
    }
    rows = staged(spark, given, {"key": ["id"]})
    expected = [None] * 3 + ["unknown_version:2", "unknown_version:13"]
    assert [row["reject_reason"] for row in rows] == expected
    assert json.loads(rows[-1]["raw_record"])["tracking"]["_Version"] in (13, "13")


def test_dense_updates_know_every_column(spark: SparkSession) -> None:
    given = extracts([tracked(2, 4, 2)], [changed(2, 4, 1, "Anna", None, None)])
    rows = staged(spark, given, {"key": ["id"], "policy_level": 2, "sparse_updates": False})
    assert only(rows, "declared_changed_columns", "known_columns") == [(["name"], None)]


def test_field_maps_that_cannot_be_meant(spark: SparkSession) -> None:
    maps = {1: b"\x10", 2: bytes(256) + b"\x01", 3: b"\x0f" + bytes(255), 4: None}
    tracking = [
        tracked(number, 4, **{"_Change-FieldMap": stored}) for number, stored in maps.items()
    ]
    changes = [changed(number, 4, 1, None, None, None) for number in maps]
    rows = staged(spark, extracts(tracking, changes), {"key": ["id"], "policy_level": 2})
    assert only(rows, "reject_reason", "declared_changed_columns", "known_columns")[2:] == [
        (None, [*COLUMNS], None),
        # nothing is said to be changed, so nothing is made NULL
        (None, None, ["id"]),
    ]
    assert [row["reject_reason"] for row in rows[:2]] == ["mask_too_wide"] * 2


def test_the_order_of_the_fields_may_be_set(spark: SparkSession) -> None:
    given = extracts([tracked(2, 4, 1, 4)], [changed(2, 4, 1, *"abc")])
    settings = {
        "key": ["id"],
        "policy_level": 2,
        "mask_columns": ["note", "gone", "ID", "name", "home-city"],
    }
    assert staged(spark, given, settings)[0]["declared_changed_columns"] == ["note", "name"]


def test_partitions_without_a_column_are_not_taken_for_the_table(spark: SparkSession) -> None:
    tracking = [tracked(code, code) for code in range(6, 12)]
    rows = staged(spark, extracts(tracking, []), {"key": ["id"]})
    assert [row["reject_reason"] for row in rows] == ["unsupported_record"] * 6
    missing = [tracked(6, 6, **{"_Partition-Id": None}), tracked(9, 9, **{"_Tenant-Id": None})]
    settings = {"key": ["id"], "partition_column": "p", "tenant_column": "t"}
    rows = staged(spark, extracts(missing, []), settings)
    assert [row["reject_reason"] for row in rows] == ["unsupported_record"] * 2


# --- names, types and layouts of extracts


@pytest.mark.parametrize(
    "spelling", ["as it is", "with underscores", "of older databases", "in capitals"]
)
def test_names_of_columns(spark: SparkSession, spelling: str) -> None:
    older = {
        row["column"]: row["name_in_older_databases"] or row["column"]
        for row in vectors("tracking_columns")
    }
    spell: Callable[[str], str] = {
        "as it is": lambda name: name,
        "with underscores": lambda name: name.replace("-", "_"),
        "of older databases": lambda name: older.get(name, name),
        "in capitals": lambda name: name.upper().replace("-", "_"),
    }[spelling]
    names = [row["column"] for row in vectors("tracking_columns")]
    types = {**TRACKING, "_Version": "int", "_Misc": "string"}
    values = dict(zip(TRACKING, tracked(2, 4, 2), strict=True)) | {"_Version": 1, "_Misc": None}
    own = [row["column"] for row in vectors("change_table_columns")]
    change = dict(zip(CHANGES, changed(2, 4), strict=True))
    given: dict[str, Extract] = {
        "tracking": (
            {spell(name): types[name] for name in names},
            [tuple(values[name] for name in names)],
        ),
        "changes": (
            {**{spell(name): CHANGES[name] for name in own}, **COLUMNS},
            [(*(change[name] for name in own), 1, "Anna", None, None)],
        ),
    }
    settings = {"key": ["id"], "policy_level": 2, "partition_column": "p", "recid_column": "recid"}
    (row,) = staged(spark, given, settings)
    assert [name for name in row if name in (*COLUMNS, "p", "recid") or name.startswith("_")] == [
        *COLUMNS,
        "p",
        "recid",
    ]
    assert (row["change_oper"], row["declared_changed_columns"], row["recid"]) == (
        "U",
        ["name"],
        500,
    )
    assert (row["known_columns"], row["transaction_id"]) == (["id", "name", "p", "recid"], "7")


def test_everything_may_be_landed_as_text(spark: SparkSession) -> None:
    columns = {
        "id": "bigint",
        "amount": "decimal(20,2)",
        "small": "decimal(38,2)",
        "born": "date",
        "days": "array<string>",
    }
    tracking = [
        (
            "policy",
            "7",
            "2026-03-02 13:00:00.5+01:00",
            str(number),
            "1",
            None,
            "500",
            str(TABLE_NUMBER),
            "0",
            "0",
            None,
            "joe",
        )
        for number in range(1, 6)
    ] + [("policy", "7", "noon", "6", "1", None, "500", str(TABLE_NUMBER), "0", "0", None, "joe")]
    rows = {
        # over 15 digits in exponent form
        1: ("1", "1.2345678901234567E+17", "1.5E+1", "2026-03-02", "a;b~;c;?"),
        2: ("1", "-1.5E-1", "1.25E+1", None, None),
        3: ("1", "1.25E-1", "0", None, None),
        4: ("1", "1.5", "1.55E-1", None, None),
        5: ("x", "1.5", "1.5", None, None),
        6: ("1", "1.5", "1.5", None, None),
    }
    changes = [
        ("7", "", str(number), "0", "0", "0", "1", *values) for number, values in rows.items()
    ]
    given: dict[str, Extract] = {
        "tracking": (dict.fromkeys(TRACKING, "string"), tracking),
        "changes": (dict.fromkeys([*CHANGES, *columns], "string"), changes),
    }
    settings = {"key": ["id"], "arrays": ["days"], "policy_level": 2}
    found = staged(spark, given, settings, columns)
    assert [row["reject_reason"] for row in found] == [
        None,
        None,
        "uncastable_value:amount",
        "uncastable_value:small",
        "uncastable_value:id",
        "uncastable_value:_Time-Stamp",
    ]
    assert only(found, "id", "amount", "small", "days")[:2] == [
        (1, Decimal("123456789012345670.00"), Decimal("15.00"), ["a", "b;c", None]),
        (1, Decimal("-0.15"), Decimal("12.50"), None),
    ]
    assert found[0]["changed_at"] == datetime(2026, 3, 2, 12, 0, 0, 500_000)


def test_the_joined_extract_of_a_consumer(spark: SparkSession) -> None:
    """Tracking and change columns side by side: the second `_Operation` has another name there."""
    layout = json.loads((DATA / "joined_extract.json").read_text(encoding="utf-8"))
    rules = json.loads((DATA / "consumer_rules.json").read_text(encoding="utf-8"))
    names = layout["columns"]
    assert names[1].lower() == names[8].lower()
    names = [name if place != 8 else f"{name}_1" for place, name in enumerate(names)]
    separator = rules["changed_fields_separator"]
    assert separator == layout["array_separator"] == ";"
    types = {
        **TRACKING,
        **CHANGES,
        "_policy-id": "string",
        "_operation": "int",
        "_Operation_1": "int",
    }
    columns = {name: types[name] for name in names} | {"changed_fields": "string", **COLUMNS}
    operations = rules["operations"]
    assert sorted(operations.values()) == layout["operations"]

    def joined(
        sequence: int, operation: int, fields: list[str] | None, *values: Any
    ) -> tuple[Any, ...]:
        listed = separator.join(fields) if fields else None
        return ("policy", operation, 7, NOON, sequence, 0, 0, 0, operation, listed, *values)

    rows = [
        joined(1, operations["insert"], None, 1, "Ann", "Oslo", None),
        joined(2, operations["update"], ["NAME", "home_city"], 1, "Anna", None, None),
        joined(3, operations["delete"], None, 1, None, None, None),
    ]
    found = staged(
        spark,
        {"changes": (columns, rows)},
        {"key": ["id"], "policy_level": 2, "table_number": None},
    )
    assert only(
        found,
        "change_oper",
        "changed_at",
        "declared_changed_columns",
        "known_columns",
        "reject_reason",
    ) == [
        ("I", NOON, None, None, None),
        # the fill rule: what is named or is not NULL is real; `note` comes from the row before
        ("U", NOON, ["name", "home-city"], ["id", "name", "home-city"], None),
        ("D", NOON, None, None, None),
    ]
    assert [name for name in found[0] if name in rules["control_columns"]] == []


def test_a_joined_extract_with_both_images(spark: SparkSession) -> None:
    """The tracking row of an update is of operation 4, its change rows are of 3 and 4."""
    names = json.loads((DATA / "joined_extract.json").read_text(encoding="utf-8"))["columns"]
    types = {**TRACKING, **CHANGES, "_policy-id": "string", "_operation": "int"}
    columns = {name: types[name] for name in names[:8]} | {"_Operation_1": "int"}
    columns |= {"changed_fields": "string", **COLUMNS}

    def joined(sequence: int, tracked: int, own: int | None, *values: Any) -> tuple[Any, ...]:
        return ("policy", tracked, 7, NOON, sequence, 0, 0, 0, own, "name", *values)

    rows = [
        joined(1, 4, 3, 1, "Ann", None, None),
        joined(1, 4, 4, 1, "Anna", None, None),
        # an operation without a change row, where the extract keeps it
        joined(2, 12, None, None, None, None, None),
    ]
    settings = {"key": ["id"], "table_number": None, "operation_column": "_operation_1"}
    found = staged(spark, {"changes": (columns, rows)}, settings)
    assert only(found, "change_oper", "name", "reject_reason") == [
        ("B", "Ann", None),
        ("U", "Anna", None),
        ("N", None, None),
    ]


def test_a_landing_time_is_the_mark_of_arrival(spark: SparkSession) -> None:
    landed = [datetime(2026, 3, 2, hour) for hour in (13, 14, 15)]
    given: dict[str, Extract] = {
        "tracking": (
            {**TRACKING, "_landed_at": "timestamp"},
            [(*tracked(1, 1), landed[0]), (*tracked(1, 1), landed[2]), (*tracked(2, 1), landed[1])],
        ),
        "changes": (
            {**CHANGES, **COLUMNS, "_landed_at": "timestamp"},
            [
                (*changed(1, 1, 1, *"abc"), landed[1]),
                (*changed(1, 1, 1, *"abc"), landed[2]),
                (*changed(2, 1, 1, *"abc"), landed[0]),
            ],
        ),
    }
    rows = staged(spark, given, {"key": ["id"]})
    assert only(rows, "change_oper", "arrival") == [("I", "2026-03-02 14:00:00")] * 2


def test_a_base_table_follows_as_a_full_load(spark: SparkSession) -> None:
    given = extracts(
        [tracked(1, 1)], [changed(1, 1, 1, *"abc")], {**COLUMNS, "days": "string"} | {}
    )
    given["changes"] = ({**CHANGES, **COLUMNS, "days": "string"}, [changed(1, 1, 1, *"abc", "1;2")])
    given["everyone"] = ({"id": "int", "name": "string", "days": "string"}, [(5, "Eve", "3;4")])
    settings = {
        "key": ["id"],
        "arrays": ["days"],
        "base": {"kind": "frozen", "loaded_at": "2026-03-01"},
    }
    settings["partition_column"] = "p"
    load, insert = staged(spark, given, settings, base="everyone")
    assert (insert["change_oper"], insert["days"], insert["p"]) == ("I", ["1", "2"], 0)
    assert (load["change_oper"], load["changed_at"]) == ("L", datetime(2026, 3, 1))
    assert (load["id"], load["name"], load["days"], load["p"]) == (5, "Eve", ["3", "4"], None)
    assert load["known_columns"] == ["id", "name", "days"]


# --- what happened, without values


def activity(
    spark: SparkSession, tracking: list[Any], settings: dict[str, Any], declared: dict[str, str]
) -> list[dict[str, Any]]:
    columns = create_views(spark, {"tracking": (TRACKING, tracking)})["tracking"]
    rows = spark.sql(activity_sql(columns, settings, declared)).collect()
    return sorted((row.asDict() for row in rows), key=lambda row: row["changed_at"])


def test_two_policies_may_have_the_same_sequences(spark: SparkSession) -> None:
    later = {"_Time-Stamp": NOON.replace(day=3), "_User-Name": "ann"}
    tracking = [
        tracked(1, 1),
        tracked(1, 1, **{"_User-Misc": "done"}),
        tracked(1, 1, **{"_Policy-Id": "new", **later}),
        # a policy without an id
        tracked(1, 1, **{"_Policy-Id": None}),
        tracked(1, 1, **{"_Policy-Id": None, **later}),
    ]
    rows = activity(spark, tracking, {"policy_level": 1}, COLUMNS)
    assert sorted((row["policy_id"] or "", row["user_name"]) for row in rows) == [
        ("", "ann"),
        ("", "joe"),
        ("new", "ann"),
        ("policy", "joe"),
    ]


@pytest.mark.parametrize("declared", [COLUMNS, {"_Tran-Id": "int", **COLUMNS, "p": "int"}])
def test_the_fields_of_an_activity_are_those_of_the_field_map(
    spark: SparkSession, declared: dict[str, str]
) -> None:
    tracking = [tracked(1, 4, 1, 4), tracked(2, 4, 5, **{"_Time-Stamp": NOON.replace(day=3)})]
    order = ["note", "gone", "id", "name", "home-city"]
    settings = {"key": ["id"], "partition_column": "p", "mask_columns": order}
    rows = activity(spark, tracking, settings, declared)
    assert only(rows, "changed_columns") == [(["note", "name"],), (["home-city"],)]
    # what the tracking table adds is not a field; the fifth one is not declared
    rows = activity(spark, tracking, {**settings, "mask_columns": []}, declared)
    assert only(rows, "changed_columns") == [(["id", "note"],), ([],)]


# --- changes that are split over two records

SPLIT_COLUMNS = {
    "id": "int",
    "name": "string",
    "scan": "binary",
    "days": "string",
    "note": "string",
}
FIRST_FIELD = 9
DAYS = ["mon", "tue", "wed", "thu"]
WHOLE = (1, "a long name", b"\x01\x02\x03\x04", ";".join(DAYS), "a note")


def split_in_two(
    case: dict[str, str], sequence: int, second_position: int
) -> list[tuple[Any, ...]]:
    """An insert as two records. id, name, scan, days and note are the fields 9 to 13."""
    index, fragment = int(case["array_index"]), int(case["fragment"])
    first: list[Any]
    second: list[Any]
    if case["cut"] == "none":
        last, first, second = 10, [*WHOLE[:2], None, None, None], [None, None, *WHOLE[2:]]
    elif case["cut"] == "scalar":
        first = [*WHOLE[:2], b"\x01\x02", None, None]
        last, second = 10, [None, None, b"\x03\x04", *WHOLE[3:]]
    else:
        begun = DAYS[index][:1] if fragment else ""
        first_days = [*DAYS[:index], begun, *[""] * (3 - index)]
        second_days = [*[""] * index, DAYS[index][len(begun) :], *DAYS[index + 1 :]]
        first = [*WHOLE[:3], ";".join(first_days), None]
        last, second = 11, [None, None, None, ";".join(second_days), WHOLE[4]]
    return [
        changed(sequence, 1, *first, split=(last, index, fragment)),
        changed(sequence, 1, *second, split=(second_position, 0, 0)),
    ]


# The documentation does not say what the second record's position is.
@pytest.mark.parametrize("second_position", [0, 13])
def test_split_changes(spark: SparkSession, second_position: int) -> None:
    cases = vectors("split_changes")
    assert len(cases) == 6
    halves = [
        half
        for number, case in enumerate(cases, 1)
        for half in split_in_two(case, number, second_position)
    ]
    settings = {
        "key": ["id"],
        "extract": "abl",
        "first_user_field": FIRST_FIELD,
        "arrays": ["days"],
    }
    tracking = [tracked(number, 1) for number in range(1, 7)]
    # the order in which they arrive has no meaning
    given = extracts(tracking, halves if second_position else halves[::-1], SPLIT_COLUMNS)
    rows = staged(spark, given, settings)
    assert {row["change_seq"]: [row[name] for name in SPLIT_COLUMNS] for row in rows} == {
        seq(number): [*WHOLE[:3], DAYS, WHOLE[4]] for number in range(1, 7)
    }
    assert [row["reject_reason"] for row in rows] == [None] * 6
    assert [len(json.loads(row["raw_record"])["change"]) for row in rows] == [2] * 6


def test_a_cut_text(spark: SparkSession) -> None:
    halves = [
        changed(1, 4, 1, "a long", None, None, None, split=(9, 0, 1)),
        changed(1, 4, None, " name", b"\x01", None, "a note", split=(13, 0, 0)),
    ]
    settings = {"key": ["id"], "extract": "abl", "first_user_field": FIRST_FIELD, "policy_level": 2}
    (row,) = staged(spark, extracts([tracked(1, 4, 2)], halves, SPLIT_COLUMNS), settings)
    assert only([row], *SPLIT_COLUMNS) == [(1, "a long name", b"\x01", None, "a note")]
    assert row["known_columns"] == ["id", "name", "scan", "note"]


def test_a_split_change_arrives_with_its_last_half(spark: SparkSession) -> None:
    halves = [
        (*changed(1, 4, 1, "a long", None, None, None, split=(9, 0, 1)), NOON),
        (*changed(1, 4, None, " name", None, None, None, split=(13, 0, 0)), NOON.replace(hour=14)),
    ]
    given = extracts([tracked(1, 4, 2)], halves, {**SPLIT_COLUMNS, "_landed_at": "timestamp"})
    settings = {"key": ["id"], "extract": "abl", "first_user_field": FIRST_FIELD, "policy_level": 2}
    rows = staged(spark, given, settings)
    assert only(rows, "name", "arrival") == [("a long name", "2026-03-02 14:00:00")]


def test_both_images_may_be_split(spark: SparkSession) -> None:
    settings = {"key": ["id"], "extract": "abl", "first_user_field": FIRST_FIELD}
    halves = [
        changed(1, operation, *values, split=split)
        for operation in (3, 4)
        for values, split in (
            ((1, f"{operation} lo", None, None, None), (9, 0, 1)),
            ((None, "ng", None, None, "x"), (13, 0, 0)),
        )
    ]
    rows = staged(spark, extracts([tracked(1, 4, 2)], halves, SPLIT_COLUMNS), settings)
    assert only(rows, "change_oper", "name", "note") == [("B", "3 long", "x"), ("U", "4 long", "x")]


def test_a_half_record_waits_and_is_rejected_in_the_end(spark: SparkSession) -> None:
    settings = {"key": ["id"], "extract": "abl", "first_user_field": FIRST_FIELD}
    half = changed(1, 1, 1, "a lo", None, None, None, split=(9, 0, 1))
    later = [tracked(EDGE + 1, 2)], [changed(EDGE + 1, 2, 5, None, None, None, None)]
    waiting = staged(spark, extracts([tracked(1, 1)], [half], SPLIT_COLUMNS), settings)
    assert only(waiting, "change_oper", "reject_reason") == [("N", None)]
    given = extracts([tracked(1, 1), *later[0]], [half, *later[1]], SPLIT_COLUMNS)
    rows = staged(spark, given, settings)
    assert only(rows, "change_oper", "reject_reason") == [(None, "incomplete_record"), ("D", None)]


def test_halves_that_cannot_be_put_together(spark: SparkSession) -> None:
    first = changed(1, 1, 1, "a lo", None, None, None, split=(9, 0, 1))
    second = changed(1, 1, None, "ng", None, None, None, split=(13, 0, 0))
    other = changed(1, 1, None, "st", None, None, None, split=(13, 0, 0))
    settings = {"key": ["id"], "extract": "abl", "first_user_field": FIRST_FIELD}
    for halves, given in (
        ([first, second], {**settings, "first_user_field": None}),
        ([first, second, other], settings),
    ):
        (row,) = staged(spark, extracts([tracked(1, 1)], halves, SPLIT_COLUMNS), given)
        assert row["reject_reason"] == "unsupported_record"
        assert len(json.loads(row["raw_record"])["change"]) == len(halves)


# --- extracts that say they are joined, and hold split records all the same

NOT_JOINED = "split_record (set extract: abl)"


@pytest.mark.parametrize("second_position", [0, 13])
def test_a_split_change_in_a_joined_extract_is_never_half_a_change(
    spark: SparkSession, second_position: int
) -> None:
    """Both records become one rejected record, and no value of the second is taken for NULL."""
    cases = vectors("split_changes")
    halves = [
        half
        for number, case in enumerate(cases, 1)
        for half in split_in_two(case, number, second_position)
    ]
    tracking = [tracked(number, 1) for number in range(1, 7)]
    given = extracts(tracking, halves, SPLIT_COLUMNS)
    rows = staged(spark, given, {"key": ["id"], "arrays": ["days"]})
    # without an operation no key is required: the second record may not have one
    assert only(rows, "change_seq", "change_oper", "reject_reason") == [
        (seq(number), None, NOT_JOINED) for number in range(1, 7)
    ]
    assert [len(json.loads(row["raw_record"])["change"]) for row in rows] == [2] * 6
    # with the position of the first field set, the records are put together
    known = {"key": ["id"], "arrays": ["days"], "first_user_field": FIRST_FIELD}
    rows = staged(spark, given, known)
    assert [[row[name] for name in SPLIT_COLUMNS] for row in rows] == [
        [*WHOLE[:3], DAYS, WHOLE[4]]
    ] * 6
    assert only(rows, "change_oper", "reject_reason") == [("I", None)] * 6


def test_one_half_in_a_joined_extract_is_not_taken_for_a_change(spark: SparkSession) -> None:
    half = changed(1, 1, 1, "a lo", None, None, None, split=(9, 0, 1))
    given = extracts([tracked(1, 1)], [half], SPLIT_COLUMNS)
    assert only(staged(spark, given, {"key": ["id"]}), "change_oper", "reject_reason") == [
        (None, NOT_JOINED)
    ]
    # where halves are put together the other one may come with the next extract
    known = {"key": ["id"], "first_user_field": FIRST_FIELD}
    assert only(staged(spark, given, known), "change_oper", "reject_reason") == [("N", None)]
    later = [tracked(EDGE + 1, 2)], [changed(EDGE + 1, 2, 5, None, None, None, None)]
    given = extracts([tracked(1, 1), *later[0]], [half, *later[1]], SPLIT_COLUMNS)
    rows = staged(spark, given, known)
    assert only(rows, "change_oper", "reject_reason") == [(None, NOT_JOINED), ("D", None)]


def test_both_images_in_a_joined_extract_may_be_split(spark: SparkSession) -> None:
    halves = [
        changed(1, operation, *values, split=split)
        for operation in (3, 4)
        for values, split in (
            ((1, "lo", None, None, None), (9, 0, 1)),
            ((None, "ng", None, None, "x"), (0, 0, 0)),
        )
    ]
    # another change beside it is none of their concern, nor are two contents of one change
    changes = [*halves, changed(2, 1, 2, *"abcd"), changed(2, 1, 2, *"abce")]
    columns = {**SPLIT_COLUMNS, "scan": "string"}
    given = extracts([tracked(1, 4, 2), tracked(2, 1)], changes, columns)
    rows = staged(spark, given, {"key": ["id"]})
    assert only(rows, "change_seq", "change_oper", "reject_reason") == [
        *[(seq(1), None, NOT_JOINED)] * 2,
        *[(seq(2), "I", None)] * 2,
    ]


# --- chains of more than two records


@pytest.mark.parametrize("last_position", [0, 13])
def test_a_chain_of_four_records(spark: SparkSession, last_position: int) -> None:
    """Each is cut in another way: in a text, in the bytes, and inside an element of the array."""
    records = [
        changed(1, 1, 1, "a long", None, None, None, split=(9, 0, 1)),
        changed(1, 1, None, " name", b"\x01", None, None, split=(10, 0, 1)),
        changed(1, 1, None, None, b"\x02\x03\x04", "mon;tue;w;", None, split=(11, 2, 1)),
        changed(1, 1, None, None, None, ";;ed;thu", "a note", split=(last_position, 0, 0)),
    ]
    settings = {
        "key": ["id"],
        "extract": "abl",
        "first_user_field": FIRST_FIELD,
        "arrays": ["days"],
    }
    for given in (records, records[::-1], records[2:] + records[:2]):
        (row,) = staged(spark, extracts([tracked(1, 1)], given, SPLIT_COLUMNS), settings)
        assert [row[name] for name in SPLIT_COLUMNS] == [*WHOLE[:3], DAYS, WHOLE[4]]
        assert (row["change_oper"], row["reject_reason"]) == ("I", None)
        assert len(json.loads(row["raw_record"])["change"]) == 4


def test_a_chain_waits_for_its_last_record(spark: SparkSession) -> None:
    begun = [
        changed(1, 1, 1, "a long name", None, None, None, split=(10, 0, 0)),
        changed(1, 1, None, None, b"\x01", None, None, split=(11, 0, 0)),
    ]
    last = changed(1, 1, None, None, None, None, "a note", split=(0, 0, 0))
    settings = {"key": ["id"], "extract": "abl", "first_user_field": FIRST_FIELD}
    waiting = staged(spark, extracts([tracked(1, 1)], begun, SPLIT_COLUMNS), settings)
    assert only(waiting, "change_oper", "reject_reason") == [("N", None)]
    (row,) = staged(spark, extracts([tracked(1, 1)], [*begun, last], SPLIT_COLUMNS), settings)
    assert only([row], "change_oper", *SPLIT_COLUMNS) == [
        ("I", 1, "a long name", b"\x01", None, "a note")
    ]
