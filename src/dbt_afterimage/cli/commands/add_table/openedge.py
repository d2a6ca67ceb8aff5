"""Proposes the settings of an OpenEdge change table from its columns and a sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dbt_afterimage.cli.commands.add_table.keys import (
    SAMPLED_RECORDS,
    Sample,
    propose_key,
    unique_in_load,
)
from dbt_afterimage.cli.commands.add_table.proposal import (
    Found,
    Proposal,
    SourceTable,
    full_load,
    source_columns,
)
from dbt_afterimage.cli.support.raw_schema.read_schema import relation_of
from dbt_afterimage.cli.support.raw_schema.schema import Column, RawSchema, RawTable, model_name
from dbt_afterimage.errors import AfterimageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SYSTEM = "openedge"
# Of the sampled change rows, how many must be in the tracking table under one table number.
_CONVINCING = 0.9
_OWN = {
    "change_sequence": "Joins the row to the tracking table.",
    "operation": "1 create, 2 delete, 3 the row before an update, 4 the row after it.",
    "time_stamp": "When the trigger ran, UTC.",
    "tran_id": "Transaction of the database.",
}


class TableNumberUnknownError(AfterimageError):
    """The tracking table does not show which source table a change table belongs to."""


@dataclass(frozen=True)
class OpenEdgeSample(Sample):
    """A sample of a change table; its operations are the values of `_Operation`.

    Attributes:
        numbers: source table number -> sampled change rows whose sequence, transaction and time
            the tracking table has under it.
        rows: how many change rows were sampled.
    """

    numbers: Mapping[int, int] = field(default_factory=dict)
    rows: int = 0


def own_name(column: str) -> str:
    """A column of OpenEdge's in one spelling: `_Change-Sequence` -> `change_sequence`."""
    return column.lower().replace("-", "_").strip("_")


def own_column(table: RawTable, name: str) -> Column | None:
    """A column of OpenEdge's by its name in one spelling."""
    return next(
        (c for c in table.columns if c.name.startswith("_") and own_name(c.name) == name), None
    )


def data_columns(table: RawTable) -> list[str]:
    """The columns that are the source's."""
    return [
        name
        for name in table.names()
        if not name.startswith("_") and name.lower() != "changed_fields"
    ]


def is_change_table(table: RawTable) -> bool:
    """Whether it has the columns of a change table, and columns of a source table."""
    needed = ("change_sequence", "operation")
    return all(own_column(table, name) for name in needed) and bool(data_columns(table))


def tracking_table(schema: RawSchema) -> RawTable | None:
    """The landed `_Cdc-Change-Tracking`."""
    tables = schema.tables.values()
    return next((one for one in tables if _has_tracking(one) and not data_columns(one)), None)


def _has_tracking(table: RawTable) -> bool:
    """Whether it has tracking rows: the tracking table, or an extract that joined them."""
    return own_column(table, "source_table_number") is not None


def table_name(table: RawTable) -> str:
    """The source table's name in model names: `CDC_Work-Order` -> `work_order`."""
    return model_name(table.name).removeprefix("cdc_")


def base_table(table: RawTable, schema: RawSchema) -> RawTable | None:
    """A landed table of the source table's name, with its columns."""
    return schema.full_load(table_name(table), data_columns(table), is_change_table)


def find(session: SparkSession, schema: RawSchema) -> Iterator[Found]:
    """The change tables of a schema, as far as it has their tracking rows."""
    for table in schema.tables.values():
        if is_change_table(table) and (_has_tracking(table) or tracking_table(schema)):

            def proposed(source: str, table: RawTable = table) -> Proposal:
                return propose(table, schema, source, _sample(session, schema, table))

            yield Found(SYSTEM, table.name, table_name(table), proposed)


