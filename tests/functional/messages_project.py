"""A dbt project over landed Qlik messages: sources that differ in where table and schema stand.

`raw_topics`    the table is the topic, its columns are those of the YAML
`raw_ids`       table and columns come from metadata messages
`raw_registry`  Avro with schemas in a folder, the table is in a record header
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from dbt_afterimage.messages.columns import RAW_COLUMNS
from tests.functional.dbt_project import DbtProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
NOON = datetime(2026, 3, 2, 12, tzinfo=timezone.utc)

MESSAGES_MODEL = """\
from dbt_afterimage.messages import build_messages


def model(dbt, session):
    dbt.config(materialized="staging_log")
    return build_messages(dbt, session, dbt.source("{source}", "messages"))
"""
CHANGES_MODEL = """\
from dbt_afterimage.changes import build_changes


def model(dbt, session):
    dbt.config(materialized="change_log")
    return build_changes(dbt, session, dbt.ref("{staging}"))
"""


def seq(number: int) -> str:
    return f"2026030212000000{number:019d}"


def change(
    operation: str,
    number: int,
    data: dict[str, Any] | None,
    before: dict[str, Any] | None = None,
    **headers: Any,
) -> dict[str, Any]:
    """A bare message."""
    return {
        "data": data,
        "beforeData": before,
        "headers": {
            "operation": operation,
            "changeSequence": seq(number),
            "timestamp": "2026-03-02T11:59:59.500",
            "streamPosition": "0",
            "transactionId": f"t{number}",
            "changeMask": None,
            "columnMask": None,
            "transactionEventCounter": 1,
            "transactionLastEvent": True,
            **headers,
        },
    }


def refresh(data: dict[str, Any]) -> dict[str, Any]:
    message = change("REFRESH", 0, data)
    empty = {"changeSequence": "", "timestamp": "", "transactionId": ""}
    counters = {"transactionEventCounter": None, "transactionLastEvent": None}
    return {**message, "headers": {**message["headers"], **empty, **counters}}


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
            self.spark.createDataFrame(rows, kinds).coalesce(1).writeTo(name).append()

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
    project = yaml.safe_load((ROOT / "dbt_project.yml").read_text(encoding="utf-8"))
    _write_yaml(
        folder / "dbt_project.yml",
        {
            "name": "messages",
            "profile": "afterimage",
            "macro-paths": [str(ROOT / "macros")],
            "vars": project["vars"],
            "on-run-start": project["on-run-start"],
            "flags": {"send_anonymous_usage_stats": False},
            "models": {
                "+persist_docs": {"relation": True, "columns": True},
                "messages": {"staging": {"+materialized": "staging_view"}},
            },
        },
    )
    models = folder / "models"
    (models / "staging").mkdir(parents=True)
    declared = []
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
        (models / f"{source}_messages.py").write_text(
            MESSAGES_MODEL.format(source=source), encoding="utf-8"
        )
        (models / "staging" / f"{source}_schemas.sql").write_text(
            f"{{{{ qlik_message_schemas(messages=ref('{source}_messages')) }}}}\n",
            encoding="utf-8",
        )
    _write_yaml(models / "sources.yml", {"version": 2, "sources": declared})
    for name, (source, _, _) in tables.items():
        staging = f"stg_{name}"
        (models / "staging" / f"{staging}.sql").write_text(
            f"{{{{ stage_qlik_messages('{source}', '{name}', "
            f"messages=ref('{source}_messages')) }}}}\n",
            encoding="utf-8",
        )
        if name not in staged_only:
            write_marts(models, name, staging)


def write_marts(models: Path, table: str, staging: str) -> None:
    """The models of a table right of its staging view."""
    changes = f"{table}_changes"
    (models / f"{changes}.py").write_text(CHANGES_MODEL.format(staging=staging), encoding="utf-8")
    conserved = {"conserved": {"arguments": {"staging": f"ref('{staging}')"}}}
    _write_yaml(
        models / f"{changes}.yml",
        {"version": 2, "models": [{"name": changes, "data_tests": [conserved]}]},
    )
    (models / f"{table}_history.sql").write_text(
        f"{{{{ history(ref('{changes}')) }}}}\n", encoding="utf-8"
    )


def _write_yaml(path: Path, content: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
