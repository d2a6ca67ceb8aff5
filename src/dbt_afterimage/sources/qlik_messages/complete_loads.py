"""Full loads that are whole since a run, and their rows.

The rows are read from the raw table once more, because they must not be seen before all of them are
there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from dbt_afterimage.sources.qlik_messages.decode import Schema, form_of
from dbt_afterimage.sources.qlik_messages.load_runs import (
    FullLoad,
    Range,
    Recorded,
    Run,
    Table,
    as_recorded,
    full_loads,
    new_and_late,
)
from dbt_afterimage.sources.qlik_messages.message_columns import LOAD, REJECTED
from dbt_afterimage.sources.qlik_messages.named_tables import NamedTables
from dbt_afterimage.sources.qlik_messages.offsets import Offsets, in_ranges
from dbt_afterimage.sources.qlik_messages.run_records import recorded_so_far, runs_by_table
from dbt_afterimage.sources.qlik_messages.schema_decoder import Decoder
from dbt_afterimage.storage.local_relation import local_rows

logger = AdapterLogger("afterimage")

Tables = Sequence[Mapping[str, Any]]
Counts = Mapping[Run, int]

# One run of one load: which messages it has, and what their rows are given.
_RUN_COLUMNS = {
    "of_topic": "string",
    "of_partition": "int",
    "first_offset": "bigint",
    "until_offset": "bigint",
    "of_schema": "string",
    "of_table": "string",
    "of_load": "string",
    "position": "string",
    "load_time": "string",
    # this load is the number-th of those that the run belongs to
    "number": "int",
    "numbers": "int",
    "is_late": "boolean",
}


@dataclass(frozen=True)
class CompleteLoads:
    """Records of full loads to be written.

    Attributes:
        new: loads that are whole since this run.
        late: messages of loads that were recorded without them.
        runs: by table, all runs of it that are known.
    """

    new: Sequence[FullLoad]
    late: Sequence[FullLoad]
    runs: dict[Table, list[Run]]

    @property
    def all(self) -> list[FullLoad]:
        """Both."""
        return [*self.new, *self.late]

    def without(self, loads: Collection[FullLoad]) -> CompleteLoads:
        """All but these."""
        return replace(self, new=[load for load in self.new if load not in loads])

    def run_rows(self) -> Iterator[tuple[Any, ...]]:
        """Values of _RUN_COLUMNS."""
        for load in self.all:
            is_late = load in self.late
            of_table = full_loads(self.runs[load.table])
            for run in load.runs:
                ends = [other.until for other in of_table if run in other.runs]
                # of a late run a part may be recorded
                number, numbers = (1, 1) if is_late else (ends.index(load.until) + 1, len(ends))
                yield (
                    run.topic,
                    run.partition,
                    run.first_offset,
                    run.last_offset,
                    *load.table,
                    load.load_id,
                    load.position,
                    load.loaded_at,
                    number,
                    numbers,
                    is_late,
                )


def find_complete_loads(
    model: str,
    named: NamedTables,
    parts: DataFrame,
    positions: DataFrame,
    done: DataFrame | None,
    names: Mapping[Table, Mapping[str, Sequence[Range]]],
) -> CompleteLoads:
    """Loads that are complete and not recorded yet.

    Args:
        named: tables whose last load counts as complete, whatever has come.
        parts: runs of REFRESH messages, of all batches: `run_records.all_run_records`.
        positions: per table and partition, its changes.
        done: records of complete loads: `run_records.all_run_records`.
        names: with `rebuild_changes`: `run_records.recorded_names` of the replaced log; else empty.
    """
    runs = runs_by_table(parts, positions)
    recorded = recorded_so_far(done)
    new: list[FullLoad] = []
    late: list[FullLoad] = []
    for table, of_table in runs.items():
        loads = as_recorded(full_loads(of_table), names.get(table, {}))
        not_recorded, too_late = new_and_late(loads, recorded.get(table, Recorded()))
        late.extend(too_late)
        for load in not_recorded:
            if load.is_complete or table in named:
                new.append(load)
            else:
                _report(model, load)
    return CompleteLoads(new, late, runs)


def _report(model: str, load: FullLoad) -> None:
    open_runs = [run for run in load.runs if run.ended_by is None]
    places = ", ".join(sorted({f"{run.topic}-{run.partition}" for run in open_runs}))
    logger.info(
        f"{model}: {sum(run.rows for run in load.runs):,} rows of a full load "
        f"of {load.table[1]} wait for a change in {places}, which shows that it is whole. "
        "Where none will come: --vars '{complete_load: [<table>]}'."
    )


def loads_with_a_gap(
    rows: DataFrame, loads: CompleteLoads, read: Offsets
) -> dict[FullLoad, Counts]:
    """New loads some of whose messages are gone, and how many of each of their runs are left.

    Only what earlier runs have read can be gone: a load that came in this run costs nothing.

    Args:
        read: the last offsets that earlier runs have read.
    """
    waited = {
        load.load_id: load
        for load in loads.new
        if any(run.first_offset <= read.get(run.range[:2], -1) for run in load.runs)
    }
    if not waited:
        return {}
    counts = {
        (row["of_load"], row["topic"], row["partition"], row["first_offset"]): row["count"]
        for row in rows.filter(F.col("of_load").isin(*waited))
        .groupBy("of_load", "topic", "partition", "first_offset")
        .count()
        .collect()
    }
    left = {
        load: {run: counts.get((name, *run.range[:3]), 0) for run in load.runs}
        for name, load in waited.items()
    }
    return {
        load: of_load
        for load, of_load in left.items()
        if any(count < run.rows for run, count in of_load.items())
    }


def loaded_messages(
    decoder: Decoder, raw: DataFrame, loads: CompleteLoads, schemas: dict[str, Schema]
) -> DataFrame:
    """The messages of loads, decoded, once per load, with _RUN_COLUMNS.

    Args:
        schemas: what is known of schema ids; empty if this run has read none.
    """
    run_rows = list(loads.run_rows())
    kinds = ", ".join(f"{name} {kind}" for name, kind in _RUN_COLUMNS.items())
    runs = F.broadcast(local_rows(decoder.session, run_rows, kinds))
    in_run = (
        (F.col("topic") == F.col("of_topic"))
        & (F.col("partition") == F.col("of_partition"))
        & F.col("offset").between(F.col("first_offset"), F.col("until_offset"))
    )
    # filtered twice: the join alone would read all files
    raw = raw.filter(in_ranges(run.range for load in loads.all for run in load.runs))
    found = raw.agg(F.collect_set(form_of())).first()
    forms = set(found[0]) if found else set()
    rows = decoder.decoded(raw, forms, schemas or decoder.schemas(raw.limit(0), forms))
    rows = rows.filter(F.col("kind") == LOAD).join(runs, in_run)
    return rows.filter(
        F.col("table_name").eqNullSafe(F.col("of_table"))
        & F.col("table_schema").eqNullSafe(F.col("of_schema"))
    )


def load_rows(messages: DataFrame, tables: Tables) -> DataFrame:
    """The rows of loads, with the load's name and place; late ones rejected.

    Args:
        tables: of the source: `key`, `message_table` and `table_schema` of each.
    """
    rows = _one_copy_per_load(messages, tables)
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
    ).drop("waits_for", *_RUN_COLUMNS)


def _key_values(key: Sequence[str]) -> Column:
    """A row's key as a text; NULL where a part of it is missing: such rows are not copies."""
    parts = [_value_of(name) for name in key]
    is_whole = reduce(lambda one, other: one & other, [part.isNotNull() for part in parts])
    return F.when(is_whole, F.to_json(F.array(*parts)))


def _value_of(name: str) -> Column:
    """The value of a column; as in staging, messages may write its name in other letters."""
    same = F.map_filter("image", lambda column, _: F.lower(column) == name.lower())
    return F.coalesce(F.col("image")[name], F.get(F.map_values(same), F.lit(0)))


def _one_copy_per_load(rows: DataFrame, tables: Tables) -> DataFrame:
    """Of equal keys in one run the copy that belongs to the load.

    Loads between which a partition had no change are one run in it, and a key may be there once
    per load: the first copy belongs to the first load, the last one to the last.
    """
    key: Column = F.lit(None).cast("string")
    for table in tables:
        if table["key"]:
            values = _key_values(table["key"])
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
