"""What the macros for OpenEdge say when they stop: macro, table, setting, what it got, the fix."""

from __future__ import annotations

import json
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from tests.macro_renderer import CompilationError, MacroRenderer
from tests.openedge_staging import (
    CHANGES,
    DATA,
    TRACKING,
    settings_of,
    staging_sql,
    vectors,
)

COLUMNS = {"id": "int", "name": "string"}
EXTRACTS = {"tracking": TRACKING, "changes": {**CHANGES, **COLUMNS}}


@cache
def renderer() -> MacroRenderer:
    return MacroRenderer()


def error_of(
    settings: dict[str, Any], extracts: dict[str, dict[str, str]] = EXTRACTS, **arguments: Any
) -> str:
    with pytest.raises(CompilationError) as caught:
        staging_sql(extracts, {"key": ["id"], **settings}, **arguments)
    return str(caught.value)


def without(name: str, column: str) -> dict[str, dict[str, str]]:
    kept = {key: kind for key, kind in EXTRACTS[name].items() if key != column}
    return {**EXTRACTS, name: kept}


@pytest.mark.parametrize(
    ("settings", "extracts", "parts"),
    [
        ({"table_number": None}, EXTRACTS, ["`table_number`", "_File._File-Number"]),
        ({"arrays": ["days"]}, EXTRACTS, ["`arrays`", "`days`", "id, name"]),
        ({"mask_columns": ["name"]}, EXTRACTS, ["`mask_columns`", "leaves out `id`"]),
        ({}, without("changes", "_Operation"), ["`_Operation`", "underscores"]),
        ({}, without("changes", "_Change-Sequence"), ["`_Change-Sequence`"]),
        ({"extract": "abl"}, without("changes", "_Fragment"), ["`_Fragment`"]),
        (
            {},
            without("tracking", "_Change-FieldMap"),
            ["`_Change-FieldMap`", "`sparse_updates: false`"],
        ),
        ({}, without("tracking", "_Time-Stamp"), ["`_Time-Stamp`"]),
        (
            {"partition_column": "p"},
            without("tracking", "_Partition-Id"),
            ["`_Partition-Id`"],
        ),
        ({}, {**EXTRACTS, "changes": CHANGES}, ["begin with `_`", "fields of the policy"]),
        (
            {},
            {**EXTRACTS, "tracking": {**TRACKING, "_Change-FieldMap": "int"}},
            ["`_Change-FieldMap`", "type int", "binary, string"],
        ),
        ({"base": {"kind": "frozen"}}, EXTRACTS, ["`base`", "names no base table"]),
        ({}, {**EXTRACTS, "changes": {**CHANGES, "change_seq": "int"}}, ["`change_seq`"]),
        ({"partition_column": "arrival"}, EXTRACTS, ["`arrival`", "renames"]),
    ],
)
def test_a_table_that_cannot_be_staged(
    settings: dict[str, Any], extracts: dict[str, dict[str, str]], parts: list[str]
) -> None:
    message = error_of(settings, extracts)
    assert message.startswith("`stage_openedge`: ")
    assert [part for part in ["erp.", "Fix: ", *parts] if part not in message] == [], message


@pytest.mark.parametrize("second", ["_Operation_1", "_operation2", "_change-operation"])
def test_a_joined_extract_with_two_operations(second: str) -> None:
    """At level 3 they differ: the tracking row of a before image is that of the update."""
    joined = {"changes": {"_Time-Stamp": "timestamp", **EXTRACTS["changes"], second: "int"}}
    joined["changes"]["changed_fields"] = "string"
    message = error_of({"table_number": None}, joined)
    parts = ["erp.changes", "`policy_level`", "`operation_column`", "_Operation", second, "Fix: "]
    assert [part for part in parts if part not in message] == [], message
    for settings in ({"policy_level": 2}, {"operation_column": second.upper()}):
        given = {"key": ["id"], "table_number": None, **settings}
        assert staging_sql(joined, given)
    message = error_of({"operation_column": "_Operation_9"}, joined)
    assert "`_Operation_9`" in message and second in message


@pytest.mark.parametrize("extract", ["sql", "abl"])
def test_views_have_no_named_windows(extract: str) -> None:
    """Iceberg's views are read after Spark has replaced names of windows by their definitions."""
    settings = {"key": ["id"], "extract": extract, "first_user_field": 9}
    assert " window " not in " ".join(staging_sql(EXTRACTS, settings).split())


def test_policies_of_another_table() -> None:
    settings = {"key": ["id"], "other_policies": ["it's", " b "]}
    sql = staging_sql(EXTRACTS, settings)
    condition = r"where `_Source-Table-Number` = 12 and coalesce(trim(`_Policy-Id`), '') not in"
    # where tracking rows are read, and where the newest place is queried
    assert sql.count(condition + r" ('it\'s', 'b')") == 2
    message = error_of(settings, without("tracking", "_Policy-Id"))
    assert "`_Policy-Id`" in message
    joined = {"changes": {**TRACKING, **EXTRACTS["changes"]}}
    message = error_of({"policy_level": 2, **settings}, joined)
    assert "`other_policies`" in message and "Fix: " in message


def test_a_field_map_is_not_needed_where_updates_hold_every_value() -> None:
    extracts = without("tracking", "_Change-FieldMap")
    assert staging_sql(extracts, {"key": ["id"], "sparse_updates": False})


