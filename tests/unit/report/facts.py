"""Made-up facts: a warehouse of three tables in memory, and a dbt target folder.

`orders` is behind and has rejected records, `invoices` has a missing raw table and no batch,
`clients` is well.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa

from dbt_afterimage.cli.commands.report.facts import Facts, Request, read_facts
from dbt_afterimage.cli.support.warehouse import TableVersion

NOON = datetime(2026, 3, 2, 12, tzinfo=timezone.utc)
TIME = pa.timestamp("us", "UTC")
HOSTILE = "<script>alert('x')</script>\x00\x1b[2J\u202e"


def at(minute: int) -> datetime:
    """A time, by its minutes after noon."""
    return NOON + timedelta(minutes=minute)


def version(minute: int, added: int, rows: int, size: int) -> TableVersion:
    return TableVersion(at(minute), added, rows, size)


def progress(*rows: tuple[str, int, str | None]) -> pa.Table:
    """Rows of (model, minute of the batch, path)."""
    return pa.table(
        {
            "model": [row[0] for row in rows],
            "recorded_at": pa.array([at(row[1]) for row in rows], TIME),
            "change_seq": ["0001"] * len(rows),
            "changed_at": pa.array([at(row[1] - 5) for row in rows], TIME),
            "path": pa.array([row[2] for row in rows], pa.string()),
        }
    )


PROGRESS = progress(
    ("orders_changes", 0, None),
    ("orders_history", 0, "rebuild"),
    ("orders_current", 0, "rebuild"),
    ("orders_changes", 10, None),
    ("orders_history", 10, "incremental"),
    ("clients_changes", 5, None),
    ("clients_history", 5, "replay"),
)
# table, hour before noon, changes, late, total lag, greatest lag
ACTIVITY = [
    ("orders", 3, 10, 4, 600, 90),
    ("orders", 1, 20, 0, 200, 30),
    ("clients", 1, 5, 1, 300, 120),
    # rejected records only
    ("clients", 0, 0, 0, 0, None),
]
REJECTED = pa.table(
    {
        "reject_reason": ["null_key", "null_key", "unknown_operation", HOSTILE],
        "resolved_at": pa.array([None, at(1), None, None], TIME),
        "raw_record": ["secret"] * 4,
    }
)
VERSIONS = {
    "orders_changes": [version(0, 100, 100, 1000), version(11, 50, 150, 3000)],
    "orders_history": [version(1, 90, 90, 500), version(12, 60, 140, 1500)],
    "orders_current": [version(2, 80, 80, 400)],
    "clients_changes": [version(6, 7, 7, 70)],
    "clients_history": [version(7, 7, 7, 70)],
    "orders__ct": [version(9, 60, 160, 900)],
}
RUNS: list[dict[str, Any]] = [
    {
        "id": "1",
        "command": "build",
        "select": [],
        "started_at": at(-1).isoformat(),
        "seconds": 100.0,
        "error": None,
        "steps": [
            {"node": "model.shop.orders_changes", "status": "success", "seconds": 30.0},
            {"node": "model.shop.orders_history", "status": "success", "seconds": 50.0},
        ],
    },
    {
        "id": "2",
        "command": "run",
        "select": ["orders_changes+"],
        "started_at": at(9).isoformat(),
        "seconds": 200.0,
        "error": None,
        "steps": [
            {"node": "model.shop.orders_changes", "status": "success", "seconds": 10.0},
            {"node": "model.shop.orders_history", "status": "success", "seconds": 90.0},
            {
                "node": "model.shop.orders_current",
                "status": "error",
                "seconds": 5.0,
                "message": f"cannot read {HOSTILE}. Fix: correct it.",
            },
            {"node": "model.shop.orders_report", "status": "skipped", "seconds": 0.0},
        ],
    },
]


def activity(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table(
        {
            "table_name": [row[0] for row in rows],
            "activity_hour": pa.array([NOON - timedelta(hours=row[1]) for row in rows], TIME),
            "changes": pa.array([row[2] for row in rows], pa.int64()),
            "late_changes": pa.array([row[3] for row in rows], pa.int64()),
            "total_lag_seconds": pa.array([row[4] for row in rows], pa.int64()),
            "max_lag_seconds": pa.array([row[5] for row in rows], pa.int64()),
            "recorded_at": pa.array([at(0) for _ in rows], TIME),
        }
    )


@dataclass
class Memory:
    """A warehouse in memory; only progress, activity and rejected records may be read."""

    tables: dict[str, pa.Table] = field(
        default_factory=lambda: {
            "afterimage_progress": PROGRESS,
            "change_activity": activity(ACTIVITY),
            "orders_changes_rejected": REJECTED,
        }
    )
    commits: dict[str, list[TableVersion]] = field(default_factory=lambda: dict(VERSIONS))
    read: list[str] = field(default_factory=list)

    def schemas(self) -> list[str]:
        return ["lake", "raw"]

    def relations(self, schema: str) -> dict[str, str]:
        raw = {"orders__ct"}
        names = raw if schema == "raw" else {*self.tables, *self.commits} - raw
        return dict.fromkeys(sorted(names), "table") if schema in self.schemas() else {}

    def arrow(
        self,
        schema: str,
        name: str,
        where: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        assert name in self.tables, f"{name} was scanned"
        self.read.append(name)
        return self.tables[name]

    def files(self, schema: str, name: str) -> tuple[int, int]:
        commits = self.commits.get(name)
        return (101, commits[-1].bytes or 0) if commits else (1, 10)

    def versions(self, schema: str, name: str) -> list[TableVersion]:
        return self.commits.get(name, [])


def _node(name: str, kind: str, *parents: str) -> dict[str, Any]:
    return {
        "resource_type": "model",
        "schema": "lake",
        "name": name,
        "alias": name,
        "config": {"materialized": kind},
        "depends_on": {"nodes": list(parents)},
    }


def _source(name: str, **settings: Any) -> dict[str, Any]:
    settings = {"system": "qlik_change_table", "key": ["id"], **settings}
    return {
        "schema": "raw",
        "identifier": name,
        "name": name,
        "source_name": "raw",
        "meta": {"afterimage": settings},
        "columns": {},
        "config": {},
    }


MANIFEST = {
    "nodes": {
        "model.stg_orders": _node("stg_orders", "staging_view", "source.orders__ct"),
        "model.stg_invoices": _node("stg_invoices", "staging_view", "source.invoices__ct"),
        "model.orders_changes": _node("orders_changes", "change_log", "model.stg_orders"),
        "model.invoices_changes": _node("invoices_changes", "change_log", "model.stg_invoices"),
        "model.clients_changes": _node("clients_changes", "change_log", "source.clients"),
    },
    "sources": {
        "source.orders__ct": _source("orders__ct"),
        "source.invoices__ct": _source("invoices__ct"),
        "source.clients": _source("clients", system="soliddb"),
    },
}


def target_folder(folder: Path) -> Path:
    """A dbt target folder with a manifest and two runs."""
    (folder / "manifest.json").write_text(json.dumps(MANIFEST), encoding="utf-8")
    lines = [
        json.dumps({**run, "steps": [{"message": None, **step} for step in run["steps"]]})
        for run in RUNS
    ]
    (folder / "afterimage_runs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder


def request(folder: Path, days: int = 30) -> Request:
    return Request("lake", "change_activity", days, at(30), folder)


def facts(folder: Path, warehouse: Memory | None = None, days: int = 30) -> Facts:
    """What is read of the warehouse and of a target folder."""
    return read_facts(warehouse or Memory(), request(folder, days))
