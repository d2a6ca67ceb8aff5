"""Names of the change-event contract: what a staging model yields and what the change log adds."""

from __future__ import annotations

from collections.abc import Collection, Mapping

# Columns of every staging model, in order; all others are optional columns
# (settings/base.py), which follow `transaction_event`, or data columns. Two may be missing:
# `partner_may_follow`, where updates come in two records (NULL says the same), and `ends_load`,
# where a full load is whole as soon as one of its rows is there.
STAGED_COLUMNS = (
    "change_seq",
    "change_oper",
    "changed_at",
    "source_timestamp",
    "transaction_id",
    "transaction_event",
    "declared_changed_columns",
    "known_columns",
    "partner_may_follow",
    "truncate_scope",
    "load_id",
    "ends_load",
    "arrival",
    "reject_reason",
    "record_hash",
    "raw_record",
)

# Columns of the change log besides the data columns and `before`, with their types. They come
# first: table formats keep statistics for the first columns only, and readers filter by these.
LOG_COLUMNS = {
    "change_seq": "string",
    "change_oper": "string",
    "changed_at": "timestamp",
    "recorded_at": "timestamp",
    "change_date": "date",
    "source_timestamp": "timestamp",
    "transaction_id": "string",
    "transaction_event": "bigint",
    "declared_changed_columns": "array<string>",
    "known_columns": "array<string>",
    "before_known_columns": "array<string>",
    "truncate_scope": "map<string,string>",
    "load_id": "string",
    "load_rows": "bigint",
    "record_hash": "bigint",
    "before_record_hash": "bigint",
}

REJECTED_COLUMNS = {
    "change_seq": "string",
    "change_oper": "string",
    "record_key": "string",
    "reject_reason": "string",
    "record_hash": "bigint",
    "raw_record": "string",
    "recorded_at": "timestamp",
    "resolved_at": "timestamp",
}

REJECTED_DESCRIPTIONS = {
    "change_seq": "Position of the record, as far as it has one.",
    "change_oper": "Operation of the record, in the contract's letters.",
    "record_key": "Key of the record, as JSON. NULL if a part is missing, and after an erasure.",
    "reject_reason": "Rule that the record breaks, such as `null_key`.",
    "record_hash": "Hash of the raw record, by which the commands of `afterimage rejects` name it.",
    "raw_record": "The whole raw record, as JSON. NULL after an erasure.",
    "recorded_at": "Batch that rejected the record, UTC.",
    "resolved_at": "When the record was resolved, UTC: by a repaired copy, by a corrected setting "
    "or by hand. NULL if it is unresolved.",
}
"""Comments of the table of rejected records."""

# Added to staged rows on their way into the log.
_ADDED_COLUMNS = ({*LOG_COLUMNS} - {*STAGED_COLUMNS}) | {"before", "outcome"}

# Names that an optional column of a setting cannot have.
RESERVED_COLUMNS = frozenset({*STAGED_COLUMNS, *_ADDED_COLUMNS, *REJECTED_COLUMNS})


class ReservedColumnError(ValueError):
    """A data column has a name that the change log needs for itself."""


def data_columns(columns: list[str], optional: Collection[str] = ()) -> list[str]:
    """The data columns among the columns of a staging model, in their order.

    Args:
        optional: names of the optional columns of its system.

    Raises:
        ReservedColumnError: one of them would be taken for a column of the change log, and be lost.
    """
    data = [column for column in columns if column not in STAGED_COLUMNS and column not in optional]
    # Spark ignores case in column names
    taken = [column for column in data if column.lower() in _ADDED_COLUMNS]
    if taken:
        raise ReservedColumnError(
            f"A change log cannot hold the data column `{'`, `'.join(taken)}`: it has a column of "
            "that name itself. Fix: read the change table through a view that renames the column."
        )
    return data


def optional_columns(columns: list[str], optional: Mapping[str, str]) -> dict[str, str]:
    """The optional columns that a staging model yields, with their types.

    Args:
        columns: of the staging model; one of a project's own may lack some.
    """
    return {name: kind for name, kind in optional.items() if name in columns}


def changed_roles(
    logged: Collection[str], in_before: Collection[str], optional: Collection[str]
) -> list[str]:
    """Columns of a log that are metadata there and data by the settings, or the other way around.

    Args:
        in_before: columns of its struct `before`, which has all data columns.
    """
    data = {name.lower() for name in in_before}
    return [
        name
        for name in logged
        if name not in (*LOG_COLUMNS, "before") and (name in optional) == (name.lower() in data)
    ]
