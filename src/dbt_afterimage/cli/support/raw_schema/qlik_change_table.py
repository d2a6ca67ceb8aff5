"""Recognizes a Qlik change table, and the base table that belongs to it."""

from __future__ import annotations

from dbt_afterimage.cli.support.raw_schema.schema import Column, RawSchema, RawTable
from dbt_afterimage.settings.qlik import QlikChangeTableSettings


def header_prefix(table: RawTable) -> str | None:
    """The prefix of the header columns as it is spelled; None for other tables than Qlik's."""
    names, seq = table.types(), "change_seq"
    prefixes = [name[: -len(seq)] for name in table.names() if name.lower().endswith(seq)]
    return next((one for one in prefixes if f"{one}change_oper".lower() in names), None)


def is_change_table(table: RawTable) -> bool:
    """Whether the table has the header columns that every Qlik change table stores."""
    return header_prefix(table) is not None


def data_columns(table: RawTable) -> list[Column]:
    """The columns that are the source's and not the tool's, in order."""
    prefix = header_prefix(table) or ""
    settings = QlikChangeTableSettings(system="qlik_change_table", header_prefix=prefix)
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
        and len(names & other.types().keys()) * 2 > len(names)
    ]
    return max(found, key=lambda other: len(other.name), default=None)
