"""Proposes the settings of a Qlik change table from its columns and sampled records."""

from __future__ import annotations

import re
from typing import Any

from dbt_afterimage.change_log.contract import RESERVED_COLUMNS
from dbt_afterimage.cli.commands.add_table.keys import propose_key
from dbt_afterimage.cli.commands.add_table.proposal import (
    LOAD_WITHOUT_TIME,
    KeyProposal,
    Proposal,
    SourceColumn,
    SourceTable,
    model_name,
    unanswered_base,
)
from dbt_afterimage.cli.commands.add_table.raw_schema import Column, RawSchema, RawTable, Sample
from dbt_afterimage.settings.qlik import HEADER_NAME, QlikChangeTableSettings

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


def header_prefix(table: RawTable) -> str | None:
    """The prefix of the header columns; None if the table is no change table of Qlik."""
    names = [name.lower() for name in table.names()]
    for name in names:
        if name.endswith("change_seq"):
            prefix = name.removesuffix("change_seq")
            if prefix + "change_oper" in names:
                return prefix
    return None


def is_change_table(table: RawTable) -> bool:
    """Whether the table has the header columns that every Qlik change table stores."""
    return header_prefix(table) is not None


def data_columns(table: RawTable) -> list[Column]:
    """The columns that are the source's and not the tool's, in order."""
    settings = _settings(header_prefix(table) or "")
    return [column for column in table.columns if not settings.is_own_column(column.name)]


def header(table: RawTable, name: str) -> Column | None:
    """A header column by its name without the prefix."""
    wanted = ((header_prefix(table) or "") + name).lower()
    return next((column for column in table.columns if column.name.lower() == wanted), None)


def base_table(table: RawTable, schema: RawSchema) -> RawTable | None:
    """The base table: the longest name that the change table's begins with, with its columns."""
    names = {column.name.lower() for column in data_columns(table)}
    found = [
        other
        for other in schema.tables.values()
        if other is not table
        and table.name.lower().startswith(other.name.lower())
        and not is_change_table(other)
        and len(names & {name.lower() for name in other.names()}) * 2 > len(names)
    ]
    return max(found, key=lambda other: len(other.name), default=None)


def table_name(table: RawTable, schema: RawSchema) -> str:
    """The source table's name: that of the base table, else without the suffix `__ct`."""
    base = base_table(table, schema)
    name = base.name if base else table.name.lower().removesuffix("__ct").removesuffix("_ct")
    return model_name(name)


def propose(
    table: RawTable, schema: RawSchema, source: str, sample: Sample, prefix: str = ""
) -> Proposal:
    """The proposal for a change table."""
    name = prefix + table_name(table, schema)
    base = base_table(table, schema)
    data = data_columns(table)
    names = [column.name for column in data]
    notes: list[str] = []
    settings: dict[str, Any] = {}

    found_prefix = _spelled_prefix(table)
    if found_prefix != DEFAULT_PREFIX:
        settings["header_prefix"] = found_prefix
    additional = _additional_headers(table)
    if additional:
        settings["header_columns"] = additional
        notes.append(
            f"header columns that are not Qlik's own: {', '.join(additional)}; the change log "
            "keeps them, and history does if `history_metadata` names them"
        )
    key = propose_key(
        model_name(base.name if base else name.removeprefix(prefix)),
        names,
        base,
        sample.deletes,
        sample.unique,
    )
    has_before_images = "U" not in sample.operations or "B" in sample.operations
    if not has_before_images:
        settings["before_images"] = False
        notes.append(
            "no update of the sample has its before image: field changes are derived from history"
        )
    if base:
        settings["base"] = unanswered_base()
        notes.append(LOAD_WITHOUT_TIME)
    arguments = [f"'{source}'", f"'{table.name}'"]
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
    tables = [
        SourceTable(
            name=table.name,
            description=table.comment or f"One row per change record of {_plain(name, prefix)}.",
            settings=settings,
            columns=tuple(columns),
        )
    ]
    if base:
        arguments.append(f"base='{base.name}'")
        tables.append(
            SourceTable(
                name=base.name,
                description=base.comment
                or f"One row per row of {_plain(name, prefix)}: the full load.",
            )
        )
    return Proposal(
        table=name,
        schema=schema.name,
        source=source,
        source_settings={"system": "qlik_change_table"},
        system="qlik_change_table",
        tables=tuple(tables),
        staging=f"stg_qlik__{name}",
        staging_macro="stage_qlik_change_table",
        staging_arguments=tuple(arguments),
        key=key,
        key_columns=tuple(names),
        has_before_images=has_before_images,
        has_mask=header(table, "change_mask") is not None,
        notes=tuple(notes),
    )


def _plain(name: str, prefix: str) -> str:
    return name.removeprefix(prefix)


def _settings(prefix: str) -> QlikChangeTableSettings:
    return QlikChangeTableSettings(system="qlik_change_table", header_prefix=prefix)


def _spelled_prefix(table: RawTable) -> str:
    """The prefix as the table spells it."""
    column = header(table, "change_seq")
    return column.name[: -len("change_seq")] if column else DEFAULT_PREFIX


def _additional_headers(table: RawTable) -> list[str]:
    """Header columns that are not Qlik's own, without the prefix, as far as a change can have them.

    Without a prefix they are no different from data columns.
    """
    prefix = _spelled_prefix(table).lower()
    names = [column.name.lower() for column in table.columns]
    taken = {*RESERVED_COLUMNS, *_HEADERS, *names}
    found = [name.removeprefix(prefix) for name in names if prefix and name.startswith(prefix)]
    return [name for name in found if name not in taken and re.fullmatch(HEADER_NAME, name)]


def _source_columns(table: RawTable, base: RawTable | None, key: KeyProposal) -> list[SourceColumn]:
    """All columns with a description; a type where a typed column of the base is stored as text."""
    in_base = {column.name.lower(): column for column in base.columns} if base else {}
    data = {column.name for column in data_columns(table)}
    prefix = _spelled_prefix(table)
    found = []
    for column in table.columns:
        if column.name not in data:
            own = column.name.lower().removeprefix(prefix.lower())
            text = column.comment or _HEADERS.get(own, f"Header column {own}.")
            found.append(SourceColumn(column.name, text))
            continue
        other = in_base.get(column.name.lower())
        text = column.comment or (other.comment if other else "")
        if not text:
            text = "Key." if column.name in key.columns else f"Column {column.name} of the source."
        differs = other and column.data_type == "string" and other.data_type != "string"
        found.append(
            SourceColumn(column.name, text, other.data_type if other and differs else None)
        )
    return found
