"""The state of each table, from the progress and activity tables and from table metadata.

No change log, history or other mart is scanned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from dbt_afterimage.cli.commands.query import connect, run
from dbt_afterimage.cli.support.runs import (
    change_log_nodes,
    last_results,
    progress_name,
    read_manifest,
)
from dbt_afterimage.cli.support.warehouse import PROGRESS, Warehouse, WarehouseError
from dbt_afterimage.storage.compaction import MANY_FILES

CHANGES, REJECTED = "_changes", "_changes_rejected"
# what status and report read of rejected records, which may be large themselves
REJECTED_COLUMNS = ("reject_reason", "resolved_at")
MARTS = ("_history", "_current", "_field_changes")

_PROGRESS_SQL = f"""
    select model, max(recorded_at) as recorded_at, arg_max(change_seq, recorded_at) as change_seq,
        arg_max(changed_at, recorded_at) as changed_at, arg_max(path, recorded_at) as path
    from {PROGRESS} where recorded_at is not null group by model
"""
# an hour's recorded_at is the newest batch that is counted in it
_ACTIVITY_SQL = """
    with newest as (
        select table_name, max(recorded_at) as recorded_at from "{activity}" group by table_name
    )
    select a.table_name, sum(a.changes) as changes, sum(a.late_changes) as late_changes,
        max(a.max_lag_seconds) filter (where a.recorded_at = newest.recorded_at) as lag
    from "{activity}" as a join newest using (table_name) group by a.table_name
"""


@dataclass(frozen=True)
class TableStatus:
    """One table; times in seconds, None where a value is not known.

    Attributes:
        table: the name of its change log without `_changes`.
        last_batch: when its change log last recorded a batch, ISO text in UTC.
        age: seconds since then.
        newest_change_seq: greatest change_seq that the log has applied.
        newest_change: greatest commit time of it, ISO text in UTC.
        path: how history applied its last batch.
        lag: seconds from commit at the source to the change log, of the slowest change in the hours
            that the newest batch affected.
        behind: seconds from the batch that the slowest mart has applied to the log's newest one.
        changes: changes that the activity table has counted.
        late_share: the share of these that came after newer ones, 0 to 1.
        rejected: rejected records.
        unresolved: those of them that are not resolved.
        files: data and delete files of all its tables.
        bytes: their size.
        compaction_due: tables with more than 100 files.
        failed: models of it that failed, or were skipped, in their last dbt run.
    """

    table: str
    last_batch: str | None = None
    age: float | None = None
    newest_change_seq: str | None = None
    newest_change: str | None = None
    path: str | None = None
    lag: float | None = None
    behind: float | None = None
    changes: int | None = None
    late_share: float | None = None
    rejected: int = 0
    unresolved: int = 0
    files: int = 0
    bytes: int = 0
    compaction_due: list[str] = field(default_factory=list)
    failed: list[str] | None = None

    def measures(self) -> dict[str, float | None]:
        """The values that a condition may compare, by name; lists count their entries."""
        found = asdict(self)
        return {
            name: float(len(value)) if isinstance(value := found[name], list) else value
            for name in MEASURES
        }


MEASURES = tuple(
    each.name
    for each in fields(TableStatus)
    if each.name not in ("table", "last_batch", "newest_change_seq", "newest_change", "path")
)

MEASURES_OF_ACTIVITY = ("lag", "changes", "late_share")
"""Those that are not known without a `change_activity` table."""


def read_status(
    warehouse: Warehouse,
    schema: str,
    activity: str,
    folder: Path,
    now: datetime,
) -> list[TableStatus]:
    """The state of each table of a schema that has a change log.

    Args:
        activity: name of a `change_activity` table there; it may be missing.
        folder: dbt's target folder. A change log of its manifest that has recorded no batch is
            listed if it failed in its last run.

    Raises:
        WarehouseError: the schema has no progress table, so nothing was built in it.
    """
    relations = warehouse.relations(schema)
    if PROGRESS not in relations:
        raise WarehouseError(
            f"`status`: schema {schema} has no table {PROGRESS}, so no run has built anything "
            "there. Fix: run `dbt build`, or choose another --target."
        )
    progress = _rows(warehouse, schema, _PROGRESS_SQL, "model")
    counted: dict[str, dict[str, Any]] = {}
    if activity in relations:
        counted = _rows(warehouse, schema, _ACTIVITY_SQL.format(activity=activity), "table_name")
    results = last_results(folder, schema)
    found = []
    # field changes end in `_changes` too, but they have a path
    logs = (
        name
        for name, row in progress.items()
        if name.endswith(CHANGES) and row["path"] is None and name in relations
    )
    for log in sorted(logs):
        table = log.removesuffix(CHANGES)
        applied = progress[log]
        marts = [progress[table + mart] for mart in MARTS if table + mart in progress]
        # activity has no schemas
        hours = counted.get(table.rpartition(".")[2], {})
        rejected, unresolved = _rejects(warehouse, schema, table, relations)
        sizes = {
            name: warehouse.files(schema, name)
            for name in relations_of(table)
            if relations.get(name) == "table"
        }
        changes = hours.get("changes")
        found.append(
            TableStatus(
                table=table,
                last_batch=applied["recorded_at"].isoformat(),
                age=(now - applied["recorded_at"]).total_seconds(),
                newest_change_seq=applied["change_seq"],
                newest_change=applied["changed_at"] and applied["changed_at"].isoformat(),
                path=progress.get(f"{table}_history", {}).get("path"),
                lag=hours.get("lag"),
                behind=max(
                    (
                        max(0.0, (applied["recorded_at"] - mart["recorded_at"]).total_seconds())
                        for mart in marts
                    ),
                    default=None,
                ),
                changes=None if changes is None else int(changes),
                late_share=int(hours["late_changes"]) / int(changes) if changes else None,
                rejected=rejected,
                unresolved=unresolved,
                files=sum(count for count, _ in sizes.values()),
                bytes=sum(size for _, size in sizes.values()),
                compaction_due=[name for name, (count, _) in sizes.items() if count > MANY_FILES],
                failed=_failed(table, results),
            )
        )
    listed = {each.table for each in found}
    nodes = change_log_nodes(read_manifest(folder))
    logs_of_project = {progress_name(node, schema) for node in nodes}
    new = {log.removesuffix(CHANGES) for log in logs_of_project if log in results} - listed
    for table in new:
        # its first run failed
        if failed := _failed(table, results):
            found.append(TableStatus(table, failed=failed))
    return sorted(found, key=lambda each: each.table)


def relations_of(table: str) -> list[str]:
    """The relations that a table may have: change log, rejected records and marts."""
    return [table + suffix for suffix in (CHANGES, REJECTED, *MARTS)]


def _rows(warehouse: Warehouse, schema: str, sql: str, key: str) -> dict[str, dict[str, Any]]:
    found = run(connect(), warehouse, schema, sql)
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
    return {row[key]: row for row in rows}


def _rejects(
    warehouse: Warehouse, schema: str, table: str, relations: Mapping[str, str]
) -> tuple[int, int]:
    name = f"{table}{REJECTED}"
    if name not in relations:
        return 0, 0
    unresolved = warehouse.arrow(schema, name, columns=REJECTED_COLUMNS)["resolved_at"]
    return len(unresolved), unresolved.null_count


def _failed(table: str, results: Mapping[str, str]) -> list[str] | None:
    own = [table + suffix for suffix in (CHANGES, *MARTS) if table + suffix in results]
    if not own:
        return None
    return [name for name in own if results[name] not in ("success", "pass")]
