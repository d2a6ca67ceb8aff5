"""The plant's extracts, without Spark: what they hold, and that dbt declares the same."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from afterimage_demo.generate import DemoBatch
from afterimage_demo.openedge import CHANGE_TYPES, TABLES, TRACKING, TRACKING_TYPES, deliveries
from afterimage_demo.systems import SYSTEMS
from dbt_afterimage.settings import parse_settings

SOURCES = Path(__file__).parents[2] / "demo/models/staging/openedge/_openedge__sources.yml"


@cache
def extracts() -> list[DemoBatch]:
    return deliveries(1, 7, 2)


def declared() -> dict[str, Any]:
    (source,) = yaml.safe_load(SOURCES.read_text(encoding="utf-8"))["sources"]
    return {"source": source, **{table["name"]: table for table in source["tables"]}}


def test_the_same_arguments_give_the_same_data() -> None:
    assert [batch.tables for batch in deliveries(1, 7, 2)] == [batch.tables for batch in extracts()]
    assert deliveries(1, 8, 2)[0].tables != extracts()[0].tables


def test_dbt_declares_the_columns_that_land() -> None:
    tables = declared()
    for name, table in TABLES.items():
        columns = {
            column["name"]: column["data_type"] for column in tables[f"cdc_{name}"]["columns"]
        }
        own = CHANGE_TYPES if table.level > 1 else {}
        types = table.types | dict.fromkeys(table.array, "array<string>")
        assert columns == own | types
        assert [*columns] == [*own, *types]
    tracking = {column["name"]: column["data_type"] for column in tables[TRACKING]["columns"]}
    assert tracking == TRACKING_TYPES


def test_the_settings_are_those_of_the_policies() -> None:
    tables = declared()
    whole = tables["source"]["config"]["meta"]
    for name, table in TABLES.items():
        entry = tables[f"cdc_{name}"]
        columns = {column["name"]: column for column in entry["columns"]}
        given = {"source_name": "plant", "name": name, "source_meta": whole, "columns": columns}
        settings: Any = parse_settings({**given, "meta": entry["config"]["meta"]})
        assert settings["policy_level"] == table.level
        assert settings["table_number"] == table.number
        assert settings["arrays"] == [*table.array]
        assert bool(settings["partition_column"]) == table.has_partitions
        assert settings["before_images"] is (table.level == 3)
    assert SYSTEMS["openedge"].tables == ("operators", "deliveries")


def test_an_extract_begins_before_the_last_one_ended() -> None:
    first, second = extracts()
    for table in TABLES.values():
        sequences = [
            {
                row["_Change-Sequence"]
                for row in batch.tables[TRACKING].to_pylist()
                if row["_Source-Table-Number"] == table.number
            }
            for batch in (first, second)
        ]
        again = sequences[0] & sequences[1]
        assert again
        # a lower sequence becomes visible after higher ones
        assert [number for number in sequences[1] - sequences[0] if number < max(sequences[0])]


def test_the_first_extract_ends_with_half_a_change() -> None:
    first, second = extracts()
    for name, table in TABLES.items():
        if table.level < 2:
            continue
        tracked = {
            row["_Change-Sequence"]
            for row in first.tables[TRACKING].to_pylist()
            if row["_Source-Table-Number"] == table.number and row["_Operation"] in (1, 2, 4)
        }
        changed = set(first.tables[f"cdc_{name}"]["_Change-Sequence"].to_pylist())
        waiting = tracked - changed - {2}
        assert waiting == {max(tracked)}
        assert waiting <= set(second.tables[f"cdc_{name}"]["_Change-Sequence"].to_pylist())


def test_updates_leave_out_what_they_do_not_change() -> None:
    rows = extracts()[0].tables["cdc_operators"].to_pylist()
    images = Counter(row["_Operation"] for row in rows)
    assert images[3] == images[4] > 50
    assert all(row["operator-id"] is not None for row in rows)
    assert any(row["last-name"] is None for row in rows if row["_Operation"] == 4)


def test_a_truncate_is_one_operation_on_each_partition() -> None:
    rows = [row for batch in extracts() for row in batch.tables[TRACKING].to_pylist()]
    ended = [row["_Partition-Id"] for row in rows if row["_Operation"] == 7]
    assert ended == [0, 1, 2]
