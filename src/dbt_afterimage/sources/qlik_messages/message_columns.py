"""Columns of the landed messages, and of the table of decoded ones."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_afterimage.sources.qlik_messages.json_form import COLUMN

RAW_COLUMNS = {
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key:string,value:binary>>",
    "timestamp": "timestamp",
    "landed_at": "timestamp",
    "landing_batch": "string",
}
"""A landed message: what Kafka says of it, when it was landed and in which append."""

MESSAGE_COLUMNS = {
    "kind": "string",
    "table_schema": "string",
    "table_name": "string",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "produced_at": "timestamp",
    "landed_at": "timestamp",
    "recorded_at": "timestamp",
    "arrival": "string",
    "schema_id": "string",
    "operation": "string",
    "change_seq": "string",
    "source_timestamp": "string",
    "stream_position": "string",
    "transaction_id": "string",
    "transaction_event": "bigint",
    "is_last_event": "boolean",
    "change_mask": "string",
    "column_mask": "string",
    "mask_columns": "array<string>",
    "image": "map<string,string>",
    "before": "map<string,string>",
    "has_before": "boolean",
    "load_id": "string",
    "loaded_at": "timestamp",
    "ended_by": "string",
    "last_offset": "bigint",
    "message_count": "bigint",
    "table_version": "bigint",
    "server_name": "string",
    "task_name": "string",
    "metadata_timestamp": "string",
    "columns": f"array<{COLUMN}>",
    "data_schema": "string",
    "reject_reason": "string",
    "reject_detail": "string",
    "raw_value": "string",
    "record_hash": "bigint",
}
"""A decoded message, or a run's record of a table's partition; see `kind` in the model's YAML."""

CHANGE, LOAD, METADATA = "change", "load", "metadata"
TOMBSTONE, REJECTED = "tombstone", "rejected"
# Records of runs: the last position of a table in a partition; part of a load; a complete load.
POSITION, LOAD_PART, LOAD_DONE = "position", "load_part", "load_done"


class RawMessagesError(ValueError):
    """The landed messages cannot be read; the text is meant for the user."""


def check_raw_columns(table: str, types: Mapping[str, str]) -> None:
    """Stop where the raw table lacks a column that is read, or has it with another type.

    Args:
        types: its columns and their types, as SQL.

    Raises:
        RawMessagesError: names the column.
    """
    for name, kind in RAW_COLUMNS.items():
        if name in ("landing_batch", "key"):
            continue
        if types.get(name) != kind:
            raise RawMessagesError(
                f"Source table {table}: the column `{name}` is {types.get(name, 'missing')}; it "
                f"must be {kind}. Fix: land the messages with `afterimage land kafka`, or read "
                "them through a view that has the columns "
                f"{', '.join(f'{column} {of}' for column, of in RAW_COLUMNS.items())}."
            )
