"""System -> how its tables are found, sampled and proposed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbt_afterimage.cli.add_table import openedge, qlik, qlik_messages, read
from dbt_afterimage.cli.add_table.proposal import Proposal, model_name
from dbt_afterimage.cli.add_table.raw_schema import RawSchema
from dbt_afterimage.errors import AfterimageError
from dbt_afterimage.settings import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class UnknownTableError(AfterimageError):
    """No table that `add-table` can add has this name."""


@dataclass(frozen=True)
class Found:
    """A table of a source system whose changes a raw schema holds.

    Attributes:
        name: as the user may name it: the raw change table, or the table at the source.
        table: its name in model names, and another name that the user may use.
        detail: what the system's proposer needs to know about it.
    """

    name: str
    table: str
    detail: Any


@dataclass(frozen=True)
class Proposer:
    """What `add-table` knows of a system.

    Attributes:
        system: the system's name in settings.
        find: the tables of the system in a raw schema; looks at columns, and reads data only
            where tables are named there.
        propose: reads a sample of a found table and proposes its files; takes the name of the dbt
            source and a prefix of model names.
    """

    system: str
    find: Callable[[SparkSession, RawSchema], list[Found]]
    propose: Callable[[SparkSession, RawSchema, Found, str, str], Proposal]


def _find_qlik(session: SparkSession, schema: RawSchema) -> list[Found]:
    return [
        Found(table.name, qlik.table_name(table, schema), table)
        for table in schema.tables.values()
        if qlik.is_change_table(table)
    ]


def _propose_qlik(
    session: SparkSession, schema: RawSchema, found: Found, source: str, prefix: str
) -> Proposal:
    sample = read.read_sample(session, schema, found.detail)
    return qlik.propose(found.detail, schema, source, sample, prefix)


def _find_openedge(session: SparkSession, schema: RawSchema) -> list[Found]:
    return [
        Found(table.name, openedge.table_name(table), table)
        for table in schema.tables.values()
        if openedge.is_change_table(table)
        and (openedge.has_own_tracking(table) or openedge.tracking_table(schema))
    ]


def _propose_openedge(
    session: SparkSession, schema: RawSchema, found: Found, source: str, prefix: str
) -> Proposal:
    sample = read.read_openedge_sample(session, schema, found.detail)
    return openedge.propose(found.detail, schema, source, sample, prefix)


def _find_messages(session: SparkSession, schema: RawSchema) -> list[Found]:
    found = []
    for table in schema.tables.values():
        if qlik_messages.is_messages(table):
            with read.readable(f"{schema.name}.{table.name}"):
                tables = read.read_message_tables(session, schema, table)
            found += [Found(one.name, qlik_messages.table_name(one.name), one) for one in tables]
    return found


def _propose_messages(
    session: SparkSession, schema: RawSchema, found: Found, source: str, prefix: str
) -> Proposal:
    return qlik_messages.propose(found.detail, source, schema.name, prefix)


DEFAULT_SYSTEM = "qlik_change_table"
"""In a schema with tables of several systems, the source of the others names the system, too."""

PROPOSERS: dict[str, Proposer] = {
    proposer.system: proposer
    for proposer in (
        Proposer(DEFAULT_SYSTEM, _find_qlik, _propose_qlik),
        Proposer("qlik_messages", _find_messages, _propose_messages),
        Proposer("openedge", _find_openedge, _propose_openedge),
    )
}


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
        session: the project's Spark session.
        tables: as SCHEMA.TABLE.
        every: instead: a schema, all of whose tables are meant.
        source: name of the dbt source; None = the schema's name.
        prefix: of model names.
        report: progress callback, called with one line of text.

    Raises:
        UnknownTableError: a table is not there, or no system's.
    """
    wanted: dict[str, list[str]] = {every: []} if every else {}
    for name in tables:
        schema_name, dot, table = name.rpartition(".")
        if not dot:
            raise UnknownTableError(f"{name}: the schema is missing. Fix: write SCHEMA.{name}.")
        wanted.setdefault(schema_name, []).append(table)
    proposals: list[Proposal] = []
    failures: list[AfterimageError] = []
    for schema_name, names in wanted.items():
        report(f"Reading the schema {schema_name}")
        schema = read.read_schema(session, schema_name)
        found = [
            (proposer, table)
            for proposer in PROPOSERS.values()
            for table in proposer.find(session, schema)
        ]
        # the model that decodes messages takes all tables of its source for tables of messages
        is_mixed = len({proposer.system for proposer, _ in found}) > 1
        chosen = [_named(name, schema, found) for name in names] or found
        if not chosen:
            raise UnknownTableError(
                f"Schema {schema_name} has no change table: none of its {len(schema.tables)} "
                f"tables has the columns of a system that it knows ({', '.join(PROPOSERS)}). "
                "Fix: name the schema that the replication tool writes to."
            )
        named = source or model_name(schema_name.rpartition(".")[2])
        done = iter(range(1, len(chosen) + 1))

        def proposed(
            item: tuple[Proposer, Found],
            schema: RawSchema = schema,
            named: str = named,
            is_mixed: bool = is_mixed,
            done: Iterator[int] = done,
        ) -> Proposal | AfterimageError:
            try:
                with read.readable(f"{schema.name}.{item[1].name}"):
                    is_apart = is_mixed and item[0].system != DEFAULT_SYSTEM
                    own = f"{named}_{item[0].system}" if is_apart else named
                    proposal = item[0].propose(session, schema, item[1], own, prefix)
            except AfterimageError as error:
                return error
            report(f"Read {next(done, 0)} tables of {schema.name}")
            return proposal

        with read.interpreted(session):
            answers = read.in_parallel(proposed, chosen)
        for answer in answers:
            if isinstance(answer, Proposal):
                proposals.append(answer)
            else:
                failures.append(answer)
    proposals.sort(key=lambda proposal: (proposal.schema, proposal.table))
    return proposals, failures


def _named(
    name: str, schema: RawSchema, found: Sequence[tuple[Proposer, Found]]
) -> tuple[Proposer, Found]:
    for item in found:
        if name.lower() in (item[1].name.lower(), item[1].table.lower()):
            return item
    known = [table.name for _, table in found]
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
