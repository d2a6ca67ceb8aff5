"""Values that a change does not know, taken from the version before, never over a gap (R9)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt_afterimage.history.names import KIND, RANK, ROW, UNKNOWN, own
from dbt_afterimage.history.rules.key_changes import DEPARTURE
from dbt_afterimage.history.sql import by_key, columns, equal, is_upsert
from dbt_afterimage.history.table import HistoryTable
from dbt_afterimage.log_rows.conditions import is_incomplete, knows
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.spark.literals import text
from dbt_afterimage.storage.checkpoint import checkpoint

STARTED = own("row_started_seq")
ROW_ID = own("row_id")
"""A row lineage: struct of the key under which the row began, and where it began there."""


def row_lineages(events: DataFrame, table: HistoryTable) -> DataFrame:
    """Adds STARTED, where the row of an event began on its key.

    Invariant: a row begins on a key with its first upsert, or a key-change-in, and ends with a
    delete, a key-change-out or a boundary event.
    """
    starts = own("starts")
    previous = f"lag({KIND}) over ({by_key(table.key)})"
    return (
        events.selectExpr(
            "*",
            f"{KIND} = 'K' or coalesce(not ({is_upsert(previous)}), true) as {starts}",
        )
        .selectExpr(
            "*",
            f"max(case when {starts} then change_seq end) over ({by_key(table.key)}"
            f" rows between unbounded preceding and current row) as {STARTED}",
        )
        .drop(starts)
    )


def row_ids_along_key_changes(
    lineages: DataFrame,
    departures: DataFrame,
    table: HistoryTable,
    forward_filled: Sequence[str],
    checkpoints: list[DataFrame],
) -> DataFrame:
    """Adds ROW_ID: a row that changes its key without knowing all values keeps that of its old key.

    Args:
        lineages: events with STARTED.
        departures: key events with DEPARTURE, before those of displaced rows were left out.
        checkpoints: the checkpoint of the arrivals is appended to this list.
    """
    key = table.key
    old = {name: own(f"old_{number}") for number, name in enumerate(key)}
    left = departures.where(f"{DEPARTURE}.row_started_seq is not null").selectExpr(
        *columns(key), "change_seq", f"{DEPARTURE}.row_started_seq as {STARTED}"
    )
    same_old_key = " and ".join(
        f"event.before.{quoted(name)} = departure.{quoted(name)}" for name in key
    )
    # every step of the recursion reads them: without a checkpoint, Spark computes all key events
    # again for each step
    arrivals = checkpoint(
        lineages.where(f"{KIND} = 'K' and {is_incomplete(forward_filled)}")
        .alias("event")
        .join(
            left.alias("departure"),
            F.expr(f"event.change_seq = departure.change_seq and {same_old_key}"),
        )
        .selectExpr(
            *columns(key, "event."),
            f"event.change_seq as {STARTED}",
            *(f"departure.{quoted(name)} as {column}" for name, column in old.items()),
            f"departure.{STARTED} as {own('old_started')}",
        )
    )
    checkpoints.append(arrivals)
    origins = lineages.sparkSession.sql(_origins(table, old), arrivals=arrivals)
    own_id = ", ".join(f"event.{name} as {name}" for name in columns(key))
    return (
        lineages.alias("event")
        .join(
            origins.alias("origin"),
            F.expr(f"{equal(key, 'event', 'origin', '=')} and event.{STARTED} = origin.{STARTED}"),
            "left",
        )
        .selectExpr(
            "event.*",
            f"coalesce(origin.{ROW_ID}, struct({own_id}, event.{STARTED} as {STARTED}))"
            f" as {ROW_ID}",
        )
    )


def forward_fill(
    lineages: DataFrame,
    table: HistoryTable,
    forward_filled: Sequence[str],
    *,
    has_key_changes: bool,
) -> DataFrame:
    """Fills unknown values of ROW along a row's lineage, and names in UNKNOWN what stays unknown.

    Invariant: a value comes from the row's own lineage only, from the newest event that knew it.
    For a key change, the before image comes first.
    """
    if ROW_ID in lineages.columns:
        lineage = f"partition by {ROW_ID} order by change_seq, {RANK}"
    else:
        lineage = by_key(table.key, STARTED)
    filled = {name: own(f"filled_{number}") for number, name in enumerate(forward_filled)}

    def known_value(name: str) -> str:
        cases = f"when not ({is_upsert()}) then null when {knows('known_columns', name)}"
        cases += f" then struct({ROW}.{quoted(name)} as value)"
        if has_key_changes:
            cases += f" when {KIND} = 'K' and {knows('before_known_columns', name)}"
            cases += f" then struct(before.{quoted(name)} as value)"
        return f"case {cases} end"

    fields = ", ".join(
        f"{filled[name]}.value as {quoted(name)}"
        if name in filled
        else f"{ROW}.{quoted(name)} as {quoted(name)}"
        for name in table.values
    )
    unknown = ", ".join(
        f"case when {column} is null then {text(name)} end" for name, column in filled.items()
    )
    return lineages.selectExpr(
        "*",
        *(
            f"last_value({known_value(name)}, true) over ({lineage}"
            f" rows between unbounded preceding and current row) as {column}"
            for name, column in filled.items()
        ),
    ).selectExpr(
        *(
            f"struct({fields}) as {ROW}" if name == ROW else quoted(name)
            for name in lineages.columns
            if name not in (STARTED, ROW_ID, "known_columns")
        ),
        f"nullif(array_compact(array({unknown})), array()) as {UNKNOWN}",
    )


def _origins(table: HistoryTable, old: dict[str, str]) -> str:
    """SQL: where each of `arrivals` began, over any number of key changes."""
    key = columns(table.key)
    old_started = own("old_started")
    old_key = ", ".join(f"arrival.{old[name]} as {quoted(name)}" for name in table.key)
    comes_from = " and ".join(
        f"{{later}}.{old[name]} = {{earlier}}.{quoted(name)}" for name in table.key
    )
    comes_from += f" and {{later}}.{old_started} = {{earlier}}.{STARTED}"
    arrival_key = ", ".join(f"arrival.{name}" for name in key)
    return f"""
        with recursive origins as (
            select {arrival_key}, arrival.{STARTED},
                struct({old_key}, arrival.{old_started} as {STARTED}) as {ROW_ID}
            from {{arrivals}} as arrival
            left anti join {{arrivals}} as earlier
                on {comes_from.format(later="arrival", earlier="earlier")}
            union all
            select {arrival_key}, arrival.{STARTED}, origins.{ROW_ID}
            from origins
            inner join {{arrivals}} as arrival
                on {comes_from.format(later="arrival", earlier="origins")}
        )
        select * from origins
    """
