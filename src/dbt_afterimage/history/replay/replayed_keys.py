"""From where each key of a batch with late changes has to be built again."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt_afterimage.history.affected_keys import (
    changes_by_key,
    is_of_any_transaction,
    is_of_transaction,
)
from dbt_afterimage.history.names import KEY_CHANGE_OUT, KIND, REPLAY_FROM, own
from dbt_afterimage.history.profile import content_of
from dbt_afterimage.history.replay.contradicted_loads import (
    IS_LOADED,
    OPENED_SEQ,
    keys_contradicting_their_load,
)
from dbt_afterimage.history.sql import columns, equal, is_open_since, was_open_at
from dbt_afterimage.history.table import HistoryTable
from dbt_afterimage.log_rows.profile import BatchProfile
from dbt_afterimage.spark.literals import text, timestamp

ANCHOR_SEQ = own("anchor_seq")
"""Where the anchor version of a key began, if a later change may have filled it in; else NULL."""
UNKNOWN_COLUMNS = own("anchor_unknown_columns")
"""Columns that the anchor version of a key does not know, and its replay continues."""
_FIRST_SEQ = own("first_seq")
_IS_NEW = own("is_new")


def replayed_keys(
    changes: DataFrame,
    history: DataFrame,
    table: HistoryTable,
    batch: BatchProfile,
    later: BatchProfile,
    is_new: str,
    last_load: str | None,
) -> DataFrame:
    """The keys of a batch; REPLAY_FROM, UNKNOWN_COLUMNS of the version open there, and ANCHOR_SEQ.

    REPLAY_FROM is the key's first change in the batch. It is NULL, the beginning of the log, where
    that version does not suffice:

    - a later change has updated it in place, so it does not hold the values of that time (R4, R9);
      `without_filled_anchors` finds the rest of these
    - a key change shares a transaction with earlier changes, whose displaced rows the version
      does not show, or names neither transaction nor time (R7)
    - the first change contradicts what the load gave the key, or precedes an insert that did (R8)
    - no version was open, and one that had ended has a later time, which the new ones must not
      precede (R10)

    Args:
        later: the profile of all changes from the batch's first one on.
        last_load: change_seq of the newest load, if there was one.
    """
    first_changes = _first_changes(changes.where(is_new), table, batch)
    since = changes.where(f"change_seq >= {text(str(batch.first_seq))}")
    key_events = changes_by_key(
        since.selectExpr("*", f"{is_new} as {_IS_NEW}"),
        table,
        has_key_changes=later.key_changes > 0,
    )
    recent = history.alias("versions").where(is_open_since(text(str(batch.first_seq)), "versions"))
    anchors = _anchor_versions(first_changes, recent, table)
    replays = _replays(first_changes, key_events, anchors, table, batch, later)
    found = _with_overtaken(replays, history, table, later)
    if table.base:
        contradicting = (
            keys_contradicting_their_load(changes.where(is_new), recent, table, batch)
            .where(f"{IS_LOADED} or {OPENED_SEQ} < {text(last_load)}" if last_load else IS_LOADED)
            .selectExpr(*columns(table.key), f"true as {own('contradicts_load')}")
        )
        found = found.join(contradicting, list(table.key), "left")
    else:
        found = found.selectExpr("*", f"false as {own('contradicts_load')}")
    return found.selectExpr(
        *columns(table.key),
        f"if({own('needs_whole_log')} or {own('is_overtaken')} is not null"
        f" or coalesce({own('contradicts_load')}, false), null, {_FIRST_SEQ}) as {REPLAY_FROM}",
        f"unknown_columns as {UNKNOWN_COLUMNS}",
        ANCHOR_SEQ,
    )


def without_filled_anchors(
    keys: DataFrame, changes: DataFrame, table: HistoryTable, *, has_few_keys: bool
) -> DataFrame:
    """The replayed keys; REPLAY_FROM is NULL also where the anchor version may have been filled.

    A later change fills in what the change that opened the version did not know (R9), and the
    version does not say so. If a change that knows all columns has opened it, nothing was filled. A
    load's row in the log does not show what a live base held at the load (R8).

    Args:
        keys: keys with REPLAY_FROM and ANCHOR_SEQ.
        changes: the log from the smallest ANCHOR_SEQ on.
        has_few_keys: whether the keys may be broadcast.
    """
    knew_all = own("knew_all")
    suspects = keys.where(f"{ANCHOR_SEQ} is not null").select(*columns(table.key), ANCHOR_SEQ)
    knows_all = "known_columns is null and change_oper not in ('T', 'D') and load_rows is null"
    if table.base == "live":
        knows_all += " and change_oper <> 'L'"
    same = (
        f"{equal(table.key, 'opened', 'suspects', '=')}"
        f" and opened.change_seq = suspects.{ANCHOR_SEQ}"
    )
    complete = (
        changes.where(knows_all)
        .alias("opened")
        .join((F.broadcast(suspects) if has_few_keys else suspects).alias("suspects"), F.expr(same))
        .select(*columns(table.key, "suspects."))
        .distinct()
        .selectExpr("*", f"true as {knew_all}")
    )
    return keys.join(complete, list(table.key), "left").selectExpr(
        *columns(table.key),
        f"if({ANCHOR_SEQ} is not null and {knew_all} is null, null, {REPLAY_FROM})"
        f" as {REPLAY_FROM}",
        UNKNOWN_COLUMNS,
    )


def _first_changes(batch: DataFrame, table: HistoryTable, profile: BatchProfile) -> DataFrame:
    named = changes_by_key(batch, table, has_key_changes=profile.key_changes > 0)
    return named.groupBy(*columns(table.key)).agg(F.min("change_seq").alias(_FIRST_SEQ))


def _anchor_versions(first_changes: DataFrame, recent: DataFrame, table: HistoryTable) -> DataFrame:
    """The version that was open before the first change of each key, where there was one."""
    return (
        first_changes.alias("first")
        .join(
            recent.alias("versions"),
            F.expr(
                f"{equal(table.key, 'first', 'versions', '=')}"
                f" and {was_open_at(f'first.{_FIRST_SEQ}', 'versions')}"
            ),
        )
        .selectExpr(
            *columns(table.key, "first."),
            "versions.valid_from",
            "versions.valid_from_seq",
            "versions.valid_to_seq",
            "versions.transaction_id",
            "versions.unknown_columns",
        )
    )


def _replays(
    first_changes: DataFrame,
    key_events: DataFrame,
    anchors: DataFrame,
    table: HistoryTable,
    batch: BatchProfile,
    later: BatchProfile,
) -> DataFrame:
    """Per key what its later changes show about its anchor version."""
    updates_in_place = content_of(later, table).forward_filled or len(table.tracked) < len(
        table.values
    )
    is_later_upsert = (
        f"not later.{_IS_NEW} and later.{KIND} not in ('{KEY_CHANGE_OUT}', 'D')"
        " and anchor.valid_from is not null"
        " and (anchor.valid_to_seq is null or later.change_seq < anchor.valid_to_seq)"
    )
    updated_since = (
        f"coalesce(bool_or({'true' if updates_in_place else 'anchor.unknown_columns is not null'}"
        f" and {is_later_upsert}), false)"
    )
    within_a_transaction = "false"
    if later.key_changes:
        within_a_transaction = (
            f"(coalesce(bool_or({is_of_transaction('later', 'anchor')}"
            f" or {is_of_any_transaction('later')}), false)"
            " or (any_value(anchor.valid_from) is null"
            f" and count_if(later.{KIND} in ('{KEY_CHANGE_OUT}', 'K')) > 1))"
        )
    inserted_later = "false"
    if table.base:
        inserted_later = (
            "(any_value(anchor.valid_from) is null"
            f" and coalesce(bool_or(later.{KIND} = 'I' and not later.{_IS_NEW}), false))"
        )
    same_key = equal(table.key, "first", "later", "=")
    return (
        first_changes.alias("first")
        .join(
            key_events.alias("later"),
            F.expr(f"{same_key} and first.{_FIRST_SEQ} <= later.change_seq"),
        )
        .join(anchors.alias("anchor"), F.expr(equal(table.key, "first", "anchor", "=")), "left")
        .groupBy(*columns(table.key, "first."), f"first.{_FIRST_SEQ}")
        .agg(
            F.expr("any_value(anchor.valid_from is not null)").alias(own("has_anchor")),
            F.expr("any_value(anchor.unknown_columns)").alias("unknown_columns"),
            F.expr(f"max(case when {is_later_upsert} then anchor.valid_from_seq end)").alias(
                ANCHOR_SEQ
            ),
            F.expr(f"min(coalesce(later.changed_at, {table.beginning}))").alias(own("earliest")),
            F.expr(f"{updated_since} or {within_a_transaction} or {inserted_later}").alias(
                own("needs_whole_log")
            ),
        )
    )


def _with_overtaken(
    replays: DataFrame, history: DataFrame, table: HistoryTable, later: BatchProfile
) -> DataFrame:
    """Adds is_overtaken: true where a version that had ended has a later time than the changes."""
    overtaken = (
        history.alias("versions")
        .where(f"versions.valid_to > {timestamp(later.first_changed_at)}")
        .join(
            replays.alias("replays"),
            F.expr(
                f"{equal(table.key, 'versions', 'replays', '=')}"
                f" and versions.valid_to_seq < replays.{_FIRST_SEQ}"
                f" and versions.valid_to > replays.{own('earliest')}"
            ),
        )
        .where(f"not replays.{own('has_anchor')}")
        .select(*columns(table.key, "versions."))
        .distinct()
        .selectExpr("*", f"true as {own('is_overtaken')}")
    )
    return replays.join(overtaken, list(table.key), "left")
