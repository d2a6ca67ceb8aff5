"""Changes that show that a base table was not as it was at its load (R8)."""

from __future__ import annotations

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from dbt_afterimage.history.affected_keys import FEW_KEYS, changes_by_key
from dbt_afterimage.history.names import ANCHOR_VERSION, KEY_CHANGE_OUT, KIND, own
from dbt_afterimage.history.sql import RANK_OF_KIND, by_key, columns, equal, was_open_at
from dbt_afterimage.history.table import HistoryTable
from dbt_afterimage.log_rows.conditions import knows
from dbt_afterimage.log_rows.profile import BatchProfile
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.spark.literals import text

IS_LOADED = own("is_loaded")
OPENED_SEQ = own("opened_seq")
"""Where the version began that a change concerns."""


def last_load(changes: DataFrame) -> str | None:
    """The change_seq of the newest full load in a log."""
    row = changes.where("load_rows is not null").selectExpr("max(change_seq)").collect()[0]
    return None if row[0] is None else str(row[0])


def goes_by_inserts(table: HistoryTable, profile: BatchProfile) -> bool:
    """Whether only an insert can contradict a load, and the inserted keys may be broadcast.

    Nearly always none does.
    """
    return table.base == "frozen" and profile.inserts <= FEW_KEYS


def count_inserted_again(
    events: DataFrame, table: HistoryTable, observation: Observation
) -> DataFrame:
    """The events; `observation` counts inserts that come first after an anchor version.

    Not for batches with truncates: one that has a scope may come between the two.
    """
    after_anchor = own("after_anchor")
    previous = f"lag({KIND}) over ({by_key(table.key)})"
    return (
        events.selectExpr("*", f"{previous} = '{ANCHOR_VERSION}' as {after_anchor}")
        .observe(observation, F.expr(f"count_if({after_anchor} and {KIND} = 'I')").alias("count"))
        .drop(after_anchor)
    )


def keys_inserted_again(batch: DataFrame, versions: DataFrame, table: HistoryTable) -> DataFrame:
    """Keys of versions that the batch inserts."""
    inserted = batch.where("change_oper = 'I'").select(*columns(table.key))
    return versions.join(F.broadcast(inserted), list(table.key), "left_semi").select(
        *columns(table.key)
    )


def keys_contradicting_their_load(
    batch: DataFrame, versions: DataFrame, table: HistoryTable, profile: BatchProfile
) -> DataFrame:
    """Keys whose first change in the batch contradicts what a load gave them (R8).

    They have to be built again from the load on. IS_LOADED: that load is certain. Otherwise the
    version at OPENED_SEQ is older than the load, if there was one: a load whose row is equal to the
    open version leaves no trace in it.

    Args:
        versions: rows of the history, among them those that were open before the batch.
    """
    number, departures, truncated_at = own("number"), own("departures"), own("truncated_at")
    partition = ", ".join(columns(table.key))
    named = changes_by_key(batch, table, has_key_changes=profile.key_changes > 0)
    if goes_by_inserts(table, profile):
        both = keys_inserted_again(batch, versions, table)
        named = named.join(F.broadcast(both), list(table.key), "left_semi")
        versions = versions.join(F.broadcast(both), list(table.key), "left_semi")
    first = named.selectExpr(
        "*",
        f"row_number() over (partition by {partition}"
        f" order by change_seq, {RANK_OF_KIND}) as {number}",
        f"count_if({KIND} = '{KEY_CHANGE_OUT}') over (partition by {partition}) as {departures}",
    ).where(f"{number} = 1")
    if profile.truncates:
        # a truncate before it is the first change of every key, unless the truncate has a scope
        truncates = batch.where("change_oper = 'T' and truncate_scope is null")
        first_truncate = truncates.selectExpr(f"min(change_seq) as {truncated_at}")
        first = first.crossJoin(first_truncate).where(
            f"coalesce(change_seq < {truncated_at}, true)"
        )
    contradicts = f"opened.opened_by is not null and first.{KIND} = 'I'"
    is_loaded = "opened.opened_by = 'L'"
    if table.base == "live":
        proved, is_other_row = _contradicts_live_load(table, departures)
        contradicts = f"{proved} or {is_other_row}"
        is_loaded = f"({proved} or {is_loaded})"
    return (
        first.alias("first")
        .join(
            versions.alias("opened"),
            F.expr(
                f"{equal(table.key, 'first', 'opened', '=')}"
                f" and {was_open_at('first.change_seq', 'opened')}"
            ),
            "left",
        )
        .where(contradicts)
        .selectExpr(
            *columns(table.key, "first."),
            f"{is_loaded} as {IS_LOADED}",
            f"opened.valid_from_seq as {OPENED_SEQ}",
        )
    )


def _contradicts_live_load(table: HistoryTable, departures: str) -> tuple[str, str]:
    """Conditions on changes: they contradict any load, or one that left the version as it was."""
    kind = f"first.{KIND}"
    differs = [f"({kind} = 'U' and first.before is null)"]
    for name in table.values:
        column = quoted(name)
        differs.append(
            f"(first.before is not null and {knows('first.before_known_columns', name)}"
            f" and (not (first.before.{column} <=> opened.{column})"
            f" or coalesce(array_contains(opened.unknown_columns, {text(name)}), false)))"
        )
    proved = (
        # an insert or an arriving row proves that the key was empty, so the open version, of the
        # load or of the first transaction after it, was another row
        f"((opened.opened_by is not null and {kind} in ('I', 'K'))"
        # the base may have lost the row since
        f" or (opened.opened_by is null and ({kind} in ('U', '{KEY_CHANGE_OUT}', 'D')"
        f" or ({kind} = 'K' and first.{departures} > 0))))"
    )
    is_other_row = (
        f"(opened.opened_by is not null and {kind} in ('U', '{KEY_CHANGE_OUT}', 'D')"
        f" and ({' or '.join(differs)}))"
    )
    return proved, is_other_row
