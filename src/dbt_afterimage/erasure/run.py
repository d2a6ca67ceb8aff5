"""An erasure from its preview to its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.erased.erasures import (
    Erasure,
    complete_erasures,
    erasures_of,
    record_erasures,
)
from dbt_afterimage.erasure.decoded import decoded_rows, erase_from_decoded, record_hashes
from dbt_afterimage.erasure.keys import Scope, find_keys, shown
from dbt_afterimage.erasure.log import (
    correct_load_markers,
    erase_from_log,
    erase_from_rejected,
    log_rows,
    rejected_rows,
    rejected_without_key,
)
from dbt_afterimage.erasure.marts import mart_rows, rebuild_mart_rows
from dbt_afterimage.erasure.request import ErasureError, ErasureRequest, check_columns
from dbt_afterimage.erasure.tables import ErasableTables
from dbt_afterimage.errors import ConcurrentRunError, conflicts_explained
from dbt_afterimage.storage.concurrency import is_newer
from dbt_afterimage.storage.formats import format_named
from dbt_afterimage.storage.formats.iceberg import TAG, version_with_tagged_rows
from dbt_afterimage.storage.progress import greatest, read_progress

Report = Callable[[str], None]


@dataclass(frozen=True)
class ErasurePlan(Scope):
    """The plan of an erasure.

    Attributes:
        up_to: change_seq up to which records are erased.
        counts: rows with data to erase, by table, in the order of the work.
        without_key: rejected records that do not say whose they are.
        erasures: what `afterimage_erasures` will say.
    """

    up_to: str
    counts: dict[str, int]
    without_key: int
    erasures: list[Erasure]


def plan_erasure(
    session: SparkSession, tables: ErasableTables, request: ErasureRequest
) -> ErasurePlan:
    """Find what an erasure concerns; nothing is written.

    Raises:
        ErasureError: the requested erasure is not possible.
    """
    if not tables.key:
        raise ErasureError(
            f"`erase`: source table {tables.source_table} declares no `key`, so its rows cannot be "
            "identified. Nothing was erased. Fix: declare the `key` in its `meta.afterimage`."
        )
    columns = None
    if request.columns is not None:
        columns = check_columns(
            request.columns, tables.data_columns, tables.key, tables.source_table
        )
    present = _present_tables(session, tables)
    for table in present:
        session.sql(f"refresh table {table}")
    _check_pinned_states(session, present, tables)
    _check_up_to_date(session, tables)
    keys = find_keys(session, tables, request)
    scope = Scope(tables, keys, columns)
    up_to = _read_up_to(session, tables)
    erasures = _erasures(session, scope, up_to)
    counts = _counts(session, scope, erasures)
    known = {
        each.key_hash for each in erasures_of(session, tables.erasures_table, tables.change_log)
    }
    if not any(counts.values()) and not known.intersection(keys.hashes):
        named = ", ".join(shown(tables.key, texts) for texts in keys.texts)
        what = "rows" if columns is None else f"values in {', '.join(columns)}"
        raise ErasureError(
            f"`erase`: no table of {tables.source_table} has {what} of the key {named}. Nothing "
            "was erased. Fix: correct --key, or run dbt build first if its records are not in the "
            "change log yet."
        )
    return ErasurePlan(
        tables, keys, columns, up_to, counts, rejected_without_key(session, tables), erasures
    )


def erase(session: SparkSession, plan: ErasurePlan, report: Report) -> None:
    """Erase what a plan says; a call that was killed can be repeated.

    Raises:
        ConcurrentRunError: a run wrote to a table meanwhile.
    """
    tables = plan.tables
    # first: from now on no run brings the data back
    record_erasures(session, tables.erasures_table, plan.erasures)
    for decoded in tables.decoded:
        erase_from_decoded(
            session, decoded, [each for each in plan.erasures if each.decoded_log == decoded.name]
        )
    erase_from_rejected(session, plan)
    erase_from_log(session, plan)
    if plan.columns is None:
        correct_load_markers(session, tables)
    for mart in tables.marts:
        rebuild_mart_rows(session, plan, mart)
    # after all rows: a mart that is rebuilt reads the tables before it
    for table in _present_tables(session, tables):
        with conflicts_explained(table):
            report(f"{table}: {format_named(tables.table_format).purge(session, table)}")
        session.sql(f"refresh table {table}")
    for table, left in _counts(session, plan, plan.erasures).items():
        if left:
            raise ConcurrentRunError.of(table)
    complete_erasures(
        session, tables.erasures_table, tables.change_log, plan.keys.hashes, plan.columns
    )


def _present_tables(session: SparkSession, tables: ErasableTables) -> list[str]:
    names = [
        *(decoded.table for decoded in tables.decoded),
        tables.rejected,
        tables.log,
        *(mart.table for mart in tables.marts),
    ]
    return [name for name in names if session.catalog.tableExists(name)]


def _check_pinned_states(
    session: SparkSession, present: Sequence[str], tables: ErasableTables
) -> None:
    """No state stays readable: the tag of ours moves, so it must not be behind the table."""
    table_kind = format_named(tables.table_format)
    for table in present:
        pinned = table_kind.pinned_states(session, table)
        if tables.is_published and f"tag {TAG}" in pinned:
            pinned.remove(f"tag {TAG}")
            if version_with_tagged_rows(session, table) is None:
                raise ErasureError(
                    f"`erase`: {table} has rows that are not published yet, and an erasure "
                    "publishes the table as it leaves it. Nothing was erased. Fix: run dbt build, "
                    "whose tests must pass, or afterimage publish --accept; then repeat."
                )
        if pinned:
            kind, name = pinned[0].split(" ", 1)
            raise ErasureError(
                f"`erase`: {table} has the {', '.join(pinned)}, whose old state would keep the "
                "data. Nothing was erased. Fix: drop it, with afterimage spark-sql -e "
                f"'alter table {table} drop {kind} `{name}`'."
            )


def _check_up_to_date(session: SparkSession, tables: ErasableTables) -> None:
    """The rows of a key are rebuilt from a mart's whole input, so the mart must have applied it.

    A mart whose input has nothing new for it writes no progress. A feed keeps its rows.
    """
    for mart in tables.marts:
        if mart.kind == "history_feed":
            continue
        made_from = tables.made_from(mart)
        applied = read_progress(session, tables.progress, mart.name).recorded_at
        if session.table(made_from).filter(is_newer(applied, "recorded_at")).isEmpty():
            continue
        raise ErasureError(
            f"`erase`: {mart.table} has not applied all of {made_from}: it has applied batches up "
            f"to {applied}. Nothing was erased. Fix: run dbt build --select {tables.selected_as}+, "
            "then repeat."
        )


def _read_up_to(session: SparkSession, tables: ErasableTables) -> str:
    """The greatest change_seq that the log has read, full loads included."""
    last = session.table(tables.log).agg(F.max("change_seq")).first()
    read = read_progress(session, tables.progress, tables.change_log).change_seq
    return greatest(read, last[0] if last else None) or ""


def _erasures(session: SparkSession, scope: Scope, up_to: str) -> list[Erasure]:
    """One erasure per key, and one per key and decoded log."""
    tables, keys, columns = scope.tables, scope.keys, scope.columns
    found = []
    for decoded in tables.decoded:
        hashes = record_hashes(session, scope, decoded, up_to)
        found += [
            Erasure(
                tables.change_log,
                key_hash,
                columns,
                up_to,
                decoded.name,
                tuple(sorted(hashes.get(key_hash, []))),
            )
            for key_hash in keys.hashes
        ]
    return found or [
        Erasure(tables.change_log, key_hash, columns, up_to) for key_hash in keys.hashes
    ]


def _counts(session: SparkSession, scope: Scope, erasures: Sequence[Erasure]) -> dict[str, int]:
    """Rows with data to erase, by table."""
    tables, counts = scope.tables, {}
    for decoded in tables.decoded:
        own = [each for each in erasures if each.decoded_log == decoded.name]
        counts[decoded.table] = decoded_rows(session, decoded, own, scope.columns).count()
    rejected = rejected_rows(session, scope)
    if rejected is not None:
        counts[tables.rejected] = rejected.count()
    counts[tables.log] = log_rows(session, scope).count()
    for mart in tables.marts:
        counts[mart.table] = mart_rows(session, scope, mart).count()
    return counts
