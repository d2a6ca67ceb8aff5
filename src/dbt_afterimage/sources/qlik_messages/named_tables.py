"""The var `complete_load`: tables whose last full load is whole, by the word of the user."""

from __future__ import annotations

from dataclasses import dataclass

from dbt_afterimage.run_context import RunContext
from dbt_afterimage.sources.qlik_messages.load_runs import Table


class NamedTablesError(ValueError):
    """`complete_load` names no table of messages; the text is meant for the user."""


@dataclass(frozen=True)
class NamedTables:
    """Tables of a source whose last load is complete, according to the user.

    Attributes:
        tables: schema, None for any, and name of each, as in the messages.
    """

    tables: frozenset[Table]

    def __contains__(self, table: Table) -> bool:
        return table in self.tables or (None, table[1]) in self.tables


def named_tables(context: RunContext) -> NamedTables:
    """The var `complete_load` for the tables of a source.

    Raises:
        NamedTablesError: it is not a list of names, or no source of messages has a table of a name.
    """
    given = context.complete_load
    names = [given] if isinstance(given, str) else given or []
    every = context.message_tables
    is_list = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not is_list or not set(names) <= set(every):
        what = ", ".join(repr(name) for name in names if name not in every) if is_list else given
        raise NamedTablesError(
            f"{context.model}: the var `complete_load` names {what}. Allowed: a list of tables, "
            f"of all sources of messages: {', '.join(sorted(set(every)))}. Nothing was written. "
            "Fix: correct the var."
        )
    return NamedTables(
        frozenset(
            (table["table_schema"], table["message_table"])
            for table in context.tables
            if table["name"] in names
        )
    )
