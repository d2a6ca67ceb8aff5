"""System -> how its tables are found, sampled and proposed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbt_afterimage.cli.add_table import qlik, read
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
        find: the tables of the system in a raw schema; looks at columns, and reads data only
            where tables are named there.
        propose: reads a sample of a found table and proposes its files; takes the name of the dbt
            source and a prefix of model names.
    """

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


PROPOSERS: dict[str, Proposer] = {
    "qlik_change_table": Proposer(_find_qlik, _propose_qlik),
}


def propose_all(
    session: SparkSession,
    tables: Sequence[str],
    every: str | None,
    source: str | None,
    prefix: str,
    report: Callable[[str], None],
) -> list[Proposal]:
    """Proposals for tables, in order of their names.

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
    for schema_name, names in wanted.items():
        report(f"Reading the schema {schema_name}")
        schema = read.read_schema(session, schema_name)
        found = [
            (proposer, table)
            for proposer in PROPOSERS.values()
            for table in proposer.find(session, schema)
        ]
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
            done: Iterator[int] = done,
        ) -> Proposal:
            with read.readable(f"{schema.name}.{item[1].name}"):
                proposal = item[0].propose(session, schema, item[1], named, prefix)
            report(f"Read {next(done, 0)} tables of {schema.name}")
            return proposal

        proposals += read.in_parallel(proposed, chosen)
    return sorted(proposals, key=lambda proposal: (proposal.schema, proposal.table))


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
