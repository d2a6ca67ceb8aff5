"""Reads samples of landed messages of Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_afterimage.cli.commands.add_table import qlik_messages
from dbt_afterimage.cli.commands.add_table.raw_schema import RawSchema, RawTable
from dbt_afterimage.cli.commands.add_table.read import in_parallel, relation_of, types_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MESSAGES = 300
_METADATA = 2000


def read_message_tables(
    session: SparkSession, schema: RawSchema, table: RawTable
) -> list[qlik_messages.MessageTable]:
    """The tables whose changes are in landed messages: by metadata messages, else by topic."""
    from pyspark.sql import functions as F

    relation = relation_of(schema.name, table.name)
    value, key = _text(table, "value"), _text(table, "key")
    rows = session.sql(
        f"select {value} as value from {relation} "
        f"where {value} like '%\"tableStructure\"%' order by offset desc limit {_METADATA}"
    ).collect()
    metadata = qlik_messages.newest_metadata(row["value"] for row in rows)
    if metadata:
        return [
            qlik_messages.MessageTable(table, name, (), message)
            for (_, name), message in sorted(metadata.items())
        ]
    topics = [row[0] for row in session.sql(f"select distinct topic from {relation}").collect()]

    def sampled(topic: str) -> qlik_messages.MessageTable:
        rows = (
            session.table(relation)
            .where(F.col("topic") == topic)
            .where("value is not null")
            .selectExpr(f"{value} as value", f"{key} as key")
            .limit(_MESSAGES)
            .collect()
        )
        return qlik_messages.MessageTable(
            table,
            topic,
            tuple(row["value"] for row in rows),
            keys=tuple(row["key"] for row in rows if row["key"] is not None),
        )

    return in_parallel(sampled, sorted(topics))


def _text(table: RawTable, column: str) -> str:
    """SQL: a column of messages as text; NULL where it is not landed."""
    kind = types_of(table).get(column)
    if kind is None:
        return "cast(null as string)"
    return f"decode({column}, 'utf-8')" if kind == "binary" else column
