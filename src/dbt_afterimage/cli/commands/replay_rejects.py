"""Runs a table again from its first rejected record, after settings or the source were mended."""

from __future__ import annotations

import json
from typing import Any

from dbt_afterimage.cli.support.run_dbt import run_dbt

_WITHOUT_PLACE = ("null_change_seq", "malformed_change_seq")


def replay(found: list[dict[str, Any]], table: str, target: str | None) -> None:
    """Build a table's models again; records are read from the first unresolved one on.

    Args:
        found: rejected records of the table, as `read_rejects` gives them.
        table: the table, without `_changes`.

    Raises:
        DbtFailedError: dbt failed, and has printed why.
    """
    name = table.rpartition(".")[2]
    run_dbt(["run", "--select", f"+{name}_changes+", *_variables(found)], target)


def _variables(found: list[dict[str, Any]]) -> list[str]:
    places = [
        row["change_seq"]
        for row in found
        if row["resolved_at"] is None
        and row["change_seq"]
        and row["reject_reason"] not in _WITHOUT_PLACE
    ]
    # records without a place are read in every run
    return ["--vars", json.dumps({"backfill_from": min(places)})] if places else []


def outcome(table: str, before: list[dict[str, Any]], after: list[dict[str, Any]]) -> str:
    """The records that a replay resolved, in words."""
    unresolved = {row["record_hash"] for row in before if row["resolved_at"] is None}
    left = {row["record_hash"] for row in after if row["resolved_at"] is None}
    resolved = f"{table}: {len(unresolved - left):,} of {len(unresolved):,} resolved"
    return resolved + (f", {len(left):,} unresolved: afterimage rejects {table}" if left else "")
