"""The body of the model that decodes landed messages: reads what is new, for all tables at once.

One model for all tables and forms, because one landed table may hold the messages of many, and
because a message may depend on another one: for its schema, and for whether the full load that it
belongs to is complete. The staging view of a table then only picks its messages and casts their
values.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.change_log.deciding.quarantine import RejectedRecordsError
from dbt_afterimage.change_log.rebuild import check_still_there
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.sequence import duration_seconds
from dbt_afterimage.sources.decoded_log import LogBatch, start_log
from dbt_afterimage.sources.qlik_messages import offsets
from dbt_afterimage.sources.qlik_messages.complete_loads import (
    find_complete_loads,
    load_rows,
    loaded_messages,
    loads_with_a_gap,
)
from dbt_afterimage.sources.qlik_messages.decode import Schema, form_of
from dbt_afterimage.sources.qlik_messages.load_runs import Range, Table
from dbt_afterimage.sources.qlik_messages.message_columns import (
    CHANGE,
    LOAD,
    LOAD_PART,
    MESSAGE_COLUMNS,
    METADATA,
    REJECTED,
    TOMBSTONE,
    check_raw_columns,
)
from dbt_afterimage.sources.qlik_messages.named_tables import named_tables
from dbt_afterimage.sources.qlik_messages.offset_gaps import check_load_gap, check_offset_gap
from dbt_afterimage.sources.qlik_messages.run_records import (
    DONE_COLUMNS,
    all_run_records,
    check_loads_still_there,
    done_rows,
    late_load_rows,
    parts_of,
    positions_of,
    recorded_names,
)
from dbt_afterimage.sources.qlik_messages.schema_decoder import Decoder
from dbt_afterimage.storage.checkpoint import checkpoint
from dbt_afterimage.storage.contradictions import unreadable
from dbt_afterimage.storage.local_relation import local_rows
from dbt_afterimage.storage.progress import rows_after_progress
from dbt_afterimage.storage.schema_evolution import column_types

logger = AdapterLogger("afterimage")

_MESSAGES = (CHANGE, LOAD, METADATA, TOMBSTONE, REJECTED)


def build_messages(dbt: Any, session: SparkSession, raw: DataFrame) -> LogBatch:
    """The batch that this run adds to the decoded messages.

    Args:
        raw: the landed messages, ``dbt.source(..., "messages")``. Its settings hold.

    Returns:
        A batch for the materialization `staging_log` to write. No row is written here.

    Raises:
        RawMessagesError: the landed table is none of messages.
        ContradictionError: the log is not the one that its progress describes.
        NamedTablesError: the var `complete_load` names no table of messages.
        GapError: messages were purged before they were read, and `on_gap` is `fail`.
        RebuildError: `rebuild_changes` is set, and the raw table lacks what was decoded from it.
        AvroUnavailableError: there are Avro messages, and Spark cannot read Avro.
        RegistryError: the schema registry does not answer.
        RejectedRecordsError: messages belong to no table, and `on_reject` is `fail`.
    """
    return _Run(RunContext(**dbt.config.get("afterimage")), session, raw).batch()


class _Run:
    """One run: what was done before it, and what it finds."""

    def __init__(self, context: RunContext, session: SparkSession, raw: DataFrame) -> None:
        self._context, self._session, self._raw = context, session, raw
        self._settings = context.settings
        self._named = named_tables(context)
        check_raw_columns(self._settings["source_table"], column_types(raw.schema))
        self._run = start_log(session, context, columns=MESSAGE_COLUMNS)
        stored, progress = self._run.stored, self._run.progress
        self._read = {} if self._run.is_rebuild else self._recorded_offsets()
        self._names: dict[Table, dict[str, list[Range]]] = {}
        if stored is not None and self._run.is_progress_behind:
            stored_rows = rows_after_progress(stored, progress).filter(
                F.col("kind").isin(*_MESSAGES, LOAD_PART)
            )
            last = offsets.last_offsets(stored_rows, F.coalesce("last_offset", "offset"))
            self._read = offsets.merged(self._read, last)
        if stored is not None and self._run.is_rebuild:
            stored_rows = stored.filter(F.col("kind").isin(*_MESSAGES))
            check_still_there(context.model, stored_rows, raw, ["topic", "partition", "offset"])
            check_loads_still_there(context.model, stored, raw)
            self._names = recorded_names(stored)
            self._read, stored = {}, None
        self._stored = stored
        self._decoder = Decoder(session, self._settings, stored)

    def _recorded_offsets(self) -> dict[tuple[str, int], int]:
        progress = self._run.progress
        try:
            return offsets.from_text(progress.arrival)
        except ValueError as error:
            raise unreadable(self._context, "arrival", progress.recorded_at) from error

    def _check_offsets(self, landed: list[Row]) -> None:
        """Without the offset of a partition, a run would append all its messages again."""
        unread = [row for row in landed if (row["topic"], row["partition"]) not in self._read]
        if self._stored is None or not unread:
            return
        stored_rows = self._stored.filter(
            F.col("kind").isin(*_MESSAGES, LOAD_PART) & offsets.is_up_to(offsets.of_rows(unread))
        )
        if not stored_rows.isEmpty():
            raise unreadable(self._context, "arrival", self._run.progress.recorded_at)

    def batch(self) -> LogBatch:
        """The rows that this run adds."""
        late = self._late()
        is_after = ~offsets.is_up_to(self._read)
        new = self._raw.filter(is_after)
        if late is not None:
            new = new.unionByName(late)
        landed = (
            new.groupBy("topic", "partition")
            .agg(
                F.max("offset").alias("offset"),
                F.min(F.when(is_after, F.col("offset"))).alias("first_offset"),
                F.collect_set(form_of()).alias("forms"),
                F.max("landed_at").alias("landed_at"),
            )
            .collect()
        )
        # these two may settle loads that wait
        is_asked = self._context.complete_load or self._context.accept_gap
        if not landed and not is_asked:
            nothing = _with_all_columns(self._raw.limit(0).select())
            return LogBatch(self._run, nothing, is_empty=True, arrival=offsets.to_text(self._read))
        self._check_offsets(landed)
        check_offset_gap(self._context, self._read, landed)
        until = offsets.of_rows(landed)
        forms = {form for row in landed for form in row["forms"]}
        # the same messages in all that follows, whatever is landed meanwhile
        new = new.filter(offsets.is_up_to(until))
        schemas = self._decoder.schemas(new, forms)
        kept = checkpoint(self._decoder.decoded(new, forms, schemas))
        pending, kinds = self._pending(kept, landed)
        until = {**until, **{place: first - 1 for place, first in pending.items()}}
        messages = kept.filter(offsets.is_up_to(until))
        # runs of a full load follow from the order in which messages come
        on_time = messages if late is None else messages.filter(is_after)
        positions = positions_of(on_time)
        pieces = [
            messages.filter(F.col("kind").isin(CHANGE, TOMBSTONE, REJECTED)),
            positions.coalesce(1),
        ]
        if METADATA in kinds:
            pieces.append(messages.filter(F.col("kind") == METADATA).coalesce(1))
        parts = parts_of(on_time, self._stored) if LOAD in kinds else None
        if parts is not None:
            pieces.append(parts.coalesce(1))
        if self._stored is not None and late is not None and LOAD in kinds:
            pieces.append(late_load_rows(messages.filter(~is_after), self._stored))
        loaded = self._loaded(parts, positions, schemas, pending)
        self._check_rejects(messages)
        rows = reduce(
            lambda one, other: one.unionByName(other, allowMissingColumns=True),
            [*pieces, *loaded],
        ).withColumns(
            {
                "recorded_at": F.lit(self._run.recorded_at).cast("timestamp"),
                "arrival": F.lit(self._run.recorded_at),
            }
        )
        read = offsets.merged(self._read, {place: at for place, at in until.items() if at >= 0})
        is_read = all(first > self._read.get(place, -1) for place, first in pending.items())
        return LogBatch(
            self._run,
            _with_all_columns(rows),
            # pending records are not news: a run in between commits nothing
            is_empty=(late is None or not is_read)
            and read == self._read
            and not loaded
            and self._run.stored is not None,
            arrival=offsets.to_text(read),
            is_read=is_read,
            has_pending=bool(pending),
            kept=kept,
        )

    def _late(self) -> DataFrame | None:
        """Messages at offsets that earlier runs had passed; None if there are none."""
        added = self._run.added(self._session, self._raw)
        if added is None or self._stored is None:
            return None
        place = ["topic", "partition", "offset"]
        late = added.filter(offsets.is_up_to(self._read))
        found = late.groupBy(*place[:2]).agg(F.min("offset"), F.max("offset")).collect()
        if not found:
            return None
        bounds = offsets.in_ranges(tuple(row) for row in found)
        stored_rows = self._stored.filter(F.col("kind").isin(*_MESSAGES) & bounds)
        late = late.join(stored_rows.select(*place), place, "left_anti")
        return None if late.isEmpty() else late

    def _pending(self, messages: DataFrame, landed: list[Row]) -> tuple[offsets.Offsets, set[str]]:
        """(topic, partition) -> the first message that waits for its schema; kinds of messages.

        What follows in its partition waits too, so that messages stay in order. Once others were
        landed more than the look-back later, its schema is not expected any more.
        """
        seconds = duration_seconds(self._settings["look_back"])
        newest = F.lit(max((row["landed_at"] for row in landed), default=None)).cast("timestamp")
        is_recent = newest - F.col("landed_at") <= F.expr(f"interval {seconds} seconds")
        waits = F.col("waits_for").isNotNull() & is_recent
        rows = (
            messages.groupBy("topic", "partition")
            .agg(
                F.min(F.when(waits, F.col("offset"))).alias("offset"),
                F.min_by("waits_for", F.when(waits, F.col("offset"))).alias("schema"),
                F.collect_set("kind").alias("kinds"),
            )
            .collect()
        )
        pending = [row for row in rows if row["offset"] is not None]
        for row in pending:
            logger.warning(
                f"{self._context.model}: {row['topic']}-{row['partition']} waits from offset "
                f"{row['offset']} on for the metadata message of schema id {row['schema']}. Fix: "
                "land the topic with the metadata messages."
            )
        return offsets.of_rows(pending), {kind for row in rows for kind in row["kinds"]}

    def _loaded(
        self,
        parts: DataFrame | None,
        positions: DataFrame,
        schemas: dict[str, Schema],
        pending: offsets.Offsets,
    ) -> list[DataFrame]:
        """Rows and records of the full loads that this run completes, if any.

        While messages wait for their schema there are none: their rows may belong to any load.
        """
        run = self._run
        parts, positions, done = all_run_records(self._stored, parts, positions, run.recorded_at)
        if parts is None:
            return []
        loads = find_complete_loads(
            self._context.model, self._named, parts, positions, done, self._names
        )
        if pending:
            loads = loads.without(loads.new)
        if not loads.all:
            return []
        messages = loaded_messages(self._decoder, self._raw, loads, schemas)
        gaps = loads_with_a_gap(messages, loads, self._read)
        check_load_gap(self._context, gaps)
        complete_loads = loads.all
        if gaps:
            loads = loads.without(gaps)
            messages = messages.filter(~F.col("of_load").isin(*[load.load_id for load in gaps]))
            complete_loads = complete_loads if self._context.accept_gap else loads.all
        if not complete_loads:
            return []
        records = local_rows(self._session, done_rows(complete_loads), DONE_COLUMNS)
        return [records.coalesce(1), load_rows(messages, self._context.tables)]

    def _check_rejects(self, messages: DataFrame) -> None:
        """Stop where a message belongs to no table, if the source says so."""
        if self._settings["on_reject"] != "fail":
            return
        lost = messages.filter((F.col("kind") == REJECTED) & F.col("table_name").isNull())
        first = lost.select("topic", "partition", "offset", "reject_detail").first()
        if first is not None:
            raise RejectedRecordsError(
                f"{self._context.model}: the message {first['topic']}-{first['partition']} at "
                f"offset {first['offset']} belongs to no table: {first['reject_detail']}. "
                f"`on_reject` of {self._settings['source_table']} is 'fail'. Nothing was written. "
                "Fix: repair the source, or set `on_reject: quarantine`."
            )


def _with_all_columns(rows: DataFrame) -> DataFrame:
    """The columns of the table; those that the rows lack are NULL."""
    return rows.select(
        *[
            (F.col(name) if name in rows.columns else F.lit(None)).cast(kind).alias(name)
            for name, kind in MESSAGE_COLUMNS.items()
        ]
    )
