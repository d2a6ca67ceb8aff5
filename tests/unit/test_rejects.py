"""`afterimage rejects`: what it lists, shows, and refuses to resolve."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timezone

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from dbt_afterimage.cli import app
from dbt_afterimage.cli.commands import rejects
from dbt_afterimage.cli.support.warehouse import TableVersion

NOON = datetime(2026, 3, 2, 12, tzinfo=timezone.utc)
TIME = pa.timestamp("us", "UTC")
SEQ = "20260302120000000000000000000000001"


def records(*rows: tuple[int, str, str | None, bool]) -> pa.Table:
    """Rejected records of (hash, reason, change_seq, whether it is resolved)."""
    return pa.table(
        {
            "change_seq": pa.array([row[2] for row in rows], pa.string()),
            "change_oper": ["U"] * len(rows),
            "record_key": ['{"id":1}'] * len(rows),
            "reject_reason": [row[1] for row in rows],
            "record_hash": [row[0] for row in rows],
            "raw_record": ['{"id":"1","name":"[bold]Ann"}'] * len(rows),
            "recorded_at": pa.array([NOON] * len(rows), TIME),
            "resolved_at": pa.array([NOON if row[3] else None for row in rows], TIME),
        }
    )


TABLES = {
    "orders_changes_rejected": records(
        (-7, "conflicting_duplicate", SEQ, False), (8, "null_key", None, True)
    ),
    "parts_changes_rejected": records((9, "malformed_change_seq", "x' or '1'='1", False)),
    "orders_changes": pa.table({"change_seq": [SEQ], "id": [1], "name": ["Bob"]}),
}


class Memory:
    """A warehouse of tables in memory; of a log only what a change_seq selects is read."""

    def schemas(self) -> list[str]:
        return ["lake"]

    def relations(self, schema: str) -> dict[str, str]:
        return dict.fromkeys([*TABLES, "parts_changes"], "table")

    def arrow(
        self,
        schema: str,
        name: str,
        where: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        assert (where == f"change_seq = '{SEQ}'") is (name == "orders_changes")
        return TABLES[name]

    def files(self, schema: str, name: str) -> tuple[int, int]:
        raise AssertionError("nothing here counts files")

    def versions(self, schema: str, name: str) -> list[TableVersion]:
        raise AssertionError("nothing here reads versions")


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejects, "project_warehouse", lambda target: (Memory(), "lake"))


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["rejects", *arguments])


def test_unresolved_records_of_all_tables() -> None:
    lines = call().stdout.splitlines()
    assert [line.split()[:3] for line in lines[1:-1]] == [
        ["orders", "-7", "conflicting_duplicate"],
        ["parts", "9", "malformed_change_seq"],
    ]
    assert lines[-1] == "2 unresolved: 1 conflicting_duplicate, 1 malformed_change_seq"


def test_all_records_of_a_table_as_json() -> None:
    found = json.loads(call("orders", "--all", "--json").stdout)
    assert {row["record_hash"] for row in found} == {-7, 8}
    last = call("orders", "--all").stdout.splitlines()[-1]
    assert last == "1 unresolved, 1 resolved: 1 conflicting_duplicate, 1 null_key"


def test_a_record_is_shown_with_the_changes_at_its_change_seq() -> None:
    shown = json.loads(call("orders", "--show", "-7", "--json").stdout)
    assert shown["raw_record"] == {"id": "1", "name": "[bold]Ann"}
    assert shown["accepted_at_the_same_change_seq"] == [{"change_seq": SEQ, "id": 1, "name": "Bob"}]
    text = call("--show", "-7").stdout
    assert "reject_reason: conflicting_duplicate" in text
    assert "1 changes of orders_changes at its change_seq" in text


@pytest.mark.parametrize("arguments", [(), ("parts",), ("parts", "--show", "10")])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_control_characters_of_a_record_reach_no_terminal(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], form: tuple[str, ...]
) -> None:
    hostile = records((10, "malformed_change_seq", "\x1b[2J\x9b1\u202e", False))
    monkeypatch.setitem(TABLES, "parts_changes_rejected", hostile)
    text = CliRunner().invoke(app, ["rejects", *arguments, *form]).stdout
    assert "\\u001b[2J\\u009b1\\u202e" in text
    assert not {"\x1b", "\x9b", "\u202e"} & set(text)
    assert not form or json.loads(text)


def test_a_malformed_change_seq_is_no_condition() -> None:
    shown = json.loads(call("--show", "9", "--json").stdout)
    assert shown["accepted_at_the_same_change_seq"] == []


def test_names_and_hashes_that_there_are_not() -> None:
    misspelt = call("ordrs")
    assert misspelt.exit_code == 1
    assert "has no table ordrs_changes_rejected. Similar names: orders" in misspelt.stderr
    missing = call("orders", "--show", "5")
    assert missing.exit_code == 1
    assert "orders_changes_rejected has no record_hash 5." in missing.stderr
    assert call("orders", "--resolve", "5", "--why", "a test row").exit_code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("orders", "--resolve", "-7"),
        ("orders", "--resolve", "-7", "--why", " "),
        ("--resolve", "-7", "--why", "a test row"),
        ("orders", "--resolve", "-7", "--why", "a test row", "--show", "-7"),
    ],
)
def test_resolving_needs_a_table_and_a_reason(arguments: tuple[str, ...]) -> None:
    assert call(*arguments).exit_code == 2


def test_a_replay_begins_at_the_first_unresolved_record_that_has_a_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(
        "dbt_afterimage.cli.commands.rejects.run_dbt",
        lambda arguments, target: ran.append(arguments),
    )
    earlier = SEQ.replace("20260302", "20260301")
    monkeypatch.setitem(
        TABLES,
        "orders_changes_rejected",
        records(
            (1, "unknown_operation", SEQ, False),
            (2, "malformed_change_seq", "1", False),
            (3, "uncastable_value:id", earlier, False),
            (4, "null_key", "20000101", True),
        ),
    )
    result = call("orders", "--replay")
    assert result.exit_code == 0
    assert ran == [
        ["run", "--select", "+orders_changes+", "--vars", f'{{"backfill_from": "{earlier}"}}']
    ]
    assert result.stdout.splitlines() == [
        "orders: 0 of 3 resolved, 3 unresolved: afterimage rejects orders"
    ]


def test_a_replay_of_records_without_a_place_is_a_plain_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[list[str]] = []

    def run(arguments: list[str], target: str | None) -> None:
        ran.append(arguments)
        TABLES["parts_changes_rejected"] = records((9, "malformed_change_seq", "x", True))

    monkeypatch.setattr("dbt_afterimage.cli.commands.rejects.run_dbt", run)
    monkeypatch.setitem(TABLES, "parts_changes_rejected", TABLES["parts_changes_rejected"])
    result = call("parts", "--replay")
    assert ran == [["run", "--select", "+parts_changes+"]]
    assert result.stdout == "parts: 1 of 1 resolved\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--replay"], "--replay needs a table. Fix: afterimage rejects TABLE --replay"),
        (["orders", "--replay", "--show", "-7"], "got two of --show, --resolve and --replay"),
    ],
)
def test_a_replay_goes_with_a_table_and_alone(arguments: list[str], said: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
