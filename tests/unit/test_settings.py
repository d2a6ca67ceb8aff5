"""A source table's settings: what they become, and what each error says."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from dbt_afterimage.sequence import duration_seconds
from dbt_afterimage.settings import SettingsError, moment_kind, parse_settings

PRESETS = Path(__file__).parents[2] / "src/dbt_afterimage/settings/presets"
TABLE = "erp.orders__ct"
POSITION = "20260302080000000000000000000000012"

DEFAULTS = {
    "system": "qlik_change_table",
    "key": ["order_id"],
    "before_images": True,
    "track": [],
    "ignore": [],
    "base": None,
    "look_back": "15 minutes",
    "arrival_look_back": 1,
    "on_reject": "quarantine",
    "on_gap": "warn",
    "keep_deleted": False,
    "auto_compact": True,
    "history_metadata": [],
    "task": None,
    "landing_delay": None,
    "optional_columns": {"stream_position": "string"},
    "lob_columns": [],
    "header_prefix": "header__",
    "header_columns": [],
    "mask_byte_order": "auto",
    "mask_first_data_bit": "auto",
    "mask_columns": [],
    "source_table": "erp.orders__ct",
    "change_seq_form": "35 digits",
    "declared_columns": [],
    "data_columns": [],
    "pairs_before_images": True,
    "has_halves": False,
    "without_before_images": "before_images: false",
}


def source(
    own: Any,
    of_source: Any = None,
    columns: dict[str, str | None] | None = None,
) -> dict[str, Any]:
    """A table's entry as dbt 1.11 puts it into its graph (seen in a manifest)."""
    meta = {"afterimage": own}
    return {
        "source_name": "erp",
        "name": "orders__ct",
        "meta": meta,
        "config": {"enabled": True, "meta": meta},
        "source_meta": {} if of_source is None else {"afterimage": of_source},
        "columns": {
            name: {"name": name, "data_type": data_type, "description": ""}
            for name, data_type in (columns or {}).items()
        },
    }


def parse(text: str, columns: dict[str, str | None] | None = None) -> Any:
    """Settings of a table that has `text` (YAML) over a system and a key."""
    given = {"system": "qlik_change_table", "key": ["order_id"], **(yaml.safe_load(text) or {})}
    return parse_settings(source(given, columns=columns))


def error_of(text: str, columns: dict[str, str | None] | None = None) -> str:
    with pytest.raises(SettingsError) as caught:
        parse(text, columns)
    return str(caught.value)


# --- what settings become


def test_defaults() -> None:
    assert parse("") == DEFAULTS


def test_everything_set() -> None:
    text = f"""
        before_images: false
        track: [status]
        base:
          kind: frozen
          load_id: second
          position: "{POSITION}"
          loaded_at: "2026-03-02 07:30:00"
        look_back: 2 hours
        arrival_look_back: 3
        on_reject: fail
        on_gap: ignore
        keep_deleted: true
        auto_compact: false
        history_metadata: [stream_position, username]
        task: erp_to_lake
        landing_delay: 10 minutes
        lob_columns: [remark]
        header_prefix: hdr_
        header_columns: [UserName, host]
        mask_byte_order: lsb_first
        mask_first_data_bit: 7
        mask_columns: [order_id, status, remark]
    """
    assert parse(text) == {
        **DEFAULTS,
        "before_images": False,
        "pairs_before_images": False,
        "track": ["status"],
        "base": {
            "kind": "frozen",
            "load_id": "second",
            "position": POSITION,
            "loaded_at": "2026-03-02 07:30:00",
        },
        "look_back": "2 hours",
        "arrival_look_back": 3,
        "on_reject": "fail",
        "on_gap": "ignore",
        "keep_deleted": True,
        "auto_compact": False,
        "history_metadata": ["stream_position", "username"],
        "task": "erp_to_lake",
        "landing_delay": "10 minutes",
        "optional_columns": {"stream_position": "string", "username": "string", "host": "string"},
        "lob_columns": ["remark"],
        "header_prefix": "hdr_",
        "header_columns": ["username", "host"],
        "mask_byte_order": "lsb_first",
        "mask_first_data_bit": 7,
        "mask_columns": ["order_id", "status", "remark"],
    }


