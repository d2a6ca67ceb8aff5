"""A dbt project over landed Qlik messages: sources that differ in where they name table and schema.

`raw_topics`    the table is the topic, its columns are those of the YAML
`raw_ids`       table and columns come from metadata messages
`raw_registry`  Avro with schemas in a folder, the table is in a record header
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt_afterimage.sources.qlik_messages.message_columns import RAW_COLUMNS
from dbt_afterimage.storage.local_relation import local_rows
from tests.functional.dbt_project import DbtProject
from tests.functional.project_files import changes_model, history_model, write_files, write_settings
from tests.qlik_messages import NOON

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]

MESSAGES_MODEL = """\
from dbt_afterimage.messages import build_messages


def model(dbt, session):
    dbt.config(materialized="staging_log")
    return build_messages(dbt, session, dbt.source("{source}", "messages"))
"""


@dataclass(frozen=True)
class Message:
    """What is sent: text, bytes or an object that becomes JSON."""

    topic: str
    value: Any
    partition: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> bytes | None:
        if self.value is None or isinstance(self.value, bytes):
            return self.value
        text = self.value if isinstance(self.value, str) else json.dumps(self.value)
        return text.encode()


@dataclass
class MessagesProject:
    """The project, and where its messages are."""

    dbt: DbtProject
    spark: SparkSession
    table_format: str
    next_offset: dict[tuple[str, str, int], int] = field(default_factory=dict)
    batches: int = 0

    def land(self, source: str, messages: Iterable[Message], minutes: int = 0) -> None:
        """Append messages to the raw table of a source; offsets count on per partition."""
        name = f"{source}.messages"
        kinds = ", ".join(f"`{column}` {kind}" for column, kind in RAW_COLUMNS.items())
        self.spark.sql(f"create schema if not exists {source}")
        self.spark.sql(f"create table if not exists {name} ({kinds}) using {self.table_format}")
        self.batches += 1
        rows = []
        for message in messages:
            place = (source, message.topic, message.partition)
            offset = self.next_offset.get(place, 0)
            self.next_offset[place] = offset + 1
            headers = [(key, value.encode()) for key, value in message.headers.items()]
            at = NOON + timedelta(minutes=minutes)
            rows.append(
                (
                    message.topic,
                    message.partition,
                    offset,
                    None,
                    message.data,
                    headers or None,
                    NOON,
                    at,
                    str(self.batches),
                )
            )
        if rows:
            local_rows(self.spark, rows, kinds).coalesce(1).writeTo(name).append()

    def rows(self, table: str, columns: str, order: str = "1") -> list[tuple[Any, ...]]:
        """Rows of one of the project's tables."""
        query = f"select {columns} from {self.dbt.schema}.{table} order by {order}"
        return [tuple(row) for row in self.spark.sql(query).collect()]


def write_project(
    folder: Path,
    sources: Mapping[str, Mapping[str, Any]],
    tables: Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, str]]],
    staged_only: Collection[str] = (),
) -> None:
    """Write the project's files.

    Args:
        folder: where to.
        sources: name -> settings of the source.
        tables: name -> its source, its settings, its columns and their types.
        staged_only: tables without a change log.
    """
    declared = []
    files: dict[str, Any] = {}
    for source, settings in sources.items():
        own = [
            {
                "name": name,
                "config": {"meta": {"afterimage": dict(given)}},
                "columns": [{"name": c, "data_type": kind} for c, kind in columns.items()],
            }
            for name, (of_source, given, columns) in tables.items()
            if of_source == source
        ]
        declared.append(
            {
                "name": source,
                "config": {"meta": {"afterimage": {"system": "qlik_messages", **settings}}},
                "tables": [{"name": "messages"}, *own],
            }
        )
        files[f"{source}_messages.py"] = MESSAGES_MODEL.format(source=source)
        files[f"staging/{source}_schemas.sql"] = (
            f"{{{{ qlik_message_schemas(messages=ref('{source}_messages')) }}}}\n"
        )
    for name, (source, _, _) in tables.items():
        files[f"staging/stg_{name}.sql"] = (
            f"{{{{ stage_qlik_messages('{source}', '{name}', "
            f"messages=ref('{source}_messages')) }}}}\n"
        )
        if name not in staged_only:
            files |= {**changes_model(name, f"stg_{name}"), **history_model(name)}
    files["sources.yml"] = {"version": 2, "sources": declared}
    write_settings(folder)
    write_files(folder / "models", files)
