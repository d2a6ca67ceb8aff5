"""Proposes the settings of a Qlik change table from its columns and sampled records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbt_afterimage.change_log.contract import RESERVED_COLUMNS
from dbt_afterimage.cli.commands.add_table.keys import (
    SAMPLED_RECORDS,
    Sample,
    propose_key,
    sampled_deletes,
    unique_in_load,
)
from dbt_afterimage.cli.commands.add_table.proposal import (
    Found,
    KeyProposal,
    Proposal,
    SourceColumn,
    SourceTable,
    full_load,
)
from dbt_afterimage.cli.support.raw_schema.qlik_change_table import (
    base_table,
    data_columns,
    header,
    header_prefix,
    is_change_table,
)
from dbt_afterimage.cli.support.raw_schema.read_schema import relation_of
from dbt_afterimage.cli.support.raw_schema.schema import RawSchema, RawTable, model_name
from dbt_afterimage.settings.qlik import HEADER_NAME
from dbt_afterimage.spark.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SYSTEM = "qlik_change_table"
DEFAULT_PREFIX = "header__"
_HEADERS = {
    "change_seq": (
        "Place in the order of all changes of the task, 35 digits: commit time to the hundredth of "
        "a second (UTC), then a counter. An update and its before image share it."
    ),
    "change_oper": "I insert, U update, D delete, B before image of an update.",
    "change_mask": "Which columns the change set, one bit per column.",
    "stream_position": "Position in the source database's log.",
    "operation": "The operation in words.",
    "transaction_id": "Transaction that the change belongs to.",
    "timestamp": "Time of the change at the source, UTC, approximate.",
    "partition_name": "Partition of the change table that the task wrote the record to.",
}


def find(session: SparkSession, schema: RawSchema) -> Iterator[Found]:
    """The change tables of a schema."""
    for table in schema.tables.values():
        if is_change_table(table):

            def proposed(source: str, table: RawTable = table) -> Proposal:
                return propose(table, schema, source, _sample(session, schema, table))

            yield Found(SYSTEM, table.name, table_name(table, schema), proposed)


def _sample(session: SparkSession, schema: RawSchema, table: RawTable) -> Sample:
    """Sampled records of a change table, and what its base table says about them."""
    oper = header(table, "change_oper")
    assert oper is not None  # every change table has it
    relation, names = relation_of(schema.name, table.name), [c.name for c in data_columns(table)]
    operation = f"upper(trim({quoted(oper.name)}))"
    rows = session.sql(
        f"select distinct o from (select {operation} as o from {relation} "
        f"where {operation} in ('U', 'B') limit {SAMPLED_RECORDS})"
    ).collect()
    sample = Sample(
        operations=frozenset(row["o"] for row in rows),
        deletes=sampled_deletes(session, relation, f"{operation} = 'D'", names),
    )
    base, stem = base_table(table, schema), table_name(table, schema)
    # the only query that may read a million rows
    if base is None or propose_key(stem, names, base, sample).is_sure:
        return sample
    return replace(sample, unique=unique_in_load(session, schema, base, stem, names))


def table_name(table: RawTable, schema: RawSchema) -> str:
    """The source table's name: that of the base table, else without the suffix `__ct`."""
    base = base_table(table, schema)
    name = base.name if base else table.name.lower().removesuffix("__ct").removesuffix("_ct")
    return model_name(name)


def propose(table: RawTable, schema: RawSchema, source: str, sample: Sample) -> Proposal:
    """The proposal for a change table."""
    name, base, data = table_name(table, schema), base_table(table, schema), data_columns(table)
    names = [column.name for column in data]
    notes: list[str] = []
    settings: dict[str, Any] = {}
    if header_prefix(table) != DEFAULT_PREFIX:
        settings["header_prefix"] = header_prefix(table)
    if additional := _additional_headers(table):
        settings["header_columns"] = additional
        notes.append(
            f"header columns that are not Qlik's own: {', '.join(additional)}; the change log "
            "keeps them, and history does if `history_metadata` names them"
        )
    key = propose_key(name, names, base, sample)
    columns = _source_columns(table, base, key)
    untyped = {column.name for column in columns if not column.data_type}
    texts = [c.name for c in data if c.data_type == "string" and c.name in untyped]
    text_key = [name for name in key.columns if name in texts]
    if len(texts) == len(data):
        notes.append(
            "all columns are text, so that `order by` gives 1, 10, 102: add `data_type` to the "
            "columns that hold numbers or times"
        )
    elif text_key:
        notes.append(
            f"the key {', '.join(text_key)} is text, so that `order by` gives 1, 10, 102: add "
            "`data_type` if it holds numbers"
        )
    has_before_images = "U" not in sample.operations or "B" in sample.operations
    if not has_before_images:
        settings["before_images"] = False
        notes.append(
            "no update of the sample has its before image: field changes are derived from history"
        )
    text = table.comment or f"One row per change record of {name}."
    return Proposal(
        SYSTEM,
        schema.name,
        source,
        name,
        SourceTable(table.name, text, settings, columns),
        key,
        names,
        notes,
        full_load(base, name),
        has_before_images=has_before_images,
        has_mask=header(table, "change_mask") is not None,
    )


def _additional_headers(table: RawTable) -> list[str]:
    """Header columns that are not Qlik's own, without the prefix, as far as a change can have them.

    Without a prefix they look like data columns.
    """
    prefix = (header_prefix(table) or "").lower()
    names = [column.name.lower() for column in table.columns]
    taken = {*RESERVED_COLUMNS, *_HEADERS, *names}
    found = [name.removeprefix(prefix) for name in names if prefix and name.startswith(prefix)]
    return [name for name in found if name not in taken and re.fullmatch(HEADER_NAME, name)]


def _source_columns(table: RawTable, base: RawTable | None, key: KeyProposal) -> list[SourceColumn]:
    """All columns with a description; a type where a typed column of the base is stored as text."""
    in_base = {column.name.lower(): column for column in base.columns} if base else {}
    data, prefix = data_columns(table), (header_prefix(table) or "").lower()
    found = []
    for column in table.columns:
        name, text, data_type = column.name.lower(), column.comment, None
        if column not in data:
            own = name.removeprefix(prefix)
            text = text or _HEADERS.get(own, f"Header column {own}.")
        else:
            other = in_base.get(name, column)
            text = text or other.comment or ("Key." if column.name in key.columns else "")
            if column.data_type == "string" != other.data_type:
                data_type = other.data_type
        found.append(SourceColumn(column.name, text, data_type))
    return found
