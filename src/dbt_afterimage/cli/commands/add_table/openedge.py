"""Proposes the settings of an OpenEdge change table from its columns and a sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt_afterimage.cli.commands.add_table.keys import propose_key
from dbt_afterimage.cli.commands.add_table.proposal import (
    LOAD_WITHOUT_TIME,
    Proposal,
    SourceColumn,
    SourceTable,
    model_name,
    unanswered_base,
)
from dbt_afterimage.cli.commands.add_table.raw_schema import Column, RawSchema, RawTable
from dbt_afterimage.errors import AfterimageError

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
class OpenEdgeSample:
    """A sample of a change table.

    Attributes:
        numbers: source table number -> sampled change rows whose sequence, transaction and time
            the tracking table has under it.
        rows: how many change rows were sampled.
        operations: the values of `_Operation` in the sample.
        unique: sets of columns that have no value twice in the base table.
    """

    numbers: Mapping[int, int]
    rows: int
    operations: frozenset[int]
    unique: tuple[tuple[str, ...], ...] = ()


def own_name(column: str) -> str:
    """A column of OpenEdge's in one spelling: `_Change-Sequence` -> `change_sequence`."""
    return column.lower().replace("-", "_").strip("_")


def own_column(table: RawTable, name: str) -> Column | None:
    """A column of OpenEdge's by its name in one spelling."""
    return next(
        (c for c in table.columns if c.name.startswith("_") and own_name(c.name) == name), None
    )


def data_columns(table: RawTable) -> list[Column]:
    """The columns that are the source's."""
    return [
        column
        for column in table.columns
        if not column.name.startswith("_") and column.name.lower() != "changed_fields"
    ]


def is_change_table(table: RawTable) -> bool:
    """Whether it has the columns of a change table, and columns of a source table."""
    needed = ("change_sequence", "operation")
    return all(own_column(table, name) for name in needed) and bool(data_columns(table))


def tracking_table(schema: RawSchema) -> RawTable | None:
    """The landed `_Cdc-Change-Tracking`."""
    return next(
        (
            table
            for table in schema.tables.values()
            if own_column(table, "source_table_number") and not data_columns(table)
        ),
        None,
    )


def has_own_tracking(table: RawTable) -> bool:
    """Whether the extract joined the tracking rows to the change rows."""
    return own_column(table, "source_table_number") is not None


def table_name(table: RawTable) -> str:
    """The source table's name in model names: `CDC_Work-Order` -> `work_order`."""
    return model_name(table.name).removeprefix("cdc_")


def base_table(table: RawTable, schema: RawSchema) -> RawTable | None:
    """A landed table of the source table's name, with its columns."""
    found = schema.full_load(table_name(table), [column.name for column in data_columns(table)])
    return None if found is None or found is table or is_change_table(found) else found


def propose(
    table: RawTable, schema: RawSchema, source: str, sample: OpenEdgeSample, prefix: str = ""
) -> Proposal:
    """The proposal for a change table.

    Raises:
        TableNumberUnknownError: the sample does not show its table number.
    """
    name = prefix + table_name(table)
    base = base_table(table, schema)
    tracking = None if has_own_tracking(table) else tracking_table(schema)
    columns = [column.name for column in data_columns(table)]
    notes: list[str] = []
    settings: dict[str, Any] = {"table_number": _table_number(table, schema, sample)}
    notes.append(
        f"table_number: {settings['table_number']} ("
        f"{sample.numbers[settings['table_number']]} of {sample.rows} sampled change rows)"
    )
    has_before_images = not (4 in sample.operations and 3 not in sample.operations)
    if not has_before_images:
        settings["policy_level"] = 2
        notes.append("policy_level: 2 (no sampled update has a row before it)")
    key = propose_key(name.removeprefix(prefix), columns, base, unique=sample.unique)
    arguments = [f"'{source}'", f"'{table.name}'"]
    if tracking:
        arguments.append(f"tracking='{tracking.name}'")
    tables = []
    if base:
        arguments.append(f"base='{base.name}'")
        settings["base"] = unanswered_base()
        arrays = [c.name for c in data_columns(table) if _type_in(base, c).startswith("array")]
        if arrays:
            settings["arrays"] = arrays
        notes.append(LOAD_WITHOUT_TIME)
        tables.append(
            SourceTable(
                base.name,
                base.comment or f"One row per row of {table_name(table)}: the full load.",
            )
        )
    described = [
        SourceColumn(
            column.name,
            column.comment
            or (
                f"Column {column.name} of the source."
                if column.name in columns
                else _OWN.get(own_name(column.name), "Column of OpenEdge's change tables.")
            ),
        )
        for column in table.columns
    ]
    changed = SourceTable(
        table.name,
        table.comment or f"The change table of {table_name(table)}.",
        settings,
        tuple(described),
    )
    shared = (
        (SourceTable(tracking.name, "The tracking table, one row per change of any table."),)
        if tracking
        else ()
    )
    return Proposal(
        table=name,
        schema=schema.name,
        source=source,
        source_settings={"system": "openedge"},
        system="openedge",
        tables=(changed, *tables),
        shared_tables=shared,
        staging=f"stg_openedge__{name}",
        staging_macro="stage_openedge",
        staging_arguments=tuple(arguments),
        key=key,
        key_columns=tuple(columns),
        has_before_images=has_before_images,
        notes=tuple(notes),
    )


def _type_in(base: RawTable, column: Column) -> str:
    return next((c.data_type for c in base.columns if c.name.lower() == column.name.lower()), "")


def _table_number(table: RawTable, schema: RawSchema, sample: OpenEdgeSample) -> int:
    """The one number under which the tracking table has nearly all sampled change rows."""
    ranked = sorted(sample.numbers.items(), key=lambda item: -item[1])
    if sample.rows and ranked and ranked[0][1] >= _CONVINCING * sample.rows:
        others = ranked[1][1] if len(ranked) > 1 else 0
        if others < _CONVINCING * sample.rows:
            return ranked[0][0]
    found = ", ".join(f"{number} ({rows} rows)" for number, rows in ranked[:3]) or "none"
    raise TableNumberUnknownError(
        f"{schema.name}.{table.name}: the tracking table does not show its table number. Of "
        f"{sample.rows} sampled change rows it has, by number: {found}. Fix: land the tracking "
        "rows of these changes, or declare the table by hand (docs/openedge.md)."
    )
