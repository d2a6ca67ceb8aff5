"""The rows that a run writes to a history: profile, plan, versions, differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession

from dbt_afterimage.history.affected_keys import keys_within_a_transaction
from dbt_afterimage.history.differences import changed_versions
from dbt_afterimage.history.names import VERSION_ID
from dbt_afterimage.history.open_versions import open_versions, prior_versions
from dbt_afterimage.history.plan import (
    Applied,
    StoredVersions,
    VersionsPlan,
    plan_versions,
    reason_to_replay,
)
from dbt_afterimage.history.profile import (
    content_of,
    content_of_log,
    profile_of,
)
from dbt_afterimage.history.replay.contradicted_loads import (
    IS_LOADED,
    OPENED_SEQ,
    goes_by_inserts,
    keys_contradicting_their_load,
    keys_inserted_again,
    last_load,
)
from dbt_afterimage.history.replay.replayed_versions import Replay, differences_to_log
from dbt_afterimage.history.sql import is_open_since
from dbt_afterimage.history.table import HistoryTable
from dbt_afterimage.history.versions import versions
from dbt_afterimage.log_rows.profile import BatchProfile
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.spark.literals import is_of_batches, text, timestamp, timestamp_as_text
from dbt_afterimage.storage.checkpoint import is_observed, unpersist
from dbt_afterimage.storage.mart_batch import ACTION, computed
from dbt_afterimage.storage.progress import greatest


@dataclass(frozen=True)
class HistoryRows:
    """The rows that a run writes.

    Attributes:
        rows: columns of the history; of a batch also ACTION.
        applied: what the history will have applied.
        plan: the path taken.
        changes: how many changes the batch has.
        identity: columns that identify a row of the table.
        where: condition on `target`, the table, so that other rows are not read; "" for none.
        checkpoints: rows to free afterwards.
        counts: see `MartBatch`.
        has_inserted_again: an insert comes first in the batch on a key that has an open version;
            False also where that was not counted.
    """

    rows: DataFrame
    applied: Applied
    plan: VersionsPlan
    changes: int
    identity: tuple[str, ...] = ()
    where: str = ""
    checkpoints: list[DataFrame] = field(default_factory=list)
    counts: Mapping[str, int] | None = None
    has_inserted_again: bool = False


def whole_history(log: DataFrame, table: HistoryTable) -> HistoryRows:
    """The history of a whole log, for a table that is created or replaced."""
    profile = profile_of(log, table)
    # rows of a later batch would be new once more to the next run
    changes = _up_to(log, profile)
    content = content_of_log(changes, profile, table)
    checkpoints: list[DataFrame] = []
    made = versions(changes, table, content, checkpoints=checkpoints)
    return HistoryRows(
        rows=_as_history(made, table, profile.recorded_at),
        applied=Applied(
            profile.recorded_at, profile.change_seq, profile.changed_at, content.forward_filled
        ),
        plan=VersionsPlan("rebuild", "the whole log"),
        changes=profile.changes,
        checkpoints=checkpoints,
    )


def rebuilt_keys(
    log: DataFrame,
    history: DataFrame,
    table: HistoryTable,
    keys: DataFrame,
    recorded_at: str | None,
) -> HistoryRows:
    """The difference between the stored versions of some keys and those of the whole log.

    Args:
        log: the change log, of which the history has applied everything.
        keys: no key change may leave them.
        recorded_at: the batch of the rows that differ.
    """
    profile = profile_of(log, table)
    content = content_of_log(log, profile, table)
    checkpoints: list[DataFrame] = []
    compared = None if content.fills_along_key_changes else keys
    differences = differences_to_log(
        log, history, table, content, compared, checkpoints=checkpoints
    )
    return HistoryRows(
        rows=_as_history(differences, table, recorded_at, ACTION),
        applied=Applied(
            recorded_at, profile.change_seq, profile.changed_at, content.forward_filled
        ),
        plan=VersionsPlan("replay", "data of some keys was erased"),
        changes=profile.changes,
        identity=(table.version_id,),
        checkpoints=checkpoints,
    )


def next_batch(
    session: SparkSession,
    log: DataFrame,
    history: DataFrame,
    table: HistoryTable,
    applied: Applied,
    profile: BatchProfile | None = None,
    batches: Sequence[str] | None = None,
    *,
    is_as_published: bool = False,
    force_full_replay: bool,
    reads_arrays_apart: bool = False,
) -> HistoryRows | None:
    """The new changes of the log as changes of the stored history; None without any.

    Args:
        profile: the recorded profile of all batches since; None if the log has to be queried.
        is_as_published: log and history are as their last publications left them, so nothing was
            written to either of them without progress.
        reads_arrays_apart: see `open_versions_of`; whether it is faster depends on the format.
    """
    is_new = _is_new(applied)
    # incomplete key changes were counted with the columns of that time
    if profile and profile.key_changes and profile.columns != len(table.columns):
        profile = None
    has_profile = profile is not None
    if profile is None:
        profile = profile_of(log.where(is_new), table)
    if not profile.changes:
        return None
    # another run may append the next batch at any moment
    changes = _up_to(log, profile)
    if has_profile and batches:
        is_new = is_of_batches(applied.recorded_at, batches)
        batch = log.where(is_new)
    else:
        batch = changes.where(is_new)
    reason = reason_to_replay(profile, applied, force_full_replay=force_full_replay)
    stored = StoredVersions()
    # in the job that makes the versions, where it can be: else a scan of all open versions
    counts_inserts = (
        profile.inserts > 0
        and goes_by_inserts(table, profile)
        and not profile.truncates
        and is_observed(session)
    )
    if not (profile.loads and table.base):
        stored = _stored_versions(
            session,
            history,
            table,
            applied,
            profile,
            changes,
            batch,
            is_compared=reason is None,
            counts_inserts=counts_inserts,
            is_as_published=has_profile and is_as_published,
        )
    if has_profile and stored.changes not in (None, profile.changes):
        # something was erased, or Spark still reads an earlier state of the log
        return next_batch(
            session,
            log,
            history,
            table,
            applied,
            force_full_replay=force_full_replay,
            reads_arrays_apart=reads_arrays_apart,
        )
    plan_with = partial(
        plan_versions,
        profile,
        applied,
        has_base=table.base is not None,
        force_full_replay=force_full_replay,
    )
    plan = plan_with(stored)
    applied_after_run = Applied(
        profile.recorded_at,
        greatest(profile.change_seq, applied.change_seq),
        greatest(profile.changed_at, applied.changed_at),
    )
    if plan.path == "incremental":
        following = _following(
            batch,
            history,
            table,
            profile,
            plan,
            applied_after_run,
            stored,
            reads_arrays_apart,
            counts_inserts=counts_inserts,
        )
        if not following.has_inserted_again:
            return following
        opened = open_versions(history, stored.unknown_columns)
        contradicts_load = _contradicts_load(batch, opened, table, profile, changes)
        plan = plan_with(replace(stored, contradicts_load=contradicts_load))
        if plan.path == "incremental":
            return following
        for rows in following.checkpoints:
            unpersist(rows)
    replay = Replay(changes, history, table, profile, is_new)
    replayed = replay.replayed(plan, force_full_replay=force_full_replay)
    return HistoryRows(
        rows=_as_history(replayed.differences, table, profile.recorded_at, ACTION),
        applied=applied_after_run,
        plan=replayed.plan,
        changes=profile.changes,
        identity=(table.version_id,),
        # what had ended before is not read
        where=is_open_since(text(replayed.from_seq), "target") if replayed.from_seq else "",
        checkpoints=replay.checkpoints,
    )


def _following(
    batch: DataFrame,
    history: DataFrame,
    table: HistoryTable,
    profile: BatchProfile,
    plan: VersionsPlan,
    applied_after_run: Applied,
    stored: StoredVersions,
    reads_arrays_apart: bool,
    *,
    counts_inserts: bool,
) -> HistoryRows:
    """Versions of changes that are all newer than the open ones, which they close and follow."""
    unknown_columns = stored.unknown_columns
    opened = open_versions(history, unknown_columns)
    prior = prior_versions(
        batch, opened, table, profile, unknown_columns, reads_arrays_apart=reads_arrays_apart
    )
    content = content_of(profile, table, unknown_columns, follows_versions=True)
    checkpoints: list[DataFrame] = []
    inserted_again = Observation() if counts_inserts else None
    made = versions(
        batch,
        table,
        content,
        prior=prior,
        checkpoints=checkpoints,
        inserted_again=inserted_again,
    )
    rows = _as_history(changed_versions(made), table, profile.recorded_at, ACTION)
    counts = None
    if inserted_again is not None:
        rows, counts = computed(rows)
        checkpoints.append(rows)
    return HistoryRows(
        rows=rows,
        applied=replace(applied_after_run, unknown_columns=content.forward_filled),
        plan=plan,
        changes=profile.changes,
        # the open version of a key, and it has but one: closed rows are not read
        identity=table.key,
        where="target.is_current",
        checkpoints=checkpoints,
        counts=counts,
        has_inserted_again=inserted_again is not None and inserted_again.get["count"] > 0,
    )


def _is_new(applied: Applied) -> str:
    """Condition: recorded in a batch that history has not applied, according to its progress."""
    if applied.recorded_at is None:
        return "true"
    return f"recorded_at > {timestamp(applied.recorded_at)}"


def _stored_versions(
    session: SparkSession,
    history: DataFrame,
    table: HistoryTable,
    applied: Applied,
    profile: BatchProfile,
    changes: DataFrame,
    batch: DataFrame,
    *,
    is_compared: bool,
    counts_inserts: bool,
    is_as_published: bool,
) -> StoredVersions:
    """Asks the log and the stored history about a batch, in one statement.

    Others look for a load, where a change may contradict it, which hardly ever happens.

    Args:
        is_compared: whether the plan may depend on the open versions of the batch's keys.
        counts_inserts: inserts on such versions are counted later.
    """
    queries = {}
    if not is_as_published:
        queries["changes"] = "select count(*) from {batch}"
        queries["is_ahead"] = f"select max(recorded_at) from {{history}} where {_is_new(applied)}"
    if applied.unknown_columns != ():
        # reads that column of all open versions: formats keep no statistics of arrays
        queries["unknown_columns"] = (
            "select array_distinct(flatten(collect_set(unknown_columns))) from {history}"
            " where is_current and unknown_columns is not null"
        )
    keys: dict[str, Any] = {}
    # an insert shows that a frozen base was ahead; for a live base any change may
    may_contradict = (
        is_compared
        and not counts_inserts
        and (table.base == "live" or (table.base is not None and profile.inserts > 0))
    )
    opened = open_versions(history, applied.unknown_columns)
    if may_contradict and goes_by_inserts(table, profile):
        keys["inserted_again"] = keys_inserted_again(batch, opened, table)
        queries["inserted_again"] = "select count(*) from {inserted_again}"
    if is_compared and profile.key_changes:
        keys["continuing"] = keys_within_a_transaction(batch, opened, table)
        queries["continuing"] = "select count(*) from {continuing}"
    row: dict[str, Any] = {}
    if queries:
        listed = ", ".join(f"({query}) as {name}" for name, query in queries.items())
        found = session.sql(f"select {listed}", history=history, batch=batch, **keys)
        row = found.collect()[0].asDict()
    contradicts_load = (
        may_contradict
        and row.get("inserted_again") != 0
        and _contradicts_load(batch, opened, table, profile, changes)
    )
    return StoredVersions(
        row.get("changes"),
        is_ahead=row.get("is_ahead") is not None,
        unknown_columns=tuple(row.get("unknown_columns") or ()),
        contradicts_load=contradicts_load,
        continues_transaction=bool(row.get("continuing")),
    )


def _contradicts_load(
    batch: DataFrame,
    opened: DataFrame,
    table: HistoryTable,
    profile: BatchProfile,
    changes: DataFrame,
) -> bool:
    # where the version began that a change contradicts; empty: a load has opened it
    opened_seq = (
        keys_contradicting_their_load(batch, opened, table, profile)
        .selectExpr(f"if(bool_or({IS_LOADED}), '', min({OPENED_SEQ}))")
        .collect()[0][0]
    )
    return opened_seq == "" or (
        opened_seq is not None and str(last_load(changes) or "") > opened_seq
    )


def _up_to(log: DataFrame, profile: BatchProfile) -> DataFrame:
    """The log as it was when the profile's newest batch was its last."""
    if profile.recorded_at is None:
        return log
    return log.where(f"recorded_at <= {timestamp(profile.recorded_at)}")


def _as_history(
    rows: DataFrame, table: HistoryTable, recorded_at: str | None, *others: str
) -> DataFrame:
    """The rows with the columns of the history, in their order, and with ``others``."""
    moment = timestamp_as_text(recorded_at, "opened_by") if recorded_at else timestamp(None)
    named = {table.version_id: VERSION_ID, "recorded_at": moment}
    return rows.selectExpr(
        *(
            f"{named[name]} as {quoted(name)}" if name in named else quoted(name)
            for name in table.history_columns
        ),
        *others,
    )