def _sample(session: SparkSession, schema: RawSchema, table: RawTable) -> OpenEdgeSample:
    """Which table number the tracking table has for sampled rows of a change table."""
    sampled = f"(select * from {relation_of(schema.name, table.name)} limit {SAMPLED_RECORDS})"
    tracking = table if _has_tracking(table) else tracking_table(schema)
    assert tracking is not None
    # in several databases of one schema, or under several tables, a sequence alone is not unique
    shared = [
        name
        for name in ("change_sequence", "tran_id", "time_stamp")
        if own_column(table, name) and own_column(tracking, name)
    ]
    numbers = session.sql(
        "select source_table_number, count(distinct _row) as found from (select "
        f"{_owns(table, shared)}, monotonically_increasing_id() as _row from {sampled}) join "
        f"(select {_owns(tracking, [*shared, 'source_table_number'])} "
        f"from {relation_of(schema.name, tracking.name)}) using ({', '.join(shared)}) group by 1"
    ).collect()
    operations = session.sql(
        f"select cast(operation as int), count(*) from (select {_owns(table, ['operation'])} "
        f"from {sampled}) group by 1"
    ).collect()
    base, names = base_table(table, schema), data_columns(table)
    return OpenEdgeSample(
        operations={row[0] for row in operations},
        unique=unique_in_load(session, schema, base, table_name(table), names),
        numbers={int(row[0]): row[1] for row in numbers if row[0] is not None},
        rows=sum(row[1] for row in operations),
    )


def _owns(table: RawTable, names: list[str]) -> str:
    """SQL: columns of OpenEdge's under their names in one spelling."""
    found = [(own_column(table, name), name) for name in names]
    return ", ".join(f"`{column.name}` as {name}" for column, name in found if column)


def propose(table: RawTable, schema: RawSchema, source: str, sample: OpenEdgeSample) -> Proposal:
    """The proposal for a change table.

    Raises:
        TableNumberUnknownError: the sample does not show its table number.
    """
    name, base, columns = table_name(table), base_table(table, schema), data_columns(table)
    number = _table_number(table, schema, sample)
    settings: dict[str, Any] = {"table_number": number}
    tracking = None if _has_tracking(table) else tracking_table(schema)
    in_base = base.types() if base else {}
    arrays = [name for name in columns if in_base.get(name.lower(), "").startswith("array")]
    if arrays:
        settings["arrays"] = arrays
    notes = [
        f"table_number: {number} ({sample.numbers[number]} of {sample.rows} sampled change rows)"
    ]
    has_before_images = 4 not in sample.operations or 3 in sample.operations
    if not has_before_images:
        settings["policy_level"] = 2
        notes.append("policy_level: 2 (no sampled update has a row before it)")
    described = source_columns(
        table,
        columns,
        lambda name: _OWN.get(own_name(name), "Column of OpenEdge's change tables."),
    )
    text = table.comment or f"The change table of {name}."
    shared = "The tracking table, one row per change of any table."
    return Proposal(
        SYSTEM,
        schema.name,
        source,
        name,
        SourceTable(table.name, text, settings, described),
        propose_key(name, columns, base, sample),
        columns,
        notes,
        full_load(base, name),
        [f"tracking='{tracking.name}'"] if tracking else [],
        has_before_images,
        shared_tables=(SourceTable(tracking.name, shared),) if tracking else (),
    )


def _table_number(table: RawTable, schema: RawSchema, sample: OpenEdgeSample) -> int:
    """The one number under which the tracking table has nearly all sampled change rows."""
    ranked = sorted(sample.numbers.items(), key=lambda item: -item[1])
    convincing = [number for number, rows in ranked if rows >= _CONVINCING * sample.rows > 0]
    if len(convincing) == 1:
        return convincing[0]
    found = ", ".join(f"{number} ({rows} rows)" for number, rows in ranked[:3]) or "none"
    raise TableNumberUnknownError(
        f"{schema.name}.{table.name}: the tracking table does not show its table number. Of "
        f"{sample.rows} sampled change rows it has, by number: {found}. Fix: land the tracking "
        "rows of these changes, or declare the table by hand (docs/openedge.md)."
    )