def test_the_key_is_optional() -> None:
    assert parse_settings(source({"system": "qlik_change_table"}))["key"] == []


def test_the_header_prefix_may_be_empty() -> None:
    assert parse("header_prefix: ''")["header_prefix"] == ""


def test_a_table_inherits_what_its_source_sets_and_may_differ() -> None:
    of_source = {"system": "qlik_change_table", "look_back": "1 hour", "on_reject": "fail"}
    settings = parse_settings(source({"key": ["order_id"], "look_back": "1 day"}, of_source))
    assert settings == {**DEFAULTS, "look_back": "1 day", "on_reject": "fail"}


@pytest.mark.parametrize("own", [None, {}], ids=["empty", "no settings"])
def test_a_table_may_take_everything_from_its_source(own: Any) -> None:
    whole = {"system": "qlik_change_table", "key": ["order_id"]}
    assert parse_settings(source(own, whole)) == DEFAULTS


def test_meta_outside_of_config_counts_too() -> None:
    entry = source(None)
    entry["meta"] = {"afterimage": {"system": "qlik_change_table", "key": ["order_id"]}}
    entry["config"] = {"enabled": True, "meta": {}}
    assert parse_settings(entry) == DEFAULTS


def test_declared_columns_keep_their_order_and_types() -> None:
    columns = {"order_id": "bigint", "AMOUNT": "decimal(10,2)", "remark": None}
    assert parse("", columns)["declared_columns"] == [
        {"name": "order_id", "data_type": "bigint"},
        {"name": "AMOUNT", "data_type": "decimal(10,2)"},
        {"name": "remark", "data_type": None},
    ]


@pytest.mark.parametrize(
    ("prefix", "names", "data"),
    [
        ("header__", ["header__change_seq", "Header__x", "partition_name", "id"], ["id"]),
        ("hdr_", ["HDR_change_oper", "header__change_seq"], ["header__change_seq"]),
        ("", ["change_seq", "OPERATION", "Partition_Name", "header__id"], ["header__id"]),
    ],
)
def test_header_columns_are_no_data_columns(prefix: str, names: list[str], data: list[str]) -> None:
    settings = parse(f"key: []\nheader_prefix: '{prefix}'", dict.fromkeys(names, "string"))
    assert [column["name"] for column in settings["data_columns"]] == data


def test_the_entry_is_not_changed() -> None:
    entry = source({"key": ["order_id"]}, {"system": "qlik_change_table"})
    settings = parse_settings(entry)
    settings["key"].append("other")
    assert entry == source({"key": ["order_id"]}, {"system": "qlik_change_table"})
    assert parse_settings(entry)["key"] == ["order_id"]


# --- values that YAML reads as something else


def test_35_digits_are_text_again() -> None:
    base = parse(f"base: {{kind: frozen, position: {POSITION}}}")["base"]
    assert base["position"] == POSITION


@pytest.mark.parametrize(
    ("load_id", "becomes"),
    [
        ("2026-03-01", "2026-03-01"),
        # as dbt itself writes it in its manifest, from which it reads it in the next run
        ("2026-03-01 10:00:00", "2026-03-01T10:00:00"),
        ("'2026-03-01 10:00:00'", "2026-03-01 10:00:00"),
        ("7", "7"),
    ],
)
def test_a_load_id_is_text(load_id: str, becomes: str) -> None:
    assert parse(f"base: {{kind: frozen, load_id: {load_id}}}")["base"]["load_id"] == becomes