@pytest.mark.parametrize("level", vectors("policy_levels"), ids=lambda level: level["name"])
def test_policy_levels(level: dict[str, str]) -> None:
    """Levels 2 and 3 have values: one image of an update, or two. The others have no history."""
    settings = {"policy_level": int(level["level"])}
    images = int(level["change_rows_per_update"])
    assert settings_of(settings)["before_images"] is (images == 2)
    if images:
        assert staging_sql(EXTRACTS, {"key": ["id"], **settings})
        return
    message = error_of(settings)
    for part in ("`policy_level` of table erp.changes", level["level"], "no history", "2, 3"):
        assert part in message
    assert "openedge_activity" in message
    # what is left of it is in the tracking table: with a field map, which fields, else who and when
    assert ("getbit" in activity_sql(level["has_field_map"] == "yes")) is (
        level["has_field_map"] == "yes"
    )


def activity_sql(has_field_map: bool = True, **changed: Any) -> str:
    tracking = TRACKING if has_field_map else without("tracking", "_Change-FieldMap")["tracking"]
    settings = {"policy_level": 1, **changed}
    render = MacroRenderer(
        _raw_columns=lambda relation: [
            {"name": name, "data_type": kind} for name, kind in tracking.items()
        ],
        _settings=lambda source_name, name: settings_of(
            settings, COLUMNS if has_field_map else None, name
        ),
    )
    return str(render("openedge_activity", "erp", "tracking", changed.pop("tables", ["changes"])))


def test_pro2_policies_have_activity_and_their_marks_make_no_difference() -> None:
    """Pro2 works with level 0, and marks in the tracking table what it has processed."""
    facts = {row["item"]: row["value"] for row in vectors("pro2")}
    assert "openedge_activity" in error_of(
        {"policy_level": int(facts["policy level that it reads"])}
    )
    mark = facts["column that it marks as processed"]
    sql = staging_sql(EXTRACTS, {"key": ["id"]})
    hashed = sql.split("as hash")[0].split("xxhash64(")[-1]
    assert "_Operation" in hashed
    assert f"`{mark}`" in sql and mark.lower() not in hashed.lower()
    assert int(facts["days after which it purges by default"]) > 0


def test_columns_of_consumers_are_openedges_own() -> None:
    rules = json.loads((DATA / "consumer_rules.json").read_text(encoding="utf-8"))
    layout = json.loads((DATA / "joined_extract.json").read_text(encoding="utf-8"))
    render = renderer()
    own = [*rules["control_columns"], *layout["columns"]]
    assert [name for name in own if not render("_is_openedge_column", name)] == []
    assert not render("_is_openedge_column", "operation")


@pytest.mark.parametrize("file", ["tracking_columns", "change_table_columns"])
def test_documented_columns_are_known_in_every_spelling(file: str) -> None:
    render = renderer()
    for row in vectors(file):
        names = {row["column"], row.get("name_in_older_databases") or row["column"]}
        names |= {name.replace("-", "_") for name in names}
        for name in names | {name.lower() for name in names}:
            found = render("_openedge_own_columns", [{"name": name, "data_type": "string"}])
            assert len(found) == 1, name


def test_activity_needs_the_tables_numbers() -> None:
    with pytest.raises(CompilationError) as caught:
        activity_sql(table_number=None)
    for part in ("`openedge_activity`", "erp.changes", "`table_number`", "Fix: "):
        assert part in str(caught.value)


def test_activity_takes_a_list_of_tables() -> None:
    render = renderer()
    with pytest.raises(CompilationError, match="is a list of source tables of erp, got changes"):
        render("openedge_activity", "erp", "tracking", "changes")


# --- the guard of the sequence


def check_sequences(
    policies: list[tuple[Any, ...]], last: str | None = None, queries: list[str] | None = None
) -> str:
    """The error that a query of policies leads to; "" when there is none. `queries` gets it."""
    settings = settings_of({"key": ["id"], "look_back": 100})
    own = {"policy_id": {"name": "_Policy-Id", "data_type": "string"}}

    def answer(statement: str) -> SimpleNamespace:
        if queries is not None:
            queries.append(statement)
        return SimpleNamespace(rows=policies)

    own["time_stamp"] = {"name": "_Time-Stamp", "data_type": "timestamp"}
    render = MacroRenderer(
        _raw_columns=lambda relation: [own],
        _openedge_progress=lambda: (
            {"change_seq": last, "changed_at": "2026-03-02"} if last else None
        ),
        run_query=answer,
    )
    tracked = {"own": own, "sequence": "s", "where": ""}
    try:
        render("_check_openedge_sequences", tracked, "erp.tracking", settings)
    except CompilationError as error:
        return str(error)
    return ""


def test_policies_one_after_the_other_are_no_restart() -> None:
    assert (
        check_sequences([("a", 1, 500, None), ("b", 501, 900, None)], "0000000000000000900") == ""
    )
    assert check_sequences([]) == ""


def test_a_policy_that_restarts_the_sequence() -> None:
    message = check_sequences([("a", 1, 500, None), ("b", 1, 20, None)])
    for part in (
        "erp.changes",
        "has restarted",
        "come to 500 under policy a",
        "policy b",
        "Fix: ",
    ):
        assert part in message


def test_a_sequence_far_behind_the_log() -> None:
    message = check_sequences([("b", 1, 20, 1)], "0000000000000000900")
    for part in (
        "erp.changes",
        "has restarted",
        "Policy b",
        "up to 900",
        "look_back: 100",
        "Fix: ",
    ):
        assert part in message


@pytest.mark.parametrize(
    ("last", "place"), [(900, 800), (250, 150), (150, 75), (100, 50), (60, 30), (1, 0)]
)
def test_how_far_behind_the_log_a_new_change_may_be(last: int, place: int) -> None:
    """As far as the look-back, but not beyond the middle of what the log has read."""
    queries: list[str] = []
    check_sequences([], f"{last:019d}", queries)
    (query,) = queries
    assert f"if(_sequence < {place} and _time_stamp > timestamp '2026-03-02'," in query
