"""The figures of `afterimage report`, each compared with a value computed by hand."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from dbt_afterimage.cli.commands.report.activity import period_of
from dbt_afterimage.cli.commands.report.batches import rows_between
from dbt_afterimage.cli.commands.report.findings import findings
from dbt_afterimage.cli.commands.report.growth import growth
from dbt_afterimage.cli.commands.report.page import totals
from dbt_afterimage.cli.support.runs import Run, Step, last_runs, slowest_steps
from dbt_afterimage.cli.support.units import BYTES, COUNT, SECONDS, Unit, moment
from dbt_afterimage.cli.support.warehouse import TableVersion
from tests.unit.report.facts import NOON, Memory, activity, at, facts, target_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return target_folder(tmp_path)


def test_no_mart_is_scanned_and_each_table_is_read_once(folder: Path) -> None:
    warehouse = Memory()
    facts(folder, warehouse)
    assert sorted(warehouse.read) == sorted(warehouse.tables)


def test_activity_over_time(folder: Path) -> None:
    found = facts(folder).activity
    assert found is not None
    # three hours, from that of the first change to that of the last
    assert found.period.starts[0] == NOON - timedelta(hours=3)
    assert (len(found.period.starts), found.period.width) == (3, timedelta(hours=1))
    assert found.total.changes == (10, 0, 25)
    assert found.total.late == (4, 0, 1)
    assert found.total.average_lag == (60, None, 20)
    assert found.total.greatest_lag == (90, None, 120)
    assert found.tables["orders"].changes == (10, 0, 20)
    assert found.tables["orders"].average_lag == (60, None, 10)


def test_activity_of_the_last_days_only_and_none_of_the_future(folder: Path) -> None:
    rows = [("orders", 72, 1, 0, 0, 0), ("orders", 1, 2, 0, 0, 0), ("orders", -48, 4, 0, 0, 0)]
    warehouse = Memory()
    warehouse.tables["change_activity"] = activity(rows)
    found = facts(folder, warehouse, days=1).activity
    assert found is not None
    assert found.total.changes == (2,)


@pytest.mark.parametrize(
    ("hours", "width", "count"),
    # a chart has room for 72 bars
    [(1, 1, 1), (72, 1, 72), (73, 2, 37), (24 * 30, 12, 61), (24 * 3650, 168, 522)],
)
def test_a_period_has_as_many_buckets_as_a_chart_has_room_for(
    hours: int, width: int, count: int
) -> None:
    end = datetime(2026, 3, 2, 1, tzinfo=timezone.utc)
    period = period_of(end - timedelta(hours=hours), end)
    assert (period.width, len(period.starts)) == (timedelta(hours=width), count)
    assert period.starts[0] <= end - timedelta(hours=hours)
    assert period.end >= end


def test_rejected_records_by_reason(folder: Path) -> None:
    first, *others = facts(folder).rejected
    # as many unresolved ones as the others, and a resolved one
    assert (first.reason, first.unresolved, first.resolved) == ("null_key", 1, 1)
    assert first.tables == {"orders": 2}
    assert {each.unresolved for each in others} == {1}


def test_batches_and_what_has_not_applied_them(folder: Path) -> None:
    found = [
        (each.table, each.recorded_at, each.rows, each.path, each.missing)
        for each in facts(folder).batches
    ]
    assert found == [
        ("orders", at(10), 50, "incremental", ("_current",)),
        ("clients", at(5), 7, "replay", ()),
        ("orders", at(0), 100, "rebuild", ()),
    ]


def test_rows_of_a_run(folder: Path) -> None:
    batches = facts(folder).batches
    assert rows_between(batches, at(-1), at(5)) == 107
    assert rows_between(batches, at(11), at(12)) == 0


def test_growth() -> None:
    # two tables: 1000 bytes at 0, 3000 at 10; 500 at 5
    tables = [
        [TableVersion(at(0), 1, 1, 1000), TableVersion(at(10), 1, 2, 3000)],
        [TableVersion(at(5), 1, 1, 500)],
        [TableVersion(at(5), 1, None, None)],
    ]
    found = growth(tables, 30, at(20), points=5)
    assert found is not None
    assert found.bytes == [1000, 1500, 3500, 3500, 3500]
    assert (found.moments[0], found.added) == (at(0), 2500)
    assert growth([[TableVersion(at(0), 1, None, None)]], 30, at(20)) is None


def test_growth_of_the_last_days_counts_what_was_there_before() -> None:
    day = timedelta(days=1)
    tables = [[TableVersion(NOON - 3 * day, 1, 1, 1000), TableVersion(NOON, 1, 2, 3000)]]
    found = growth(tables, 2, NOON, points=3)
    assert found is not None
    assert found.bytes == [1000, 1000, 3000]


def test_flow_from_raw_tables_to_marts(folder: Path) -> None:
    clients, invoices, orders = facts(folder).flows
    assert clients.raw == []  # a name in a solidDB log
    assert invoices.status is None
    assert [(raw.name, raw.exists) for raw in invoices.raw or []] == [("raw.invoices__ct", False)]
    assert [(raw.name, raw.rows, raw.written_at) for raw in orders.raw or []] == [
        ("raw.orders__ct", 160, at(9))
    ]
    assert orders.log.rows == 150
    assert [(mart.name, mart.rows, mart.behind) for mart in orders.marts] == [
        ("orders_history", 140, 0),
        ("orders_current", 80, 600),
    ]


def test_totals(folder: Path) -> None:
    found = totals(facts(folder))
    assert found["tables"] == 3
    assert found["behind"] == 1
    assert found["failed"] == 1
    assert (found["rejected"], found["unresolved"]) == (4, 3)
    assert found["age"] == 20 * 60
    assert (found["changes"], found["versions"], found["current"]) == (157, 147, 80)
    assert found["field_changes"] is None


def test_findings_with_failures_first(folder: Path) -> None:
    found = findings(facts(folder), ["orders: lag > 1m (lag is 2m)"])
    texts = [(each.state, each.text) for each in found]
    assert texts == [
        ("failed", "`--fail-if`: orders: lag > 1m (lag is 2m)"),
        (
            "failed",
            "model orders_current failed in `dbt run --select orders_changes+` of "
            "2026-03-02 12:09 UTC. 1 steps of this run were skipped.",
        ),
        ("failed", "invoices: its raw table raw.invoices__ct does not exist."),
        ("failed", "invoices: its change log has no batch yet."),
        ("warning", "clients: 2 tables with more than 100 files."),
        ("warning", "orders: behind its change log: orders_current (10 min)."),
        ("warning", "orders: 3 unresolved rejected records."),
        ("warning", "orders: 3 tables with more than 100 files."),
    ]
    assert all(each.fix for each in found[2:])


def test_a_table_whose_first_run_failed_is_among_the_tables(folder: Path) -> None:
    failed = {
        "node": "model.shop.invoices_changes",
        "status": "error",
        "seconds": 1.0,
        "message": "wrong",
    }
    newest = {
        "id": "newest",
        "command": "run",
        "select": [],
        "started_at": at(20).isoformat(),
        "seconds": 5.0,
        "error": None,
        "steps": [failed],
    }
    with (folder / "afterimage_runs.jsonl").open("a", encoding="utf-8") as runs:
        runs.write("\n" + json.dumps(newest))
    found = facts(folder)
    (invoices,) = (each for each in found.tables if each.table == "invoices")
    assert (invoices.last_batch, invoices.failed) == (None, ["invoices_changes"])
    texts = [each.text for each in findings(found, [])]
    assert "invoices: its change log has no batch yet." in texts


def test_findings_of_a_run_that_a_hook_stopped(folder: Path) -> None:
    line = json.dumps(
        {
            "id": "3",
            "command": "test",
            "select": [],
            "started_at": at(20).isoformat(),
            "seconds": 3,
            "error": "`system` is None. Fix: set it.",
            "steps": [],
        }
    )
    with (folder / "afterimage_runs.jsonl").open("a", encoding="utf-8") as runs:
        runs.write("\n" + line)
    first, second, *_ = findings(facts(folder), [])
    assert first.text == "`dbt test` of 2026-03-02 12:20 UTC ended before its first step."
    assert first.detail == "`system` is None. Fix: set it."
    # the last run that built models failed, too
    assert second.text.startswith("model orders_current failed")


def test_runs_and_their_slowest_steps(folder: Path) -> None:
    newest, oldest = runs = last_runs(folder)
    assert (newest.command, newest.started_at) == ("run --select orders_changes+", at(9))
    assert ([step.name for step in newest.failed], newest.failures) == (["orders_current"], 1)
    assert (newest.count(["model"]), oldest.failures) == (3, 0)
    found = [
        (step.name, step.runs, step.last, step.median, step.longest)
        for step in slowest_steps(runs, 2)
    ]
    assert found == [("orders_history", 2, 90, 70, 90), ("orders_changes", 2, 10, 20, 30)]


def test_one_slow_run_makes_no_slow_step() -> None:
    def run(minute: int, fast: float, slow: float) -> Run:
        steps = tuple(
            Step(name, "model", "success", seconds, None)
            for name, seconds in (("fast", fast), ("slow", slow))
        )
        return Run("build", at(minute), 10, None, steps)

    runs = [run(2, 60, 5), run(1, 1, 5), run(0, 1, 5)]
    assert [step.name for step in slowest_steps(runs, 2)] == ["slow", "fast"]


def test_a_folder_without_a_file_of_runs(tmp_path: Path) -> None:
    assert last_runs(tmp_path) == []
    results: dict[str, Any] = {
        "metadata": {"invocation_id": "1", "generated_at": "2026-03-02T12:00:00Z"},
        "args": {"which": "build", "select": ["a", "b+"]},
        "elapsed_time": 5,
        "results": [
            {
                "unique_id": "test.shop.unique_orders_id.0f0f",
                "status": "fail",
                "execution_time": 1,
                "message": "Got 2 results",
            },
            {
                "unique_id": "unit_test.shop.orders.sums",
                "status": "pass",
                "execution_time": 1,
                "message": None,
            },
        ],
    }
    file = tmp_path / "run_results.json"
    file.write_text(json.dumps(results), encoding="utf-8")
    (run,) = last_runs(tmp_path)
    assert (run.command, run.started_at) == ("build --select a b+", NOON)
    assert [(step.kind, step.name) for step in run.steps] == [
        ("test", "unique_orders_id"),
        ("unit_test", "sums"),
    ]
    assert run.failed[0].message == "Got 2 results"
    # `dbt docs generate` writes results, too
    file.write_text(json.dumps({**results, "args": {"which": "generate"}}), encoding="utf-8")
    assert last_runs(tmp_path) == []


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        (SECONDS, None, "-"),
        (SECONDS, 0.0, "0 s"),
        (SECONDS, 0.42, "0.4 s"),
        (SECONDS, 119.0, "119 s"),
        (SECONDS, 120.0, "2 min"),
        (SECONDS, 268 * 86400.0, "268 d"),
        (BYTES, 1536, "1.5 KiB"),
        (BYTES, -2048, "-2 KiB"),
        (COUNT, 9999, "9,999"),
        (COUNT, 25_000, "25 k"),
    ],
)
def test_numbers_have_units(unit: Unit, value: float | None, text: str) -> None:
    assert unit.text(value) == text


def test_moments() -> None:
    assert [moment(None), moment(NOON)] == ["-", "2026-03-02 12:00"]