@pytest.mark.parametrize(
    "loaded_at",
    [
        "2026-03-02",
        "2026-03-02 07:30:00",
        "'2026-03-02 07:30:00'",
        "'2026-03-02T07:30:00.123'",
        "'2026-03-02 07:30:00Z'",
        "'2026-03-02 07:30:00+01:00'",
        "'2026-03-02 07:30-18:00'",
    ],
)
def test_loaded_at_is_a_date_or_a_time(loaded_at: str) -> None:
    given = yaml.safe_load(loaded_at)
    becomes = given.isoformat() if isinstance(given, date | datetime) else given
    assert parse(f"base: {{kind: frozen, loaded_at: {loaded_at}}}")["base"]["loaded_at"] == becomes


# --- durations


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1 second", 1),
        ("15 minutes", 900),
        ("2  hours", 7200),
        ("1 day", 86400),
        ("0 minutes", 0),
    ],
)
def test_durations(text: str, seconds: int) -> None:
    assert duration_seconds(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "15",
        "minutes",
        "15 m",
        "1.5 hours",
        "-1 day",
        "1 week",
        "15 minutess",
        "² days",
        "1 1 day",
    ],
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; allowed: a number and one of"):
        duration_seconds(text)


# --- moments


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (POSITION, "change_seq"),
        ("0" * 35, "change_seq"),
        ("2026-03-02", "timestamp"),
        ("2026-03-02 07:30", "timestamp"),
        ("2026-03-02T07:30:00.12Z", "timestamp"),
        ("2026-03-02 07:30:00+01:00", "timestamp"),
        (POSITION[1:], None),
        (f"{POSITION}0", None),
        ("٢" * 35, None),
        ("20260302", None),
        ("2026-02-30", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_moments(text: str, kind: str | None) -> None:
    assert moment_kind(text) == kind
    assert moment_kind(text, "qlik_change_table") == kind


# --- errors: each names the table, the setting, what it got, what is allowed, and the fix


def has_all(message: str, *parts: str) -> None:
    for part in (TABLE, *parts):
        assert part in message, f"{part!r} is not in: {message}"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("key: order_id", ["`key`", "'order_id'", "a list of column names", "Fix: "]),
        ("key: [order_id, 7]", ["`key`", "7", "a list of column names", "Fix: "]),
        ("key: [order_id, order_id]", ["`key`", "'order_id' twice", "Fix: "]),
        ("before_images: perhaps", ["`before_images`", "'perhaps'", "true, false", "Fix: "]),
        ("look_back: 15", ["`look_back`", "15", "days, such as `15 minutes`", "Fix: "]),
        ("look_back: 15 parsecs", ["`look_back`", "15 parsecs", "such as `15 minutes`", "Fix: "]),
        ("look_back: ", ["`look_back`", "None", "Fix: "]),
        ("arrival_look_back: -1", ["`arrival_look_back`", "-1", "a whole number", "Fix: "]),
        ("arrival_look_back: x", ["`arrival_look_back`", "'x'", "a whole number", "Fix: "]),
        ("on_reject: ignore", ["`on_reject`", "'ignore'", "Allowed: quarantine, fail", "Fix: "]),
        ("on_gap: stop", ["`on_gap`", "'stop'", "Allowed: fail, warn, ignore", "Fix: "]),
        (
            "history_metadata: [transaction_last_event]",
            [
                "`history_metadata`",
                "names 'transaction_last_event'",
                "Allowed: stream_position",
                "Fix: ",
            ],
        ),
        (
            "{history_metadata: [host], header_columns: [username]}",
            ["`history_metadata`", "names 'host'", "Allowed: stream_position, username", "Fix: "],
        ),
        ("header_columns: username", ["`header_columns`", "'username'", "a list", "Fix: "]),
        (
            "header_columns: [Change_Seq]",
            ["`header_columns`", "names 'change_seq'", "Qlik's own header columns", "Fix: "],
        ),
        (
            "header_columns: [UserName, username]",
            ["`header_columns`", "'username' twice", "Fix: "],
        ),
        ("header_columns: [partition_name]", ["`header_columns`", "Qlik's own header columns"]),
        (
            "header_columns: [user name]",
            ["`header_columns`", "names 'user name'", "Allowed: letters", "Fix: "],
        ),
        ("auto_compact: weekly", ["`auto_compact`", "'weekly'", "true, false", "Fix: "]),
        ("task: ''", ["`task`", "''", "Fix: "]),
        ("task: a\nlanding_delay: soon", ["`landing_delay`", "'soon'", "15 minutes", "Fix: "]),
        ("landing_delay: 1 hour", ["'1 hour' and there is no `task`", "set `task`"]),
        ("keep_deleted: perhaps", ["`keep_deleted`", "'perhaps'", "true, false", "Fix: "]),
        ("header_prefix: 7", ["`header_prefix`", "7", "Allowed: text", "Fix: "]),
        (
            "mask_byte_order: big",
            ["`mask_byte_order`", "'big'", "Allowed: auto, msb_first, lsb_first", "Fix: "],
        ),
        (
            "mask_first_data_bit: seven",
            ["`mask_first_data_bit`", "'seven'", "Allowed: auto, a whole number", "Fix: "],
        ),
        (
            "mask_first_data_bit: -1",
            ["`mask_first_data_bit`", "-1", "Allowed: auto, a whole number", "Fix: "],
        ),
        (
            "base: live",
            ["`base`", "'live'", "Allowed: a mapping, such as {kind: frozen}", "Fix: "],
        ),
        ("base: {load_id: a}", ["`base.kind`", "missing", "Allowed: frozen, live", "Fix: "]),
        ("base: {kind: hot}", ["`base.kind`", "'hot'", "Allowed: frozen, live", "Fix: "]),
        (
            "base: {kind: live, position: 12}",
            ["`base.position`", "12", "Allowed: 35 digits", "in quotes", "Fix: "],
        ),
        (
            "base: {kind: live, loaded_at: '2026-03-02 07:30+18:30'}",
            ["`base.loaded_at`", "07:30+18:30", "Fix: "],
        ),
        (
            "base: {kind: live, loaded_at: yesterday}",
            ["`base.loaded_at`", "'yesterday'", "such as 2026-03-02 07:30:00", "Fix: "],
        ),
        ("base: {kind: live, load_id: }", ["`base.load_id`", "None", "Allowed: text", "Fix: "]),
    ],
)
def test_a_value_that_is_not_allowed(text: str, parts: list[str]) -> None:
    message = error_of(text)
    has_all(message, *parts)
    assert "\n" not in message, "one mistake is one line"


