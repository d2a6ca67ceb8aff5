"""Types of the columns that staging adds to a record, as Spark reads them in a schema."""

from __future__ import annotations

from dbt_afterimage.change_log.contract import STAGED_COLUMNS

_TYPES = {
    "changed_at": "timestamp",
    "source_timestamp": "timestamp",
    "transaction_event": "bigint",
    "declared_changed_columns": "array<string>",
    "known_columns": "array<string>",
    "truncate_scope": "map<string,string>",
    "record_hash": "bigint",
    "partner_may_follow": "boolean",
    "ends_load": "boolean",
}
STAGED_SCHEMA = ", ".join(f"{name} {_TYPES.get(name, 'string')}" for name in STAGED_COLUMNS)
