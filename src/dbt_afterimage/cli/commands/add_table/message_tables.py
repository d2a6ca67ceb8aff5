"""The tables whose changes are in landed messages, and samples of their JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dbt_afterimage.cli.support.raw_schema.read_schema import in_parallel, relation_of
from dbt_afterimage.cli.support.raw_schema.schema import RawSchema, RawTable, model_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RAW = {"topic", "partition", "offset", "value", "timestamp"}
_MESSAGES = 300
_METADATA = 2000


@dataclass(frozen=True)
class MessageTable:
    """A table whose changes are in landed messages.

    Attributes:
        messages: the raw table.
        name: what a message says of its table: its topic, or the table in metadata messages.
        data: sampled values of its data messages, as text.
        metadata: the `message` of its newest metadata message, None where there is none.
        keys: sampled keys of its messages, as text.
        qualifier: its schema, or its topic up to the last dot, where another table has its name.
    """

    messages: RawTable
    name: str
    data: tuple[str, ...] = ()
    metadata: Mapping[str, Any] | None = None
    keys: tuple[str, ...] = ()
    qualifier: str = ""


def is_messages(table: RawTable) -> bool:
    """Whether the table has the columns of landed messages."""
    return table.types().keys() >= _RAW


def table_name(table: MessageTable) -> str:
    """A table's name in model names: of the topic `shop.public.Orders` -> `orders`."""
    name = table.name.rpartition(".")[2]
    return model_name(f"{table.qualifier}_{name}" if table.qualifier else name)


def full_name(table: MessageTable) -> str:
    """The table's name at the source, with its schema if several schemas have one of this name."""
    is_in_schema = table.metadata is not None and table.qualifier
    return f"{table.qualifier}.{table.name}" if is_in_schema else table.name


def told_apart(tables: Sequence[MessageTable]) -> list[MessageTable]:
    """The tables, those with a qualifier whose name in model names another one has as well."""
    names = Counter(table_name(table) for table in tables)
    return [
        replace(table, qualifier=_qualifier(table)) if names[table_name(table)] > 1 else table
        for table in tables
    ]


def _qualifier(table: MessageTable) -> str:
    if table.metadata is not None:
        return str(table.metadata["lineage"].get("schema") or "")
    return table.name.rpartition(".")[0]


def newest_metadata(values: Iterable[str]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """(schema, table) -> the `message` of its metadata message with the highest version."""
    messages = [(json_object(value) or {}).get("message") for value in values]
    lineages = [
        (message["lineage"], message)
        for message in messages
        if isinstance(message, dict) and isinstance(message.get("lineage"), dict)
    ]
    lineages.sort(key=lambda each: int(each[0].get("tableVersion") or 0))
    return {
        (str(each.get("schema")), str(each.get("table"))): message for each, message in lineages
    }


def json_object(value: str) -> dict[str, Any] | None:
    """A message as a JSON object; None for anything else."""
    try:
        found = json.loads(value)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def values_by_column(images: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Column -> its values that are not NULL, in order of the columns' appearance."""
    values: dict[str, list[Any]] = {}
    for image in images:
        for name, value in image.items():
            values.setdefault(name, []).extend([] if value is None else [value])
    return values


def read_message_tables(
    session: SparkSession, schema: RawSchema, table: RawTable
) -> list[MessageTable]:
    """The tables whose changes are in landed messages: by metadata messages, else by topic."""
    from pyspark.sql import functions as F

    relation = relation_of(schema.name, table.name)
    value, key = _text(table, "value"), _text(table, "key")
    rows = session.sql(
        f"select {value} as value from {relation} "
        f"where {value} like '%\"tableStructure\"%' order by offset desc limit {_METADATA}"
    ).collect()
    metadata = newest_metadata(row["value"] for row in rows)
    if metadata:
        return [
            MessageTable(table, name, (), message)
            for (_, name), message in sorted(metadata.items())
        ]
    topics = [row[0] for row in session.sql(f"select distinct topic from {relation}").collect()]

    def sampled(topic: str) -> MessageTable:
        rows = (
            session.table(relation)
            .where(F.col("topic") == topic)
            .where("value is not null")
            .selectExpr(f"{value} as value", f"{key} as key")
            .limit(_MESSAGES)
            .collect()
        )
        data = tuple(row["value"] for row in rows)
        keys = tuple(row["key"] for row in rows if row["key"] is not None)
        return MessageTable(table, topic, data, keys=keys)

    return list(in_parallel(sampled, sorted(topics)))


def _text(table: RawTable, column: str) -> str:
    """SQL: a column of messages as text; NULL where it is not landed."""
    kind = table.types().get(column)
    if kind is None:
        return "cast(null as string)"
    return f"decode({column}, 'utf-8')" if kind == "binary" else column