def test_an_unknown_setting_comes_with_a_suggestion() -> None:
    message = error_of("look_bak: 15 minutes")
    has_all(message, "unknown setting `look_bak`", "Did you mean `look_back`?", "Allowed: ", "Fix:")
    assert "mask_byte_order" in message


def test_an_unknown_setting_of_the_base_comes_with_a_suggestion() -> None:
    message = error_of("base: {kind: live, load: x}")
    has_all(message, "`base.load`", "Did you mean `load_id`?", "kind, load_id, position, loaded_at")


def test_an_unknown_setting_that_resembles_none() -> None:
    message = error_of("zzz: 1")
    has_all(message, "unknown setting `zzz`", "Allowed: ")
    assert "Did you mean" not in message


def test_a_setting_that_yaml_reads_as_true() -> None:
    has_all(error_of("on: fail"), "unknown setting `True`")


def test_all_mistakes_are_reported_at_once() -> None:
    message = error_of("look_bak: 1 day\non_reject: ignore\nbase: {kind: hot}")
    assert sorted(line.split("`")[1] for line in message.splitlines()) == [
        "base.kind",
        "look_bak",
        "on_reject",
    ]


def test_track_and_ignore_exclude_each_other() -> None:
    message = error_of("track: [status]\nignore: [replicated_at]")
    has_all(message, "`track`", "`ignore`", "['status']", "['replicated_at']", "Fix: ")


