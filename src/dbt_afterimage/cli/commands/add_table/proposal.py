"""The proposal of `add-table` for a table: all that its files need."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LOAD_WITHOUT_TIME = (
    "the time of the full load is not in the data: set base.loaded_at, or history begins in 1900"
)


def unanswered_base() -> dict[str, str]:
    """`base` with a question as its kind, at which dbt stops: a wrong one makes a wrong history."""
    return {"kind": "frozen or live? does anything change the base table after its load"}


@dataclass(frozen=True)
class KeyProposal:
    """A proposed key.

    Attributes:
        columns: empty without evidence for any column.
        reason: the evidence, for the user.
        is_sure: False: the user is prompted, or must give `--key`.
    """

    columns: tuple[str, ...]
    reason: str
    is_sure: bool


@dataclass(frozen=True)
class SourceColumn:
    """A column as the source YAML declares it; `data_type` None where the raw type is right."""

    name: str
    description: str
    data_type: str | None = None


@dataclass(frozen=True)
class SourceTable:
    """A table of the source YAML with its settings (`meta.afterimage`)."""

    name: str
    description: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[SourceColumn, ...] = ()
    identifier: str | None = None


@dataclass(frozen=True)
class SharedModel:
    """A model that decodes for all tables of a source: messages, or a transaction log.

    Attributes:
        name: the model's name.
        builder: `build_messages` or `build_log`.
        module: the module of `dbt_afterimage` that has it.
        arguments: of the builder, as Python source.
        description: of the model.
    """

    name: str
    module: str
    builder: str
    arguments: tuple[str, ...]
    description: str


@dataclass(frozen=True)
class Proposal:
    """All that the files of one table need.

    Attributes:
        table: name of the table in model names.
        schema: the raw schema.
        source: name of the dbt source, and of the folders.
        source_settings: settings of the source, for all its tables.
        system: the source system.
        tables: entries of the source that belong to this table alone.
        shared_tables: entries that all tables of the source share.
        shared_model: the model that decodes for all tables of the source.
        staging: the staging model's name.
        staging_macro: the macro that it calls.
        staging_arguments: arguments of the macro, as Jinja source.
        key: the proposed key.
        key_columns: the columns that a key may have.
        has_before_images: whether the source stores them.
        has_mask: whether the change table stores a change mask.
        notes: what the user should know or check.
    """

    table: str
    schema: str
    source: str
    source_settings: Mapping[str, Any]
    system: str
    tables: tuple[SourceTable, ...]
    staging: str
    staging_macro: str
    staging_arguments: tuple[str, ...]
    key: KeyProposal
    key_columns: tuple[str, ...]
    has_before_images: bool = True
    has_mask: bool = False
    shared_tables: tuple[SourceTable, ...] = ()
    shared_model: SharedModel | None = None
    notes: tuple[str, ...] = ()


def model_name(raw: str) -> str:
    """A raw table's name as a part of model names: `CDC_Work-Order` -> `cdc_work_order`."""
    return re.sub(r"\W+", "_", raw).strip("_").lower()
