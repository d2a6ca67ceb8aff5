"""The body of the model that decodes landed messages: reads what is new, for all tables at once.

One model for all tables and forms, because one landed table may hold the messages of many, and
because what a message means may stand in another one: its schema, and whether the full load that it
belongs to is whole. The staging view of a table then only picks its messages and casts their
values.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from dbt_afterimage.changes.gaps import GapError
from dbt_afterimage.changes.progress import (
    Progress,
    next_recorded_at,
    read_progress,
    really_done,
)
from dbt_afterimage.changes.quarantine import RejectedRecordsError
from dbt_afterimage.changes.rebuild import RebuildError
from dbt_afterimage.guarded_table import column_types
from dbt_afterimage.messages import offsets
from dbt_afterimage.messages.columns import (
    CHANGE,
    LOAD,
    LOAD_DONE,
    LOAD_PART,
    MESSAGE_COLUMNS,
    METADATA,
    POSITION,
    REJECTED,
    TOMBSTONE,
    check_raw_columns,
)
from dbt_afterimage.messages.decode import (
    ENVELOPE,
    JSON,
    REGISTRY,
    Schema,
    check_avro,
    decoded,
    enveloped,
    form_of,
    schema_reference,
)
from dbt_afterimage.messages.loads import FullLoad, Run, full_loads
from dbt_afterimage.messages.notes import (
    DONE_COLUMNS,
    PART_COLUMNS,
    done_rows,
    parts_of,
    positions_of,
    runs_by_table,
)
from dbt_afterimage.messages.schemas import registered_schema
from dbt_afterimage.positions import duration_seconds
from dbt_afterimage.staging_log import LogBatch

logger = AdapterLogger("afterimage")

_MESSAGES = (CHANGE, LOAD, METADATA, TOMBSTONE, REJECTED)


def build_messages(dbt: Any, session: SparkSession, raw: DataFrame) -> LogBatch:
    """What this run adds to the decoded messages.

    Args:
        dbt: the object that dbt gives a Python model.
        session: the live Spark session.
        raw: the landed messages, ``dbt.source(..., "messages")``. Its settings hold.

    Returns:
        A batch for the materialization `staging_log` to write. No row is written here.

    Raises:
        RawMessagesError: the landed table is none of messages.
        GapError: messages were purged before they were read, and `on_gap` is `fail`.
        RebuildError: `rebuild_changes` is set, and the raw table lacks what was decoded from it.
        AvroUnavailableError: there are Avro messages, and Spark cannot read Avro.
        RegistryError: the schema registry does not answer.
        RejectedRecordsError: messages belong to no table, and `on_reject` is `fail`.
    """
    return _Run(dbt.config.get("afterimage"), session, raw).batch()


class _Run:
    """One run: what was done before it, and what it finds."""

    def __init__(self, context: dict[str, Any], session: SparkSession, raw: DataFrame) -> None:
        self._context, self._session, self._raw = context, session, raw
        self._settings = context["settings"]
        check_raw_columns(self._settings["source_table"], column_types(raw.schema))
        stored = None
        if session.catalog.tableExists(context["log"]):
            stored = session.table(context["log"])
        noted = Progress()
        if stored is not None:
            noted = read_progress(session, context["progress"], context["model"])
        nothing = F.lit(None)
        done = really_done(stored, noted, nothing.cast("string"), nothing.cast("timestamp"))
        self._is_behind = done != noted
        self._is_rebuild = stored is not None and bool(context["rebuild_changes"])
        self._has_table = stored is not None
        self._done = done
        self._recorded_at = next_recorded_at(done)
        self._read = offsets.from_text(noted.arrival)
        if stored is not None and self._is_behind:
            self._read = offsets.merged(self._read, _read_since(stored, noted.recorded_at))
        if stored is not None and self._is_rebuild:
            _check_rebuild(context, raw, stored)
            self._read, stored = {}, None
        self._stored = stored

    def batch(self) -> LogBatch:
        """What this run adds."""
        new = self._raw.filter(offsets.is_after(self._read))
        look = (
            new.groupBy("topic", "partition")
            .agg(
                F.max("offset").alias("offset"),
                F.min("offset").alias("first_offset"),
                F.collect_set(form_of()).alias("forms"),
                F.max("landed_at").alias("landed_at"),
            )
            .collect()
        )
        if not look and not self._context["complete_load"]:
            return self._nothing()
        self._check_gap(look)
        until = offsets.of_rows(look)
        forms = {form for row in look for form in row["forms"]}
        # the same messages in all that follows, whatever is landed meanwhile
        new = self._raw.filter(offsets.is_after(self._read) & offsets.is_up_to(until))
        schemas = self._schemas(new, forms)
        messages = self._decoded(new, forms, schemas).persist()
        waiting, kinds = self._look(messages, look)
        until = {**until, **{place: first - 1 for place, first in waiting.items()}}
        messages = messages.filter(offsets.is_up_to(until))
        positions = positions_of(messages)
        pieces = [
            messages.filter(F.col("kind").isin(CHANGE, TOMBSTONE, REJECTED)),
            positions.coalesce(1),
        ]
        if METADATA in kinds:
            pieces.append(messages.filter(F.col("kind") == METADATA).coalesce(1))
        parts = parts_of(messages, self._stored) if LOAD in kinds else None
        if parts is not None:
            pieces.append(parts.coalesce(1))
        done, loaded = self._loads(parts, positions, schemas)
        if done:
            pieces.append(self._session.createDataFrame(done_rows(done), DONE_COLUMNS).coalesce(1))
        if loaded is not None:
            pieces.append(loaded)
        self._check_rejects(messages)
        rows = reduce(
            lambda one, other: one.unionByName(other, allowMissingColumns=True), pieces
        ).withColumns(
            {
                "recorded_at": F.lit(self._recorded_at).cast("timestamp"),
                "arrival": F.lit(self._recorded_at),
            }
        )
        read = offsets.merged(self._read, {place: at for place, at in until.items() if at >= 0})
        names = [F.col(name).cast(kind).alias(name) for name, kind in MESSAGE_COLUMNS.items()]
        return LogBatch(
            rows=_with_all_columns(rows).select(*names),
            partition_by=(),
            is_empty=read == self._read and not done and self._has_table,
            change_seq=None,
            arrival=offsets.to_text(read),
            recorded_at=self._recorded_at,
            recorded_after=self._done.recorded_at,
            is_rebuild=self._is_rebuild,
            is_progress_behind=self._is_behind,
            cached=[messages],
        )

    def _nothing(self) -> LogBatch:
        kinds = ", ".join(f"{name} {kind}" for name, kind in MESSAGE_COLUMNS.items())
        return LogBatch(
            rows=self._session.createDataFrame([], kinds),
            partition_by=(),
            is_empty=True,
            change_seq=None,
            arrival=offsets.to_text(self._read),
            recorded_at=self._done.recorded_at or self._recorded_at,
            recorded_after=self._done.recorded_at,
            is_rebuild=self._is_rebuild,
            is_progress_behind=self._is_behind,
            cached=[],
        )

    def _check_gap(self, look: list[Row]) -> None:
        """Warn, or stop, where messages behind the last one that was read are gone."""
        on_gap = self._settings["on_gap"]
        gone = [
            f"{row['topic']}-{row['partition']} from {self._read[place] + 1} to "
            f"{row['first_offset'] - 1}"
            for row in look
            if (place := (row["topic"], row["partition"])) in self._read
            and row["first_offset"] > self._read[place] + 1
        ]
        if not gone or on_gap == "ignore" or self._context["accept_gap"]:
            return
        text = (
            f"{self._context['model']}: the raw table {self._settings['source_table']} lacks "
            f"offsets behind the last that were read: {', '.join(sorted(gone))}. Kafka leaves out "
            "offsets where it removed messages, or for marks of transactions; or messages were "
            f"purged before they were read. `on_gap` is {on_gap!r}; allowed: fail, warn, ignore."
        )
        if on_gap == "fail":
            raise GapError(
                f"{text} Nothing was written. Cure: land them again from a copy, or, where none "
                "are missing, run once with --vars '{accept_gap: true}'."
            )
        logger.warning(text)

    # --- schemas ---

    def _schemas(self, new: DataFrame, forms: set[str]) -> dict[str, Schema]:
        """What is known of schema ids: from metadata messages of earlier runs and of this one."""
        if forms & {ENVELOPE, REGISTRY}:
            check_avro(self._session, self._settings["source_table"])
        if self._settings["schemas_from"] != "metadata" and ENVELOPE not in forms:
            return {}
        found: dict[str, Schema] = {}
        if self._stored is not None:
            found.update(_schemas_of(self._stored.filter(F.col("kind") == METADATA)))
        # metadata messages are few: what cannot be one is left out before it is parsed
        is_json = F.col("value").cast("string").contains('"MD"')
        rows = enveloped(new, forms).filter(
            F.when(F.col("form") == JSON, is_json).otherwise(F.col("type") == "MD")
        )
        settings = {**self._settings, "schemas_from": "columns"}
        texts = self._texts(rows, forms, {})
        metadata = decoded(self._session, rows, forms, settings, {}, texts)
        found.update(_schemas_of(metadata.filter(F.col("kind") == METADATA)))
        return found

    def _texts(
        self, rows: DataFrame, forms: set[str], schemas: dict[str, Schema]
    ) -> dict[str, str]:
        """The Avro schemas that messages were written by, by their reference."""
        if not forms & {ENVELOPE, REGISTRY}:
            return {}
        references = (
            rows.filter(F.col("avro").isNotNull())
            .groupBy(schema_reference().alias("reference"), "form")
            .agg(F.first("schema_text").alias("schema_text"))
            .collect()
        )
        texts: dict[str, str] = {}
        for row in references:
            name, text = row["reference"], row["schema_text"]
            if name is None:
                continue
            if text is None and row["form"] == REGISTRY:
                text = self._registered(name)
            elif text is None and name in schemas:
                text = schemas[name].avro
            if text is not None:
                texts[name] = text
        return texts

    def _registered(self, schema_id: str) -> str | None:
        registry = self._settings["schema_registry"]
        return registered_schema(registry, schema_id) if registry else None

    def _decoded(self, new: DataFrame, forms: set[str], schemas: dict[str, Schema]) -> DataFrame:
        rows = enveloped(new, forms)
        texts = self._texts(rows, forms, schemas)
        return decoded(self._session, rows, forms, self._settings, schemas, texts)

    def _look(
        self, messages: DataFrame, landed: list[Row]
    ) -> tuple[dict[tuple[str, int], int], set[str]]:
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
        waiting = [row for row in rows if row["offset"] is not None]
        for row in waiting:
            logger.warning(
                f"{self._context['model']}: {row['topic']}-{row['partition']} waits from offset "
                f"{row['offset']} on for the metadata message of schema id {row['schema']}. Cure: "
                "land the topic with the metadata messages."
            )
        return offsets.of_rows(waiting), {kind for row in rows for kind in row["kinds"]}

    # --- full loads ---

    def _loads(
        self, parts: DataFrame | None, positions: DataFrame, schemas: dict[str, Schema]
    ) -> tuple[list[FullLoad], DataFrame | None]:
        """Loads that are whole since this run, and their rows, read from the raw table once more.

        They are read again, because their rows must not be seen before all of them are there.
        """
        parts, positions, done = self._notes(parts, positions)
        if parts is None:
            return [], None
        runs = runs_by_table(parts, positions)
        consumed, done_until = _consumed(done)
        named = self._named_tables()
        wanted: list[FullLoad] = []
        late: list[FullLoad] = []
        for table, of_table in runs.items():
            until = done_until.get(table, "")
            for load in full_loads(of_table):
                if load.until <= until:
                    rest = tuple(run for run in load.runs if _name(run) not in consumed)
                    if rest:
                        late.append(_only(load, rest))
                elif load.is_complete or table in named:
                    wanted.append(load)
                else:
                    self._report(load)
        if not wanted and not late:
            return [], None
        places = [
            _place(load, run, of_table, is_late=load in late)
            for load in [*wanted, *late]
            for of_table in [full_loads(runs[load.table])]
            for run in load.runs
        ]
        return [*wanted, *late], self._load_rows(places, schemas)

    def _notes(
        self, parts: DataFrame | None, positions: DataFrame
    ) -> tuple[DataFrame | None, DataFrame, DataFrame | None]:
        """Parts of loads and positions, of this run and before; and notes of loads that are whole.

        No parts where there never was a load.
        """
        at = F.lit(self._recorded_at).cast("timestamp")
        positions = positions.withColumn("recorded_at", at)
        parts = None if parts is None else parts.withColumn("recorded_at", at)
        if self._stored is None:
            return parts, positions, None
        kind = F.col("kind")
        earlier = self._stored.filter(kind == LOAD_PART).select(*PART_COLUMNS, "recorded_at")
        if parts is None and earlier.isEmpty():
            return None, positions, None
        before = self._stored.filter(kind == POSITION).select(*positions.columns)
        return (
            earlier if parts is None else earlier.unionByName(parts),
            before.unionByName(positions),
            self._stored.filter(kind == LOAD_DONE),
        )

    def _named_tables(self) -> set[tuple[str | None, str]]:
        """Tables whose last load is complete, by the word of the user."""
        names = self._context["complete_load"]
        tables = {table["name"]: table for table in self._context["tables"]}
        unknown = [name for name in names if name not in tables]
        if unknown:
            raise ValueError(
                f"`complete_load` names {', '.join(map(repr, unknown))}. Allowed: tables of the "
                f"source, {', '.join(sorted(tables))}. Nothing was written. Cure: correct the var."
            )
        return {(tables[name]["table_schema"], tables[name]["message_table"]) for name in names}

    def _report(self, load: FullLoad) -> None:
        open_runs = [run for run in load.runs if run.ended_by is None]
        places = ", ".join(sorted({f"{run.topic}-{run.partition}" for run in open_runs}))
        logger.info(
            f"{self._context['model']}: {sum(run.rows for run in load.runs):,} rows of a full load "
            f"of {load.table[1]} wait for a change in {places}, which shows that it is whole. "
            "Where none will come: --vars '{complete_load: [<table>]}'."
        )

    def _load_rows(self, places: list[tuple[Any, ...]], schemas: dict[str, Schema]) -> DataFrame:
        kinds = (
            "of_topic string, of_partition int, first_offset bigint, until_offset bigint, "
            "of_schema string, of_table string, of_load string, position string, load_time string, "
            "number int, numbers int, is_late boolean"
        )
        runs = F.broadcast(self._session.createDataFrame(places, kinds))
        in_run = (
            (F.col("topic") == F.col("of_topic"))
            & (F.col("partition") == F.col("of_partition"))
            & F.col("offset").between(F.col("first_offset"), F.col("until_offset"))
        )
        # filtered twice: the join alone would read all files
        bounds = reduce(
            lambda one, other: one | other,
            [
                (F.col("topic") == place[0])
                & (F.col("partition") == place[1])
                & F.col("offset").between(place[2], place[3])
                for place in places
            ],
        )
        raw = self._raw.filter(bounds)
        found = raw.agg(F.collect_set(form_of())).first()
        forms = set(found[0]) if found else set()
        rows = self._decoded(raw, forms, schemas or self._schemas(raw.limit(0), forms))
        rows = rows.filter(F.col("kind") == LOAD).join(runs, in_run)
        rows = rows.filter(
            F.col("table_name").eqNullSafe(F.col("of_table"))
            & F.col("table_schema").eqNullSafe(F.col("of_schema"))
        )
        rows = self._one_copy_per_load(rows)
        is_late = F.col("is_late")
        return rows.withColumns(
            {
                "kind": F.when(is_late, REJECTED).otherwise(LOAD),
                "load_id": F.when(~is_late, F.col("of_load")),
                "change_seq": F.col("position"),
                "loaded_at": F.col("load_time").cast("timestamp"),
                "reject_reason": F.when(is_late, F.lit("unsupported_record")),
                "reject_detail": F.when(
                    is_late, F.lit("a row of a full load that was complete without it")
                ),
            }
        ).drop("waits_for", *[part.split()[0] for part in kinds.split(", ")])

    def _one_copy_per_load(self, rows: DataFrame) -> DataFrame:
        """Of equal keys in one run the copy that belongs to the load.

        Loads between which a partition had no change are one run in it, and a key may be there once
        per load: the first copy belongs to the first load, the last one to the last.
        """
        key: Column = F.lit(None).cast("string")
        for table in self._context["tables"]:
            if table["key"]:
                values = F.to_json(F.array(*[F.col("image")[name] for name in table["key"]]))
                is_table = (F.col("table_name") == table["message_table"]) & (
                    F.lit(table["table_schema"] is None)
                    | (F.col("table_schema") == F.lit(table["table_schema"]))
                )
                key = F.when(is_table, values).otherwise(key)
        copies = Window.partitionBy("of_load", "topic", "partition", "key")
        count = F.count(F.lit(1)).over(copies)
        copy = F.row_number().over(copies.orderBy("offset"))
        number, numbers = F.col("number"), F.col("numbers")
        own = F.when(number == numbers, count).otherwise(F.least(number, count))
        return (
            rows.withColumn("key", F.coalesce(key, F.col("offset").cast("string")))
            .withColumn("is_own", copy == own)
            .filter("is_own")
            .drop("key", "is_own")
        )

    def _check_rejects(self, messages: DataFrame) -> None:
        """Stop where a message belongs to no table, if the source says so."""
        if self._settings["on_reject"] != "fail":
            return
        lost = messages.filter((F.col("kind") == REJECTED) & F.col("table_name").isNull())
        first = lost.select("topic", "partition", "offset", "reject_detail").first()
        if first is not None:
            raise RejectedRecordsError(
                f"{self._context['model']}: the message {first['topic']}-{first['partition']} at "
                f"offset {first['offset']} belongs to no table: {first['reject_detail']}. "
                f"`on_reject` of {self._settings['source_table']} is 'fail'. Nothing was written. "
                "Cure: repair the source, or set `on_reject: quarantine`."
            )


def _read_since(stored: DataFrame, recorded_at: str | None) -> dict[tuple[str, int], int]:
    """The offsets of what a killed run wrote and did not note."""
    rows = stored.filter(F.col("kind").isin(*_MESSAGES, LOAD_PART))
    if recorded_at is not None:
        rows = rows.filter(F.col("recorded_at") > F.lit(recorded_at).cast("timestamp"))
    last = F.max(F.coalesce("last_offset", "offset")).alias("offset")
    return offsets.of_rows(rows.groupBy("topic", "partition").agg(last).collect())


def _check_rebuild(context: dict[str, Any], raw: DataFrame, stored: DataFrame) -> None:
    """Stop unless every message that was decoded can be read once more."""
    place = ["topic", "partition", "offset"]
    held = stored.filter(F.col("kind").isin(*_MESSAGES)).select(*place)
    found = (
        held.join(raw.select(*place), place, "left_anti")
        .agg(F.count(F.lit(1)), F.min(F.struct(*place)))
        .first()
    )
    if found is None or not found[0]:
        return
    first = found[1]
    raise RebuildError(
        f"{context['model']}: `rebuild_changes` is set, and the raw table lacks {found[0]:,} "
        f"messages that were decoded from it, the first at {first['topic']}-{first['partition']} "
        f"offset {first['offset']}. Nothing was written. Cure: run without `rebuild_changes`, or "
        "land the missing messages again from a copy."
    )


def _schemas_of(metadata: DataFrame) -> dict[str, Schema]:
    """What metadata messages say, by schema id; there is one per table and version of it."""
    ordered = F.transform(
        F.array_sort(
            F.transform(
                "columns",
                lambda column: F.struct(column["ordinal"].alias("ordinal"), column["name"]),
            )
        ),
        lambda column: column["name"],
    )
    rows = (
        metadata.filter(F.col("schema_id").isNotNull())
        .groupBy("schema_id")
        .agg(
            F.max(
                F.struct("table_schema", "table_name", ordered.alias("names"), "data_schema")
            ).alias("it")
        )
        .select("schema_id", "it.*")
        .collect()
    )
    return {
        row["schema_id"]: Schema(
            row["table_schema"],
            row["table_name"],
            None if row["names"] is None else tuple(row["names"]),
            row["data_schema"],
        )
        for row in rows
    }


def _consumed(
    done: DataFrame | None,
) -> tuple[set[tuple[str, int, int]], dict[tuple[str | None, str], str]]:
    """Runs whose rows are in a load already, and up to where the loads of each table are done."""
    if done is None:
        return set(), {}
    rows = done.select(
        "table_schema", "table_name", "topic", "partition", "last_offset", "ended_by"
    ).collect()
    until: dict[tuple[str | None, str], str] = {}
    for row in rows:
        table = (row["table_schema"], row["table_name"])
        until[table] = max(row["ended_by"], until.get(table, ""))
    return {(row["topic"], row["partition"], row["last_offset"]) for row in rows}, until


def _name(run: Run) -> tuple[str, int, int]:
    return run.topic, run.partition, run.last_offset


def _only(load: FullLoad, runs: tuple[Run, ...]) -> FullLoad:
    return FullLoad(
        load.table, load.load_id, load.after, load.until, runs, load.is_complete, load.loaded_at
    )


def _place(load: FullLoad, run: Run, loads: list[FullLoad], *, is_late: bool) -> tuple[Any, ...]:
    of_run = [other.load_id for other in loads if run in other.runs]
    return (
        run.topic,
        run.partition,
        run.first_offset,
        run.last_offset,
        *load.table,
        load.load_id,
        load.position,
        load.loaded_at,
        of_run.index(load.load_id) + 1,
        len(of_run),
        is_late,
    )


def _with_all_columns(rows: DataFrame) -> DataFrame:
    missing = [name for name in MESSAGE_COLUMNS if name not in rows.columns]
    return rows.withColumns({name: F.lit(None) for name in missing}) if missing else rows
