"""Finds the tables that `add-table` adds, of all systems, and proposes their files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dbt_afterimage.cli.commands.add_table import (
    change_feed,
    debezium,
    openedge,
    qlik,
    qlik_messages,
    soliddb,
)
from dbt_afterimage.cli.commands.add_table.message_tables import (
    MessageTable,
    full_name,
    is_messages,
    read_message_tables,
    table_name,
    told_apart,
)
from dbt_afterimage.cli.commands.add_table.proposal import Found, Proposal
from dbt_afterimage.cli.support.raw_schema import read_schema as reading
from dbt_afterimage.cli.support.raw_schema.schema import RawSchema, model_name
from dbt_afterimage.errors import AfterimageError
from dbt_afterimage.settings import did_you_mean
from dbt_afterimage.settings.systems import SYSTEMS
from dbt_afterimage.spark.session import session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# to compile hundreds of small queries takes longer
_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


class UnknownTableError(AfterimageError):
    """No table that `add-table` can add has this name."""


def _find_messages(session: SparkSession, schema: RawSchema) -> Iterator[Found]:
    """Tables in messages of Qlik, and in those of Debezium, which a change feed reads."""
    for raw in schema.tables.values():
        if is_messages(raw):
            with reading.readable(f"{schema.name}.{raw.name}"):
                tables = read_message_tables(session, schema, raw)
            yield from tables_in_messages(tables, schema.name)


def tables_in_messages(tables: Sequence[MessageTable], schema: str) -> Iterator[Found]:
    """The tables of a raw table of messages; topics that Debezium keeps for itself are left out."""
    tables = told_apart(tables)
    of_debezium = [t for t in tables if any(map(debezium.event_of, t.data))]
    for table in tables:
        if table in of_debezium:
            propose, system, name = debezium.propose, debezium.SYSTEM, table.name
        elif of_debezium and debezium.is_of_debezium_itself(table.name):
            continue
        else:
            propose, system, name = qlik_messages.propose, qlik_messages.SYSTEM, full_name(table)
        yield Found(system, name, table_name(table), partial(propose, table, schema))


FINDERS: tuple[Callable[[SparkSession, RawSchema], Iterable[Found]], ...] = (
    qlik.find,
    _find_messages,
    openedge.find,
    soliddb.find,
    change_feed.find,
)
"""Each finds the tables of a system in a raw schema: by columns, and by data where tables are named
there."""


def propose_all(
    session: SparkSession,
    tables: Sequence[str],
    every: str | None,
    source: str | None,
    prefix: str,
    report: Callable[[str], None],
) -> tuple[list[Proposal], list[AfterimageError]]:
    """Proposals for tables, in order of their names, and why others have none.

    Args:
        tables: as SCHEMA.TABLE.
        every: instead: a schema, all of whose tables are meant.
        source: name of the dbt source; None = the schema's name.

    Raises:
        UnknownTableError: a table is not there, or no system's.
    """
    wanted: dict[str, list[str]] = {every: []} if every else {}
    for name in tables:
        schema_name, table = _schema_and_table(session, name)
        wanted.setdefault(schema_name, []).append(table)
    answers: list[Proposal | AfterimageError] = []
    for schema_name, names in wanted.items():
        report(f"Reading the schema {schema_name}")
        schema = reading.read_schema(session, schema_name)
        found = [table for find in FINDERS for table in find(session, schema)]
        certain = [table for table in found if table.is_certain]
        named_ones = [_named(name, schema, found) for name in names]
        # the change table and its base table name the same one
        chosen = list({(each.system, each.name): each for each in named_ones or certain}.values())
        if not chosen:
            raise UnknownTableError(
                f"Schema {schema_name} has no change table: none of its {len(schema.tables)} "
                f"tables has the columns of a system that it knows ({', '.join(SYSTEMS)}). "
                "Fix: name the schema that the replication tool writes to."
            )
        named = source or model_name(schema_name.rpartition(".")[2])
        # the model that decodes messages takes all tables of its source for tables of messages
        is_mixed = len({table.system for table in found}) > 1
        proposed = partial(_proposed, schema_name, named, is_mixed, prefix)
        with session_settings(session, _INTERPRETED):
            for number, answer in enumerate(reading.in_parallel(proposed, chosen), 1):
                answers.append(answer)
                report(f"Read {number} tables of {schema_name}")
    proposals = [answer for answer in answers if isinstance(answer, Proposal)]
    proposals.sort(key=lambda proposal: (proposal.schema, proposal.table))
    return proposals, [answer for answer in answers if isinstance(answer, AfterimageError)]


def _proposed(
    schema: str, named: str, is_mixed: bool, prefix: str, item: Found
) -> Proposal | AfterimageError:
    """The proposal for a table, or why it has none.

    In a schema with tables of several systems, the source of the others names the system, too.
    """
    source = f"{named}_{item.system}" if is_mixed and item.system != qlik.SYSTEM else named
    try:
        with reading.readable(f"{schema}.{item.name}"):
            proposal = item.propose(source)
    except AfterimageError as error:
        return error
    return replace(proposal, table=prefix + proposal.table)


def _schema_and_table(session: SparkSession, name: str) -> tuple[str, str]:
    """The two parts of SCHEMA.TABLE; a schema may have a catalog, and a topic may have dots."""
    parts = name.split(".")
    if len(parts) < 2:
        raise UnknownTableError(f"{name}: the schema is missing. Fix: write SCHEMA.{name}.")
    splits = [
        (".".join(parts[:place]), ".".join(parts[place:])) for place in range(len(parts) - 1, 0, -1)
    ]
    there = (split for split in splits if reading.is_schema(session, split[0]))
    return splits[0] if len(splits) == 1 else next(there, splits[0])


def _named(name: str, schema: RawSchema, found: Sequence[Found]) -> Found:
    in_full = [item for item in found if name.lower() == item.name.lower()]
    items = in_full or [item for item in found if name.lower() == item.table.lower()]
    known = [table.name for table in found]
    if len(items) == 1:
        return items[0]
    if items:
        raise UnknownTableError(
            f"{schema.name}.{name}: several tables have this name: "
            f"{', '.join(sorted(item.name for item in items))}. Fix: name one of them in full."
        )
    other = schema.find(name)
    what = (
        f"it has the columns {', '.join(other.names()[:8])}, and no change table belongs to it"
        if other
        else "the schema has no such table"
    )
    raise UnknownTableError(
        f"{schema.name}.{name}: {what}.{did_you_mean(name, known)} Change tables: "
        f"{', '.join(sorted(known)) or 'none'}. Fix: name one of them."
    )
