"""Everything that the report shows, read once from the warehouse and from dbt's target folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from dbt_afterimage.cli.commands.report.activity import Activity, read_activity
from dbt_afterimage.cli.commands.report.batches import (
    Applied,
    Batch,
    batches,
    last_applied,
    read_applied,
)
from dbt_afterimage.cli.commands.report.growth import Growth, growth
from dbt_afterimage.cli.commands.report.lineage import RawTable, raw_tables
from dbt_afterimage.cli.commands.report.rejected import Rejected, read_rejected
from dbt_afterimage.cli.support.runs import Run, last_runs
from dbt_afterimage.cli.support.table_status import (
    CHANGES,
    MARTS,
    TableStatus,
    read_status,
    relations_of,
)
from dbt_afterimage.cli.support.warehouse import TABLE, AllSchemas, TableVersion, Warehouse


@dataclass(frozen=True)
class Request:
    """The user's request.

    Attributes:
        schema: the target's schema.
        activity: name of the `change_activity` table.
        days: how far back plots go.
        now: the time of the report, UTC.
        target_folder: dbt's.
    """

    schema: str
    activity: str
    days: int
    now: datetime
    target_folder: Path


@dataclass(frozen=True)
class Mart:
    """A table on the way from raw records to marts.

    Attributes:
        name: in the target's schema.
        rows: number of its rows, from metadata; None if that lacks it.
        applied: the batch that it applied last; None if it has applied none.
        behind: seconds from that batch to the newest one of the change log.
    """

    name: str
    rows: int | None
    applied: Applied | None
    behind: float | None


@dataclass(frozen=True)
class Flow:
    """One table from its raw tables to its marts.

    Attributes:
        table: its name.
        raw: its raw tables; None if dbt has written no manifest.
        log: its change log.
        marts: those that the schema has.
        status: None if its change log has no batch yet.
    """

    table: str
    raw: list[RawTable] | None
    log: Mart
    marts: list[Mart]
    status: TableStatus | None


@dataclass(frozen=True)
class Facts:
    """Everything that the report shows.

    Attributes:
        request: what the user requested.
        tables: as `afterimage status` shows them.
        flows: each table of `tables`, and each that the project declares.
        batches: of all change logs, the newest first.
        activity: None without an activity table, or without changes in it.
        has_activity_table: whether the schema has an activity table.
        rejected: by reason and table.
        growth: of all tables together; None if no metadata has sizes over time.
        growth_of: the same by table.
        runs: of dbt, the newest first.
    """

    request: Request
    tables: list[TableStatus]
    flows: list[Flow]
    batches: list[Batch]
    activity: Activity | None
    has_activity_table: bool
    rejected: list[Rejected]
    growth: Growth | None
    growth_of: dict[str, Growth | None]
    runs: list[Run]


def read_facts(source: Warehouse, request: Request) -> Facts:
    """Read progress, activity, rejected records and metadata; no change log or mart is scanned.

    Raises:
        WarehouseError: the schema has no progress table, so nothing was built in it.
    """
    schema, now = request.schema, request.now
    warehouse = AllSchemas(source, schema)
    tables = read_status(warehouse, schema, request.activity, request.target_folder, now)
    names = [each.table for each in tables]
    raw = raw_tables(request.target_folder, warehouse, schema)
    applied = read_applied(warehouse, schema)
    relations = warehouse.relations(schema)
    versions = {
        name: warehouse.versions(schema, name)
        for table in names
        for name in relations_of(table)
        if relations.get(name) == TABLE
    }
    by_table = {
        name: [versions[each] for each in relations_of(name) if each in versions] for name in names
    }
    return Facts(
        request=request,
        tables=tables,
        flows=_flows(tables, raw, applied, versions),
        batches=batches(applied, [each.table for each in tables if each.last_batch], versions),
        activity=read_activity(warehouse, schema, request.activity, request.days, now),
        has_activity_table=request.activity in relations,
        rejected=read_rejected(warehouse, schema, names),
        growth=growth(versions.values(), request.days, now),
        growth_of={name: growth(each, request.days, now) for name, each in by_table.items()},
        runs=last_runs(request.target_folder),
    )


def _flows(
    tables: Sequence[TableStatus],
    raw: Mapping[str, list[RawTable]],
    applied: Sequence[Applied],
    versions: Mapping[str, Sequence[TableVersion]],
) -> list[Flow]:
    status = {each.table: each for each in tables}
    last = last_applied(applied)
    found = []
    for table in sorted({*status, *raw}):
        newest = last.get(table + CHANGES)
        marts = [
            _mart(table + suffix, newest, last, versions)
            for suffix in MARTS
            if table + suffix in last or table + suffix in versions
        ]
        log = _mart(table + CHANGES, newest, last, versions)
        known = raw.get(table, []) if raw else None
        found.append(Flow(table, known, log, marts, status.get(table)))
    return found


def _mart(
    name: str,
    newest: Applied | None,
    last: Mapping[str, Applied],
    versions: Mapping[str, Sequence[TableVersion]],
) -> Mart:
    own, commits = last.get(name), versions.get(name)
    behind = None
    if own and newest:
        behind = max(0.0, (newest.recorded_at - own.recorded_at).total_seconds())
    return Mart(name, commits[-1].rows if commits else None, own, behind)
