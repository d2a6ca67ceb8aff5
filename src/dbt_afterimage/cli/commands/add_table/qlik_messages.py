"""Proposes the tables whose changes are in landed Qlik messages, from sampled JSON messages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dbt_afterimage.cli.commands.add_table.keys import agreed
from dbt_afterimage.cli.commands.add_table.message_tables import (
    MessageTable,
    json_object,
    table_name,
    values_by_column,
)
from dbt_afterimage.cli.commands.add_table.proposal import (
    KeyProposal,
    Proposal,
    SharedModel,
    SourceColumn,
    SourceTable,
)
from dbt_afterimage.cli.support.raw_schema.schema import model_name
from dbt_afterimage.errors import AfterimageError

SYSTEM = "qlik_messages"
_TYPES = {
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "timestamp": re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?"),
}
_INTEGERS_BELOW = 2**63


class UnreadableMessagesError(AfterimageError):
    """Sampled messages do not show a table's columns."""


def propose(table: MessageTable, schema: str, source: str) -> Proposal:
    """The proposal for a table.

    Raises:
        UnreadableMessagesError: no sampled message is JSON with data.
    """
    source_settings: dict[str, Any] = {}
    if table.metadata is not None:
        source_settings = {"table_from": "schema_id", "schemas_from": "metadata"}
        settings = {"message_table": table.metadata["lineage"]["table"]}
        if table.qualifier:
            settings["table_schema"] = table.qualifier
        columns, key = _of_metadata(table.metadata)
        note = "columns, types and key are those of the newest metadata message"
    else:
        settings = {"message_table": table.name}
        columns, key = _of_data(table, schema)
        note = (
            f"types follow from {len(table.data)} sampled messages: check them, above all decimals"
        )
    updates = [_body(value) for value in table.data if _operation(value) == "UPDATE"]
    has_before_images = not updates or any(
        isinstance(body.get("beforeData"), dict) for body in updates
    )
    notes = [note]
    if not has_before_images:
        settings["before_images"] = False
        notes.append("no sampled update has beforeData: field changes are derived from history")
    entry, raw = table_name(table), table.messages
    log = f"stg_{source}__{model_name(raw.name)}"
    text = f"One row per row of {table.name} at the source. Not landed."
    return Proposal(
        SYSTEM,
        schema,
        source,
        entry,
        SourceTable(entry, text, settings, columns),
        key,
        [column.name for column in columns],
        notes,
        arguments=[f"messages=ref('{log}')"],
        has_before_images=has_before_images,
        source_settings=source_settings,
        shared_tables=(SourceTable(raw.name, raw.comment or "One row per landed message."),),
        shared_model=SharedModel(
            name=log,
            module="dbt_afterimage.messages",
            builder="build_messages",
            arguments=(f'dbt.source("{source}", "{raw.name}")',),
            description="One row per message of all tables, decoded once.",
        ),
    )


def _of_metadata(message: Mapping[str, Any]) -> tuple[tuple[SourceColumn, ...], KeyProposal]:
    listed = message["tableStructure"]["tableColumns"]
    ordered = sorted(listed, key=lambda name: listed[name]["ordinal"])
    in_key = [name for name in ordered if listed[name].get("primaryKeyPosition")]
    in_key.sort(key=lambda name: listed[name]["primaryKeyPosition"])
    columns = tuple(SourceColumn(name, "Key." if name in in_key else "") for name in ordered)
    reason = f"the metadata message names {'it' if in_key else 'none'}"
    return columns, KeyProposal(tuple(in_key), reason, is_sure=bool(in_key))


def _of_data(table: MessageTable, schema: str) -> tuple[tuple[SourceColumn, ...], KeyProposal]:
    values = values_by_column(image for text in table.data for image in _images(text))
    if not values:
        raise UnreadableMessagesError(
            f"{schema}.{table.messages.name}: none of {len(table.data)} sampled messages of "
            f"{table.name} is JSON with data; columns of Avro are not read here. Fix: declare the "
            "table by hand (docs/kafka.md), with `schemas_from: registry` or `metadata`."
        )
    names = list(values)
    deletes = [
        {name for name, value in image.items() if value is not None}
        for text in table.data
        if _operation(text) == "DELETE"
        for image in _images(text)
    ]
    found = agreed(deletes, names)
    reason = "deletes have these columns only" if found else "messages do not name it"
    columns = tuple(SourceColumn(name, data_type=_type(values[name])) for name in names)
    return columns, KeyProposal(found or tuple(names[:1]), reason, is_sure=bool(found))


def _type(values: Sequence[Any]) -> str:
    """The Spark type of JSON values; text where nothing else fits all of them."""
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return "boolean"
    if kinds == {int} and all(abs(value) < _INTEGERS_BELOW for value in values):
        return "bigint"
    fitting = (
        kind for kind, form in _TYPES.items() if kinds == {str} and all(map(form.fullmatch, values))
    )
    return next(fitting, "string")


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
