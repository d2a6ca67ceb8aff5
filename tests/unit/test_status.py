"""`afterimage status`: what it makes of progress, activity, rejected records and metadata."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from dbt_afterimage.cli import app
from dbt_afterimage.cli.commands import status
from dbt_afterimage.cli.commands.status import violated
from dbt_afterimage.cli.frame import UsageProblem
from dbt_afterimage.cli.support.fail_if import parse_conditions
from dbt_afterimage.cli.support.runs import last_results
from dbt_afterimage.cli.support.table_status import MEASURES, read_status
from dbt_afterimage.cli.support.warehouse import TableVersion, WarehouseError

NOON = datetime(2026, 3, 2, 12, tzinfo=timezone.utc)
TIME = pa.timestamp("us", "UTC")
NO_RUNS = Path("a folder without runs")


def at(minute: int) -> datetime:
    return NOON + timedelta(minutes=minute)


def progress(*rows: tuple[str, int, str | None, str | None]) -> pa.Table:
    """Rows of (model, minute of the batch, change_seq, path)."""
    return pa.table(
        {
            "model": [row[0] for row in rows],
            "recorded_at": pa.array([at(row[1]) for row in rows], TIME),
            "change_seq": pa.array([row[2] for row in rows], pa.string()),
            "changed_at": pa.array([at(row[1] - 5) for row in rows], TIME),
            "path": pa.array([row[3] for row in rows], pa.string()),
        }
    )


ORDERS = progress(
    ("orders_changes", 0, "0009", None),
    ("orders_history", 0, "0009", "rebuild"),
    # rebuilt since: the log ends at a smaller change_seq
    ("orders_changes", 10, "0007", None),
    ("orders_history", 10, "0007", "incremental"),
    ("orders_field_changes", 0, None, "incremental"),
)
ACTIVITY = pa.table(
    {
        "table_name": ["orders"] * 3,
        "changes": [10, 20, 10],
        "late_changes": [4, 0, 0],
        "max_lag_seconds": [9000, 60, 300],
        "recorded_at": pa.array([at(0), at(10), at(10)], TIME),
    }
)
REJECTED = pa.table({"resolved_at": pa.array([at(1), None, None], TIME)})


def run_line(number: str, command: str, minute: int, statuses: dict[str, str]) -> str:
    """A line of the file of runs; each step takes a second."""
    steps = [
        {"node": node, "status": status, "seconds": 1, "message": None}
        for node, status in statuses.items()
    ]
    run = {"id": number, "command": command, "select": [], "started_at": at(minute).isoformat()}
    return json.dumps({**run, "seconds": 5, "error": None, "steps": steps}) + "\n"


@dataclass
class Memory:
    """A warehouse of tables in memory, each of them `files` files of 100 bytes."""

    tables: dict[str, pa.Table]
    empty: tuple[str, ...] = ("orders_changes", "orders_history", "orders_field_changes")
    counts: dict[str, int] = field(default_factory=dict)

    def schemas(self) -> list[str]:
        return ["lake"]

    def relations(self, schema: str) -> dict[str, str]:
        return dict.fromkeys((*self.tables, *self.empty), "table") if schema == "lake" else {}

    def arrow(
        self,
        schema: str,
        name: str,
        where: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        assert name in self.tables, f"{name} was scanned"
        return self.tables[name]

    def files(self, schema: str, name: str) -> tuple[int, int]:
        count = self.counts.get(name, 2)
        return count, 100 * count

    def versions(self, schema: str, name: str) -> list[TableVersion]:
        raise AssertionError("status reads no versions")


def warehouse(**tables: pa.Table) -> Memory:
    found = {"change_activity": ACTIVITY, "orders_changes_rejected": REJECTED}
    return Memory({"afterimage_progress": ORDERS, **found, **tables})


def test_a_table_of_which_one_mart_is_behind() -> None:
    (orders,) = read_status(warehouse(), "lake", "change_activity", NO_RUNS, at(40))
    assert orders.table == "orders"
    assert (orders.age, orders.behind) == (30 * 60, 10 * 60)
    assert (orders.newest_change_seq, orders.path) == ("0007", "incremental")
    assert orders.newest_change == "2026-03-02T12:05:00+00:00"
    # the slowest change of the hours of the newest batch, not of all hours
    assert orders.lag == 300
    assert (orders.changes, orders.late_share) == (40, 0.1)
    assert (orders.rejected, orders.unresolved) == (3, 2)
    assert (orders.files, orders.bytes) == (8, 800)
    assert orders.compaction_due == []
    assert orders.failed is None


def test_a_table_without_activity_or_rejected_records() -> None:
    only = Memory({"afterimage_progress": ORDERS}, counts={"orders_history": 101})
    (orders,) = read_status(only, "lake", "change_activity", NO_RUNS, at(40))
    assert (orders.lag, orders.changes, orders.late_share) == (None, None, None)
    assert (orders.rejected, orders.unresolved) == (0, 0)
    assert orders.compaction_due == ["orders_history"]


def test_a_schema_in_which_nothing_was_built() -> None:
    with pytest.raises(WarehouseError, match="schema other has no table afterimage_progress"):
        read_status(warehouse(), "other", "change_activity", NO_RUNS, NOON)


def test_results_of_the_last_run_that_built_models(tmp_path: Path) -> None:
    assert last_results(tmp_path, "lake") == {}
    results = {
        "model.shop.orders_changes": "success",
        "model.shop.orders_history": "error",
        "model.shop.orders_field_changes": "skipped",
        "test.shop.unique_orders.123": "fail",
    }
    (tmp_path / "afterimage_runs.jsonl").write_text(
        run_line("1", "build", 10, results) + run_line("2", "test", 20, {"test.shop.a.1": "pass"}),
        encoding="utf-8",
    )
    (orders,) = read_status(warehouse(), "lake", "change_activity", tmp_path, at(40))
    assert orders.failed == ["orders_history", "orders_field_changes"]


def test_a_new_table_whose_first_run_failed(tmp_path: Path) -> None:
    models = {
        "items_changes": "change_log",
        "new_changes": "change_log",
        "orders_changes": "change_log",
        "price_changes": "table",
    }
    nodes = {
        f"model.shop.{name}": {
            "name": name,
            "alias": name,
            "schema": "lake",
            "config": {"materialized": kind},
        }
        for name, kind in models.items()
    }
    (tmp_path / "manifest.json").write_text(json.dumps({"nodes": nodes}), encoding="utf-8")
    # new_changes was not in the last run, and price_changes is not a change log
    results = {
        "items_changes": "error",
        "items_history": "skipped",
        "orders_changes": "success",
        "price_changes": "error",
    }
    steps = {f"model.shop.{name}": state for name, state in results.items()}
    (tmp_path / "afterimage_runs.jsonl").write_text(run_line("1", "run", 10, steps))
    items, orders = read_status(warehouse(), "lake", "change_activity", tmp_path, at(40))
    assert (items.table, orders.table) == ("items", "orders")
    assert items.failed == ["items_changes", "items_history"]
    assert (items.last_batch, items.lag, items.files) == (None, None, 0)
    (condition,) = parse_conditions("failed > 0", MEASURES)
    assert [condition.holds(each.measures()) for each in (items, orders)] == [True, False]


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("lag > 5m", False),
        ("lag >= 5m", True),
        ("lag > 299", True),
        ("late_share >= 10%", True),
        ("age > 1h or unresolved > 1", True),
        ("compaction_due > 0", False),
        # not known, so it is not a reason to fail
        ("failed >= 0", False),
    ],
)
def test_conditions(text: str, holds: bool) -> None:
    (orders,) = read_status(warehouse(), "lake", "change_activity", NO_RUNS, at(40))
    conditions = parse_conditions(text, MEASURES)
    assert any(condition.holds(orders.measures()) for condition in conditions) is holds


@pytest.mark.parametrize(
    "text", ["", "lag", "lag > 1 h 5", "lag > 1w", "lag > 1h and age > 1", "__import__('os')"]
)
def test_what_is_no_condition(text: str) -> None:
    with pytest.raises(UsageProblem, match="Fix: write for example"):
        parse_conditions(text, MEASURES)


def test_a_measure_that_there_is_not() -> None:
    with pytest.raises(UsageProblem, match="no measure lagg"):
        parse_conditions("lagg > 1h", MEASURES)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[CliRunner]:
    (tmp_path / "dbt_project.yml").touch()
    monkeypatch.setenv("DBT_PROJECT_DIR", str(tmp_path))
    monkeypatch.delenv("DBT_TARGET_PATH", raising=False)
    monkeypatch.setattr(status, "project_warehouse", lambda target: (warehouse(), "lake"))
    yield CliRunner()


def test_a_monitor_gets_an_exit_code_and_the_value(command: CliRunner) -> None:
    assert command.invoke(app, ["status"]).exit_code == 0
    failed = command.invoke(app, ["status", "--fail-if", "behind > 5m"])
    assert failed.exit_code == 1
    assert failed.stdout.splitlines()[-1] == "failed: orders: behind > 5m (behind is 10 min)"
    assert command.invoke(app, ["status", "--fail-if", "behind"]).exit_code == 2


def test_a_misspelt_activity_table_switches_no_monitor_off(
    command: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["status", "--activity", "change_activty"]
    for arguments in (given, [*given, "--fail-if", "lag > 1s"]):
        refused = command.invoke(app, arguments)
        assert refused.exit_code == 1
        assert "has no table change_activty" in refused.stderr
        assert "Similar names: change_activity" in refused.stderr
    without = warehouse()
    del without.tables["change_activity"]
    monkeypatch.setattr(status, "project_warehouse", lambda target: (without, "lake"))
    assert command.invoke(app, ["status", "--fail-if", "behind > 1h"]).exit_code == 0
    assert "--fail-if reads lag" in command.invoke(app, ["status", "--fail-if", "lag > 1h"]).stderr


def test_a_number_is_shown_as_it_is() -> None:
    (orders,) = read_status(warehouse(), "lake", "change_activity", NO_RUNS, at(40))
    conditions = parse_conditions("unresolved > 5 or late_share >= 10%", MEASURES)
    many = replace(orders, unresolved=1_234_567)
    assert violated([many], conditions) == [
        "orders: unresolved > 5 (unresolved is 1,234,567)",
        "orders: late_share >= 10% (late_share is 0.1)",
    ]


def test_of_many_failed_models_the_first_is_named(command: CliRunner, tmp_path: Path) -> None:
    steps = [
        {"node": f"model.shop.{name}", "status": state, "seconds": 1.0, "message": None}
        for name, state in (("orders_history", "error"), ("orders_current", "skipped"))
    ]
    run = {
        "id": "1",
        "command": "run",
        "select": [],
        "started_at": at(30).isoformat(),
        "seconds": 2.0,
        "error": None,
        "steps": steps,
    }
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "afterimage_runs.jsonl").write_text(json.dumps(run), encoding="utf-8")
    printed = command.invoke(app, ["status"]).stdout
    assert "failed: orders_history and 1 more\n" in printed.replace(" \n", "\n")


def test_json_has_every_measure(command: CliRunner) -> None:
    found = json.loads(command.invoke(app, ["status", "--json"]).stdout)
    assert found["violations"] == []
    (orders,) = found["tables"]
    assert set(MEASURES) < set(orders)


def test_the_last_line_sums_up(command: CliRunner) -> None:
    assert command.invoke(app, ["status"]).stdout.splitlines()[-1] == (
        "1 tables, 1 with marts behind their change log, 0 failed in their last run, "
        "2 unresolved rejected records, 0 tables need `afterimage compact`"
    )
