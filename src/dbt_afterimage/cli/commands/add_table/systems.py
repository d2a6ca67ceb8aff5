"""System -> how its tables are found, sampled and proposed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dbt_afterimage.cli.commands.add_table import (
    change_feed,
    debezium,
    openedge,
    qlik,
    qlik_messages,
    read,
    soliddb,
)
from dbt_afterimage.cli.commands.add_table.proposal import Proposal, model_name
from dbt_afterimage.cli.commands.add_table.raw_schema import RawSchema
from dbt_afterimage.cli.commands.add_table.read_feeds import read_feed_sample
from dbt_afterimage.cli.commands.add_table.read_messages import read_message_tables
from dbt_afterimage.cli.commands.add_table.read_soliddb import read_logged_tables
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
        system: the system's name in settings.
        name: as the user may name it: the raw change table, or the table at the source.
        table: its name in model names, and another name that the user may use.
        detail: what the system's proposer needs to know about it.
        is_certain: no other table has such columns. False: it must be named, `--all` leaves it out.
    """

    system: str
    name: str
    table: str
    detail: Any
    is_certain: bool = True


DEFAULT_SYSTEM = "qlik_change_table"
"""In a schema with tables of several systems, the source of the others names the system, too."""


def _find_qlik(session: SparkSession, schema: RawSchema) -> list[Found]:
    return [
        Found(DEFAULT_SYSTEM, table.name, qlik.table_name(table, schema), table)
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
        Found("openedge", table.name, openedge.table_name(table), table)
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
    """Tables in messages of Qlik, and in those of Debezium, which a change feed reads."""
    found = []
    for raw in schema.tables.values():
        if not qlik_messages.is_messages(raw):
            continue
        with read.readable(f"{schema.name}.{raw.name}"):
            tables = read_message_tables(session, schema, raw)
        found += tables_in_messages(tables)
    return found


def tables_in_messages(tables: Sequence[qlik_messages.MessageTable]) -> list[Found]:
    """The tables of a raw table of messages; topics that Debezium keeps for itself are left out."""
    tables = qlik_messages.told_apart(tables)
    of_debezium = [t for t in tables if any(debezium.is_event(value) for value in t.data)]
    found = []
    for table in tables:
        name = qlik_messages.table_name(table)
        if table in of_debezium:
            found.append(Found("change_feed", table.name, name, table))
        elif not (of_debezium and debezium.is_of_debezium_itself(table.name)):
            found.append(Found("qlik_messages", qlik_messages.full_name(table), name, table))
    return found


def _propose_messages(
    session: SparkSession, schema: RawSchema, found: Found, source: str, prefix: str
) -> Proposal:
    return qlik_messages.propose(found.detail, source, schema.name, prefix)


def _find_soliddb(session: SparkSession, schema: RawSchema) -> list[Found]:
    landed = soliddb.landed_tables(schema)
    if landed is None:
        return []
    with read.readable(f"{schema.name}.{landed.log.name}"):
        tables = read_logged_tables(session, schema, landed)
    return [
        Found("soliddb", soliddb.full_name(table), soliddb.table_name(table), table)
        for table in tables
    ]


def _propose_soliddb(
    session: SparkSession, schema: RawSchema, found: Found, source: str, prefix: str
) -> Proposal:
    base = soliddb.base_table(found.detail, schema)
    names = found.detail.column_names()
    unique = read.unique_in_load(session, schema, base, found.table, names)
    return soliddb.propose(replace(found.detail, unique=unique), schema, source, prefix)


def _find_feeds(session: SparkSession, schema: RawSchema) -> list[Found]:
    return [
        Found(
            "change_feed",
            table.name,
            change_feed.table_name(table),
            table,
            change_feed.is_certain(preset),
        )
        for table in schema.tables.values()
        if (preset := change_feed.preset_of(table)) is not None
    ]


def _propose_feed(
    session: SparkSession, schema: RawSchema, found: Found, source: str, prefix: str
) -> Proposal:
    if isinstance(found.detail, qlik_messages.MessageTable):
        return debezium.propose(found.detail, source, schema.name, prefix)
    preset = change_feed.preset_of(found.detail)
    assert preset is not None
    sample = read_feed_sample(session, schema, found.detail, preset)
    return change_feed.propose(found.detail, schema, preset, source, sample, prefix)


FINDERS: tuple[Callable[[SparkSession, RawSchema], list[Found]], ...] = (
    _find_qlik,
    _find_messages,
    _find_openedge,
    _find_soliddb,
    _find_feeds,
)
"""Each finds the tables of a system in a raw schema: by columns, and by data where tables are named
there."""

PROPOSERS: dict[str, Callable[[SparkSession, RawSchema, Found, str, str], Proposal]] = {
    DEFAULT_SYSTEM: _propose_qlik,
    "qlik_messages": _propose_messages,
    "openedge": _propose_openedge,
    "soliddb": _propose_soliddb,
    "change_feed": _propose_feed,
}
"""System -> reads a sample of a found table and proposes its files; takes the name of the dbt
source and a prefix of model names."""


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
    proposals: list[Proposal] = []
    failures: list[AfterimageError] = []
    for schema_name, names in wanted.items():
        report(f"Reading the schema {schema_name}")
        schema = read.read_schema(session, schema_name)
        found = [table for find in FINDERS for table in find(session, schema)]
        certain = [table for table in found if table.is_certain]
        # the model that decodes messages takes all tables of its source for tables of messages
        is_mixed = len({table.system for table in found}) > 1
        named_ones = [_named(name, schema, found) for name in names]
        # the change table and its base table name the same one
        chosen = list({(each.system, each.name): each for each in named_ones or certain}.values())
        if not chosen:
            raise UnknownTableError(
                f"Schema {schema_name} has no change table: none of its {len(schema.tables)} "
                f"tables has the columns of a system that it knows ({', '.join(PROPOSERS)}). "
                "Fix: name the schema that the replication tool writes to."
            )
        named = source or model_name(schema_name.rpartition(".")[2])
        done = iter(range(1, len(chosen) + 1))

        def proposed(
            item: Found,
            schema: RawSchema = schema,
            named: str = named,
            is_mixed: bool = is_mixed,
            done: Iterator[int] = done,
        ) -> Proposal | AfterimageError:
            try:
                with read.readable(f"{schema.name}.{item.name}"):
                    is_apart = is_mixed and item.system != DEFAULT_SYSTEM
                    own = f"{named}_{item.system}" if is_apart else named
                    proposal = PROPOSERS[item.system](session, schema, item, own, prefix)
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


def _schema_and_table(session: SparkSession, name: str) -> tuple[str, str]:
    """The two parts of SCHEMA.TABLE; a schema may have a catalog, and a topic may have dots."""
    parts = name.split(".")
    if len(parts) < 2:
        raise UnknownTableError(f"{name}: the schema is missing. Fix: write SCHEMA.{name}.")
    splits = [
        (".".join(parts[:place]), ".".join(parts[place:])) for place in range(len(parts) - 1, 0, -1)
    ]
    if len(splits) == 1:
        return splits[0]
    there = (split for split in splits if read.is_schema(session, split[0]))
    return next(there, splits[0])


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