def test_track_of_the_source_and_ignore_of_the_table_exclude_each_other_too() -> None:
    whole = {"system": "qlik_change_table", "track": ["status"]}
    with pytest.raises(SettingsError, match="exclude each other"):
        parse_settings(source({"ignore": ["replicated_at"]}, whole))


def test_a_live_base_needs_before_images() -> None:
    message = error_of("before_images: false\nbase: {kind: live}")
    has_all(message, "`base.kind`", "live", "`before_images`", "Fix: ")


def test_a_frozen_base_needs_no_before_images() -> None:
    assert parse("before_images: false\nbase: {kind: frozen}")["base"]["kind"] == "frozen"


@pytest.mark.parametrize("setting", ["key", "track", "ignore", "lob_columns"])
def test_a_column_that_is_not_declared(setting: str) -> None:
    columns: dict[str, str | None] = {
        "header__change_seq": "string",
        "order_id": "bigint",
        "status": "string",
    }
    message = error_of(f"{setting}: [statsu]", columns)
    has_all(message, f"`{setting}`", "'statsu'", "Did you mean `status`?", "Fix: ")


def test_mask_columns_may_name_a_column_that_is_gone() -> None:
    columns: dict[str, str | None] = {"order_id": "bigint", "status": "string"}
    settings = parse("mask_columns: [order_id, dropped, status]", columns)
    assert settings["mask_columns"] == ["order_id", "dropped", "status"]


def test_encodings_name_columns_that_are_there() -> None:
    of_documents = "json_text: value\njson_fields: after map<string, string>\nafter: record.after\n"
    columns: dict[str, str | None] = {"order_id": "bigint", "changed": "timestamp"}
    given = FEED + of_documents + "encodings: {Changed: milliseconds}"
    with pytest.raises(SettingsError, match=r"`encodings` names the column 'Changed'.*`changed`"):
        feed(given, columns)
    assert feed(given.replace("Changed", "changed"), columns)["encodings"]
    # of a source, they hold for the tables that have the column
    whole = {"system": "change_feed", **yaml.safe_load(given)}
    of_source: Any = parse_settings(source({"key": ["order_id"]}, whole, columns))
    assert of_source["encodings"]


def test_a_column_in_other_letters_is_reported() -> None:
    columns: dict[str, str | None] = {"header__change_seq": "string", "order_id": "bigint"}
    message = error_of("key: [ORDER_ID]", columns)
    has_all(message, "`key`", "'ORDER_ID'", "Did you mean `order_id`?")


def test_a_column_whose_type_is_declared_may_be_the_only_one() -> None:
    settings = parse("key: [order_id]\ntrack: [status]", {"price": "decimal(9,2)"})
    assert settings["declared_columns"] == [{"name": "price", "data_type": "decimal(9,2)"}]


def test_openedge_a_column_whose_type_is_declared_may_be_the_only_one() -> None:
    assert openedge("arrays: [days]", {"price": "decimal(9,2)"})["key"] == ["order_id"]


@pytest.mark.parametrize("columns", [{"order_id": "bigint", "status": "string"}, {}])
def test_a_key_column_cannot_be_ignored(columns: dict[str, str | None]) -> None:
    has_all(error_of("ignore: [order_id]", columns), "`ignore`", "'order_id'", "Fix: ")


@pytest.mark.parametrize("own", [None, {}])
def test_a_table_without_settings(own: Any) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(source(own))
    has_all(str(caught.value), "`meta.afterimage`", "Fix: ", "qlik_change_table")


@pytest.mark.parametrize("own", ["qlik_change_table", ["order_id"], 7, True])
@pytest.mark.parametrize("level", ["table", "source"])
def test_settings_that_are_no_mapping(own: Any, level: str) -> None:
    whole = {"system": "qlik_change_table", "key": ["order_id"]}
    entry = source(own, whole) if level == "table" else source(whole, own)
    with pytest.raises(SettingsError) as caught:
        parse_settings(entry)
    has_all(str(caught.value), "`meta.afterimage`", repr(own), "a mapping", level, "Fix: ")


