"""The keys that changes concern."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt_afterimage.history.names import KEY_CHANGE_OUT, KIND
from dbt_afterimage.history.rules.key_events import by_affected_key
from dbt_afterimage.history.sql import columns, equal
from dbt_afterimage.history.table import HistoryTable

FEW_KEYS = 250_000
"""Broadcast limit: up to this many keys are broadcast, about 25 MB."""
_NOT_OF_KEYS = "change_oper not in ('T', 'L')"
"""Truncates and full loads concern all keys and name none."""


def changes_by_key(
    changes: DataFrame, table: HistoryTable, *, has_key_changes: bool = True
) -> DataFrame:
    """Changes that name a key, each once per key that it concerns."""
    return by_affected_key(changes.where(_NOT_OF_KEYS), table, has_key_changes=has_key_changes)


def keys_of(batch: DataFrame, table: HistoryTable, *, has_key_changes: bool) -> DataFrame:
    """The distinct keys that a batch names, old ones included."""
    named = changes_by_key(batch, table, has_key_changes=has_key_changes)
    return named.select(*columns(table.key)).distinct()


def keys_within_a_transaction(
    batch: DataFrame, opened: DataFrame, table: HistoryTable
) -> DataFrame:
    """Keys changed by a transaction that opened their version in an earlier batch."""
    return (
        changes_by_key(batch, table)
        .alias("key_event")
        .join(opened.alias("opened"), F.expr(equal(table.key, "key_event", "opened", "=")), "left")
        .where(
            f"{is_of_transaction('key_event', 'opened')} or {is_of_any_transaction('key_event')}"
        )
        .select(*columns(table.key, "key_event."))
    )


def is_of_transaction(key_event: str, version: str) -> str:
    """True for a key change of the transaction of a version of its key.

    That transaction may have displaced rows from the key, which the version does not show (R7).
    Without transaction ids: changes of one time.
    """
    return (
        f"({key_event}.{KIND} in ('{KEY_CHANGE_OUT}', 'K') and coalesce("
        f"{key_event}.transaction_id = {version}.transaction_id,"
        f" {key_event}.changed_at <= {version}.valid_from))"
    )


def is_of_any_transaction(key_event: str) -> str:
    """True for a key change that names neither its transaction nor its time.

    All such key changes count as one transaction (R7), and only the whole log of a key shows which
    rows they have displaced from it.
    """
    return (
        f"({key_event}.{KIND} in ('{KEY_CHANGE_OUT}', 'K') and {key_event}.transaction_id is null"
        f" and {key_event}.changed_at is null)"
    )
