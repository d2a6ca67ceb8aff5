"""The chain of transforms that makes versions of changes."""

from __future__ import annotations

from pyspark.sql import DataFrame, Observation

from dbt_afterimage.history.profile import ChangeContent
from dbt_afterimage.history.replay.contradicted_loads import count_inserted_again
from dbt_afterimage.history.rules.boundaries import boundary_events, end_by_boundary_events
from dbt_afterimage.history.rules.forward_fill import (
    forward_fill,
    row_ids_along_key_changes,
    row_lineages,
)
from dbt_afterimage.history.rules.intervals import (
    as_versions,
    intervals,
    last_upsert_of_change_seq,
    opening_and_closing_events,
    update_in_place,
)
from dbt_afterimage.history.rules.key_changes import (
    resolve_departures,
    without_displaced_departures,
)
from dbt_afterimage.history.rules.key_events import (
    key_events,
    of_affected_keys,
    with_anchor_versions,
)
from dbt_afterimage.history.rules.load_image import reconstruct_load_image
from dbt_afterimage.history.table import HistoryTable


def versions(
    changes: DataFrame,
    table: HistoryTable,
    content: ChangeContent,
    *,
    checkpoints: list[DataFrame],
    affected_keys: DataFrame | None = None,
    prior: DataFrame | None = None,
    replays: bool = False,
    has_few_keys: bool = False,
    inserted_again: Observation | None = None,
) -> DataFrame:
    """Versions of the rows that changes concern, a row per version.

    incremental: `changes` are the batch, `prior` the open versions of its keys. replay: `changes`
    are the log from the batch's first change on, or the whole log if some key needs it, `prior` the
    versions that were open at each key's REPLAY_FROM. rebuild: `changes` are the whole log, without
    prior versions; with `affected_keys`, of these keys only.

    Args:
        changes: rows of the change log, truncates and load markers included.
        checkpoints: checkpoints are appended to this list. Keep it until the versions are written,
            because Connect frees rows with their last reference, then unpersist them.
        affected_keys: the keys to build; None for all. With `replays`, also REPLAY_FROM.
        prior: rows of the history; with `replays`, also REPLAY_FROM.
        replays: whether each key is built from a change_seq of its own.
        has_few_keys: whether the affected keys may be broadcast.
        inserted_again: see `count_inserted_again`.
    """
    forward_filled = content.forward_filled
    scopes = content.truncate_scopes
    events = key_events(changes, table, has_key_changes=content.has_key_changes)
    if prior is not None:
        events = with_anchor_versions(events, prior, table, replays=replays)
    if affected_keys is not None:
        events = of_affected_keys(
            events, affected_keys, table, replays=replays, has_few_keys=has_few_keys
        )
    boundaries = boundary_events(changes, scopes)
    if table.base and content.has_loads:
        events = reconstruct_load_image(
            events,
            boundaries,
            table,
            scopes,
            forward_filled,
            has_key_changes=content.has_key_changes,
        )
    if content.has_boundary_events:
        events = end_by_boundary_events(
            events,
            boundaries,
            table,
            scopes,
            has_key_changes=content.has_key_changes,
            replays=replays,
        )
    events = _along_key_changes(events, table, content, checkpoints)
    if inserted_again is not None:
        events = count_inserted_again(events, table, inserted_again)
    events = last_upsert_of_change_seq(events, table)
    events = opening_and_closing_events(events, table, forward_filled)
    events = update_in_place(events, table, forward_filled)
    events = intervals(events, table)
    return as_versions(events, table, forward_filled, has_prior=prior is not None)


def _along_key_changes(
    events: DataFrame, table: HistoryTable, content: ChangeContent, checkpoints: list[DataFrame]
) -> DataFrame:
    """The rows that leave at key changes, and values forward-filled along each row's lineage."""
    departures = events
    if content.has_key_changes:
        departures = resolve_departures(
            events,
            table,
            fills_along_key_changes=content.fills_along_key_changes,
            forward_filled=content.forward_filled,
        )
        events = without_displaced_departures(departures)
    if not content.forward_filled:
        return events
    lineages = row_lineages(events, table)
    if content.fills_along_key_changes:
        lineages = row_ids_along_key_changes(
            lineages, departures, table, content.forward_filled, checkpoints
        )
    return forward_fill(
        lineages, table, content.forward_filled, has_key_changes=content.has_key_changes
    )