@pytest.mark.parametrize(
    ("given", "got"),
    [({"key": ["a"]}, "None"), ({"system": "qlick"}, "'qlick'"), ({"system": ["x"]}, "['x']")],
)
def test_a_system_that_is_missing_or_unknown(given: dict[str, Any], got: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(source(given))
    has_all(str(caught.value), "`system`", got, "allowed: qlik_change_table", "Fix: ")


def test_a_misspelt_system_comes_with_a_suggestion() -> None:
    with pytest.raises(SettingsError, match="Did you mean `qlik_change_table`"):
        parse_settings(source({"system": "qlik_change_tables"}))


def test_the_demo_settings_are_valid() -> None:
    path = Path(__file__).parents[2] / "demo/models/staging/qlik/_qlik__sources.yml"
    declared = yaml.safe_load(path.read_text(encoding="utf-8"))["sources"][0]
    whole = declared["config"]["meta"]["afterimage"]
    change_tables = [table for table in declared["tables"] if table["name"].endswith("__ct")]
    assert len(change_tables) == 5
    for table in change_tables:
        columns = {column["name"]: column.get("data_type") for column in table["columns"]}
        settings = parse_settings(source(table["config"]["meta"]["afterimage"], whole, columns))
        assert settings["key"], table["name"]
        assert all(column["data_type"] for column in settings["declared_columns"]), table["name"]


# --- OpenEdge


def openedge(text: str, columns: dict[str, str | None] | None = None) -> Any:
    given = {"system": "openedge", "key": ["order_id"], **(yaml.safe_load(text) or {})}
    return parse_settings(source(given, columns=columns))


def test_a_policys_id_may_look_like_a_number() -> None:
    assert openedge("other_policies: [3, 'AbC==']")["other_policies"] == ["3", "AbC=="]


def test_openedge_defaults() -> None:
    assert openedge("table_number: 12") == {
        **{
            name: DEFAULTS[name] for name in ("key", "track", "ignore", "base", "arrival_look_back")
        },
        **{
            name: DEFAULTS[name] for name in ("on_reject", "on_gap", "keep_deleted", "auto_compact")
        },
        "history_metadata": [],
        "task": None,
        "landing_delay": None,
        "optional_columns": {"source_user": "string"},
        "system": "openedge",
        "before_images": True,
        "look_back": 10_000,
        "table_number": 12,
        "policy_level": 3,
        "sparse_updates": True,
        "extract": "sql",
        "first_user_field": None,
        "mask_columns": [],
        "arrays": [],
        "partition_column": None,
        "tenant_column": None,
        "operation_column": None,
        "other_policies": [],
        "recid_column": None,
        "source_table": TABLE,
        "change_seq_form": "19 digits",
        "declared_columns": [],
        "data_columns": [],
        "pairs_before_images": True,
        "has_halves": True,
        "without_before_images": "policy_level: 2",
    }


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_before_images_follow_from_the_policy_level(level: int) -> None:
    assert openedge(f"policy_level: {level}")["before_images"] is (level == 3)


def test_columns_that_the_tracking_table_adds_may_be_the_key() -> None:
    columns: dict[str, str | None] = {
        "_Operation": "int",
        "order_id": "int",
        "changed_fields": "string",
    }
    settings = openedge("key: [tenant, order_id]\ntenant_column: tenant\nrecid_column: r", columns)
    assert settings["data_columns"] == [
        {"name": "order_id", "data_type": "int"},
        {"name": "tenant", "data_type": "int"},
        {"name": "r", "data_type": "bigint"},
    ]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("policy_level: 4", ["`policy_level`", "4", "Allowed: 0, 1, 2, 3"]),
        (
            "policy_level: 2\nbefore_images: true",
            ["`before_images` is true", "`policy_level` is 2"],
        ),
        ("before_images: false", ["`before_images` is false", "`policy_level` is 3"]),
        ("look_back: 15 minutes", ["`look_back`", "15 minutes", "a whole number from 0 on"]),
        ("extract: odbc", ["`extract`", "'odbc'", "sql, abl"]),
        ("task: plant", ["`task` is 'plant'", "no common order", "remove `task`"]),
        ("landing_delay: 1 hour", ["'1 hour'", "no common order", "remove `landing_delay`"]),
        ("base: {kind: frozen, position: 12}", ["`base.position`", "12", "Allowed: 19 digits"]),
        ("policy_level: 2\nbase: {kind: live}", ["`base.kind`", "before images"]),
        ("lob_columns: [note]", ["unknown setting `lob_columns`", "Allowed: ", "sparse_updates"]),
    ],
)
def test_openedge_values_that_are_not_allowed(text: str, parts: list[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        openedge(text)
    has_all(str(caught.value), *parts, "Fix: ")


def test_an_array_that_is_not_declared() -> None:
    with pytest.raises(SettingsError, match="`arrays` names the column 'days'"):
        openedge("arrays: [days]", {"_Change-Sequence": "bigint", "order_id": "int"})


def test_moments_of_other_systems_are_none() -> None:
    assert moment_kind("0" * 19, "openedge") == "change_seq"
    assert moment_kind(POSITION, "openedge") is None
    assert moment_kind("0" * 19, "qlik_change_table") is None
    assert moment_kind("0" * 19) == moment_kind(POSITION) == "change_seq"


FEED = """
sequence: {lsn: number}
operation: op
operations: {1: I, 2: U, 3: D}
"""


def feed(text: str, columns: dict[str, str | None] | None = None) -> Any:
    given = {"system": "change_feed", "key": ["order_id"], **(yaml.safe_load(text) or {})}
    return parse_settings(source(given, columns=columns))


def test_a_feed_is_described_by_settings() -> None:
    settings = feed(FEED, {"order_id": "int", "op": "string", "lsn": "bigint"})
    assert settings["operations"] == {"1": "I", "2": "U", "3": "D"}
    assert settings["before_images"] is False
    # what the sequence reads may be data, unless `ignore_columns` has it
    assert [column["name"] for column in settings["data_columns"]] == ["order_id", "lsn"]


def test_a_feed_with_before_images_in_its_records_may_lack_them() -> None:
    whole = feed(FEED + "after: data\nbefore: old")
    assert whole["before_images"] is True
    assert whole["without_before_images"] == "before_images: false"
    assert feed(FEED + "after: data\nbefore: old\nbefore_images: false")["before_images"] is False


@pytest.mark.parametrize("preset", sorted(PRESETS.glob("*.yml")), ids=lambda file: file.stem)
def test_a_setting_of_the_table_goes_before_the_preset(preset: Path) -> None:
    columns: dict[str, str | None] = {"order_id": "int"}
    of_vendor = feed(f"preset: {preset.stem}", columns)
    assert of_vendor["sequence"] == yaml.safe_load(preset.read_text())["sequence"]
    assert of_vendor["before_images"] is (of_vendor["before"] != "none")
    own = feed(f"preset: {preset.stem}\nsequence: {{lsn: number}}", columns)
    assert own["sequence"] == {"lsn": "number"}


def test_columns_of_a_preset_may_be_named_by_their_beginning() -> None:
    names = ["order_id", "__op", "__lsn", "_note"]
    found = feed("preset: debezium_flat", dict.fromkeys(names, "string"))["data_columns"]
    assert [column["name"] for column in found] == ["order_id", "_note"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "preset: debesium_flat",
            "`preset` is 'debesium_flat'; allowed: aws_dms, debezium, debezium_db2, debezium_flat, "
            "debezium_flat_messages, debezium_mongodb, debezium_mysql, debezium_oracle, "
            "debezium_sqlserver, delta_change_feed, snapshots, sql_server_cdc. Did you mean "
            "`debezium_flat`? Fix: correct the name",
        ),
        (
            FEED + "sequence: {lsn: whole}",
            "`sequence` is {'lsn': 'whole'}. Allowed: one to six columns or SQL expressions in "
            "their order, each with its type (number, timestamp, digits, long_digits, binary, "
            "text)",
        ),
        (FEED + "operations: {i: X}", "`operations` is {'i': 'X'}. Allowed: values of the column"),
        (
            FEED + "missing_operation: X",
            "`missing_operation` is 'X'. Allowed: I, U, D, B, T, L, N.",
        ),
        (
            FEED + "before: rows",
            "`before` is 'rows' and `operations` lacks the operation B (before image). Fix: set "
            "`before: none`",
        ),
        (
            FEED + "before_images: true",
            "`before_images` is true and `before` is 'none'; `before` says whether the feed has",
        ),
        (
            FEED + "changed_mask: mask\nchanged_columns: changed",
            "`changed_columns` is 'changed' and `changed_mask` is 'mask'; the two exclude",
        ),
        (
            "sequence: {lsn: number}\noperation: op",
            "the setting `operations` is missing. Allowed: a mapping of names to texts. Fix: add",
        ),
        (
            FEED + "encodings: [born]",
            "`encodings` is ['born']. Allowed: a mapping of names to texts. Fix: correct it, or",
        ),
        (
            FEED + "operations: {r: L}",
            "`operations` has L (row of a full load), and there is no `load_id`. Fix: set it to",
        ),
        (FEED + "load_id: lsn", "`load_id` is 'lsn', and no operation is L (row of a full load)."),
        (FEED + "load_end: is_last", "`load_end` is 'is_last', and there is no `load_id`."),
        (
            FEED + "operations: {r: L}\nload_id: lsn\nbase: {kind: frozen}",
            "`base` is set and `operations` has the operation L: full loads come from a table of",
        ),
        (
            FEED + "json_text: value",
            "`json_text` is 'value' without `json_fields` and `after`. Fix: set `json_fields` to",
        ),
        (
            "preset: debezium\njson_fields: 'before map<string, string>, "
            "after map<string, string>, op string, source struct<file: string, pos: bigint>'",
            "`json_fields` lacks the field `sequence`, and `sequence` of the preset debezium reads "
            "record.source.sequence. Fix: add the field to `json_fields`, or set `sequence` on the",
        ),
        (FEED + "absent: null", "`absent` is 'null' and there is no `json_text`; only a JSON"),
        (FEED + "absent: none", "`absent` is 'none'. Allowed: unknown, null. Fix: correct it, or"),
        (
            FEED + "after: data\nbefore: 'old_*'",
            "`after` is 'data' and `before` is the prefix 'old_*'; before images in columns with",
        ),
        (
            FEED + "encodings: {born: day}",
            "It gives 'born' the encoding 'day'. Allowed: text, days, milliseconds,",
        ),
        (FEED + "look_back: 5", "`look_back` is 5. Allowed: 0. Fix: correct it, or leave it out"),
        (FEED + "arival: x", "unknown setting `arival`. Did you mean `arrival`?"),
    ],
)
def test_errors_of_feeds(text: str, message: str) -> None:
    with pytest.raises(SettingsError) as error:
        feed(text)
    assert message in str(error.value)


def test_no_code_knows_a_preset() -> None:
    root = Path(__file__).parents[2]
    names = [file.stem for file in PRESETS.glob("*.yml")]
    assert len(names) == 12
    # add-table reads the schema in Debezium's messages, whose types are Debezium's
    add_table = root / "src/dbt_afterimage/cli/commands/add_table"
    of_messages = (add_table / "debezium.py", add_table / "systems.py")
    for folder in ("src", "macros"):
        for file in (root / folder).rglob("*.*"):
            if file.suffix in (".py", ".sql"):
                # Kafka Connect's names of types
                text = file.read_text(encoding="utf-8").replace("io.debezium.", "")
                # tables have snapshots too
                allowed = {"snapshots", *(["debezium"] if file in of_messages else [])}
                assert not [name for name in names if name in text and name not in allowed], file
