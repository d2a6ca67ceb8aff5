"""Proposes the tables whose changes are in landed Qlik messages, from sampled JSON messages."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dbt_afterimage.cli.commands.add_table.proposal import (
    KeyProposal,
    Proposal,
    SharedModel,
    SourceColumn,
    SourceTable,
    model_name,
)
from dbt_afterimage.cli.commands.add_table.raw_schema import RawTable
from dbt_afterimage.errors import AfterimageError

_RAW = {"topic", "partition", "offset", "value", "timestamp"}
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?")
_INTEGERS_BELOW = 2**63


class UnreadableMessagesError(AfterimageError):
    """Sampled messages do not show a table's columns."""


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
    return {name.lower() for name in table.names()} >= _RAW


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
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for value in values:
        message = (json_object(value) or {}).get("message")
        if not isinstance(message, dict) or not isinstance(message.get("lineage"), dict):
            continue
        lineage = message["lineage"]
        key = (str(lineage.get("schema")), str(lineage.get("table")))
        known = found.get(key)
        if known is None or _version(message) >= _version(known):
            found[key] = message
    return found


def propose(table: MessageTable, source: str, schema: str, prefix: str = "") -> Proposal:
    """The proposal for a table.

    Raises:
        UnreadableMessagesError: no sampled message is JSON with data.
    """
    name = prefix + table_name(table)
    notes: list[str] = []
    settings: dict[str, Any] = {}
    source_settings: dict[str, Any] = {"system": "qlik_messages"}
    if table.metadata is not None:
        source_settings |= {"table_from": "schema_id", "schemas_from": "metadata"}
        settings["message_table"] = table.metadata["lineage"]["table"]
        if table.qualifier:
            settings["table_schema"] = table.qualifier
        columns, key = _of_metadata(table.metadata)
        notes.append("columns, types and key are those of the newest metadata message")
    else:
        settings["message_table"] = table.name
        columns, key = _of_data(table, schema)
        notes.append(
            f"types follow from {len(table.data)} sampled messages: check them, above all decimals"
        )
    has_before_images = _has_before_images(table.data)
    if not has_before_images:
        settings["before_images"] = False
        notes.append("no sampled update has beforeData: field changes are derived from history")
    log = f"stg_{source}__{model_name(table.messages.name)}"
    entry = table_name(table)
    return Proposal(
        table=name,
        schema=schema,
        source=source,
        source_settings=source_settings,
        system="qlik_messages",
        tables=(
            SourceTable(
                entry,
                f"One row per row of {table.name} at the source. Not landed.",
                settings,
                columns,
            ),
        ),
        shared_tables=(
            SourceTable(
                table.messages.name, table.messages.comment or "One row per landed message."
            ),
        ),
        shared_model=SharedModel(
            name=log,
            module="dbt_afterimage.messages",
            builder="build_messages",
            arguments=(f'dbt.source("{source}", "{table.messages.name}")',),
            description="One row per message of all tables, decoded once.",
        ),
        staging=f"stg_qlik_messages__{name}",
        staging_macro="stage_qlik_messages",
        staging_arguments=(f"'{source}'", f"'{entry}'", f"messages=ref('{log}')"),
        key=key,
        key_columns=tuple(column.name for column in columns),
        has_before_images=has_before_images,
        notes=tuple(notes),
    )


def _of_metadata(message: Mapping[str, Any]) -> tuple[tuple[SourceColumn, ...], KeyProposal]:
    listed = message["tableStructure"]["tableColumns"]
    ordered = sorted(listed, key=lambda name: listed[name]["ordinal"])
    in_key = [name for name in ordered if listed[name].get("primaryKeyPosition")]
    in_key.sort(key=lambda name: listed[name]["primaryKeyPosition"])
    columns = tuple(
        SourceColumn(name, "Key." if name in in_key else f"Column {name} of the source.")
        for name in ordered
    )
    reason = "the metadata message names it" if in_key else "the metadata message names none"
    return columns, KeyProposal(tuple(in_key), reason, is_sure=bool(in_key))


def _of_data(table: MessageTable, schema: str) -> tuple[tuple[SourceColumn, ...], KeyProposal]:
    values: dict[str, list[Any]] = {}
    for text in table.data:
        for image in _images(text):
            for name, value in image.items():
                values.setdefault(name, []).append(value)
    if not values:
        raise UnreadableMessagesError(
            f"{schema}.{table.messages.name}: none of {len(table.data)} sampled messages of "
            f"{table.name} is JSON with data; columns of Avro are not read here. Fix: declare the "
            "table by hand (docs/kafka.md), with `schemas_from: registry` or `metadata`."
        )
    names = list(values)
    deletes = [
        image for text in table.data if _operation(text) == "DELETE" for image in _images(text)
    ]
    only = {frozenset(n for n, v in image.items() if v is not None) for image in deletes}
    found: tuple[str, ...] = ()
    if len(only) == 1 and len(deletes) > 1 and len(next(iter(only))) < len(names):
        found = tuple(name for name in names if name in next(iter(only)))
    reason = "deletes have these columns only" if found else "messages do not name it"
    likely = found or tuple(name for name in names[:1])
    columns = tuple(
        SourceColumn(name, f"Column {name} of the source.", _type(listed))
        for name, listed in values.items()
    )
    return columns, KeyProposal(likely, reason, is_sure=bool(found))


def _type(values: Sequence[Any]) -> str:
    """The Spark type of JSON values; text where nothing else fits all of them."""
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, bool) for value in present):
        return "boolean"
    if present and all(type(value) is int and abs(value) < _INTEGERS_BELOW for value in present):
        return "bigint"
    texts = [value for value in present if isinstance(value, str)]
    if texts and len(texts) == len(present):
        if all(_DATE.fullmatch(text) for text in texts):
            return "date"
        if all(_TIMESTAMP.fullmatch(text) for text in texts):
            return "timestamp"
    return "string"


def json_object(value: str) -> dict[str, Any] | None:
    """A message as a JSON object; None for anything else."""
    try:
        found = json.loads(value)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _body(value: str) -> Mapping[str, Any]:
    """The message itself, out of its envelope."""
    parsed = json_object(value) or {}
    inner = parsed.get("message")
    return inner if isinstance(inner, dict) else parsed


def _operation(value: str) -> str:
    headers = _body(value).get("headers")
    return str(headers.get("operation")) if isinstance(headers, dict) else ""


def _images(value: str) -> list[dict[str, Any]]:
    body = _body(value)
    return [image for name in ("data", "beforeData") if isinstance(image := body.get(name), dict)]


def _has_before_images(values: Iterable[str]) -> bool:
    updates = [_body(value) for value in values if _operation(value) == "UPDATE"]
    return not updates or any(isinstance(body.get("beforeData"), dict) for body in updates)


def _version(message: Mapping[str, Any]) -> int:
    return int(message["lineage"].get("tableVersion") or 0)
