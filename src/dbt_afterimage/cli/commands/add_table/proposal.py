"""The proposal of `add-table` for a table: all that its files need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from dbt_afterimage.cli.support.raw_schema.schema import RawTable

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


@dataclass(frozen=True)
class Found:
    """A table of a source system whose changes a raw schema holds.

    Attributes:
        system: the system's name in settings.
        name: as the user may name it: the raw change table, or the table at the source.
        table: its name in model names, and another name that the user may use.
        propose: samples it; takes the name of the dbt source and a prefix of model names.
        is_certain: no other table has such columns. False: it must be named, `--all` leaves it out.
    """

    system: str
    name: str
    table: str
    propose: Callable[[str, str], Proposal]
    is_certain: bool = True


# System -> name of a staging model, and its macro.
_STAGING = {
    "qlik_change_table": ("stg_qlik__{table}", "stage_qlik_change_table"),
    "qlik_messages": ("stg_qlik_messages__{table}", "stage_qlik_messages"),
    "openedge": ("stg_openedge__{table}", "stage_openedge"),
    "soliddb": ("stg_soliddb__{table}", "stage_soliddb_table"),
    "change_feed": ("stg_{source}__{table}", "stage_change_feed"),
}


def source_column(name: str, description: str = "", data_type: str | None = None) -> SourceColumn:
    """A column of the source."""
    return SourceColumn(name, description or f"Column {name} of the source.", data_type)


def proposal_of(
    system: str,
    schema: str,
    source: str,
    prefix: str,
    table: str,
    entry: SourceTable,
    key: KeyProposal,
    key_columns: Iterable[str],
    *,
    notes: Iterable[str],
    base: RawTable | None = None,
    arguments: Iterable[str] = (),
    no_before_images: str = "",
    before_images_setting: Mapping[str, Any] = MappingProxyType({"before_images": False}),
    source_settings: Mapping[str, Any] = MappingProxyType({}),
    **others: Any,
) -> Proposal:
    """The proposal for a table of a system.

    Args:
        table: the table's name in model names.
        entry: its entry in the source YAML, without what follows from the arguments below.
        base: its landed full load.
        arguments: of the staging macro, behind the source and the entry.
        no_before_images: a note of why updates have no before image; empty where they have.
        before_images_setting: the setting that says so.
        source_settings: of the source, but its system.
        others: further fields of the proposal.
    """
    name, macro = _STAGING[system]
    notes, settings = list(notes), dict(entry.settings)
    given = [f"'{source}'", f"'{entry.name}'", *arguments]
    bases = []
    if no_before_images:
        settings |= before_images_setting
        notes.append(no_before_images)
    if base:
        given.append(f"base='{base.name}'")
        settings["base"] = unanswered_base()
        notes.append(LOAD_WITHOUT_TIME)
        text = base.comment or f"One row per row of {table}: the full load."
        bases.append(SourceTable(base.name, text))
    return Proposal(
        table=prefix + table,
        schema=schema,
        source=source,
        source_settings={"system": system, **source_settings},
        system=system,
        tables=(replace(entry, settings=settings), *bases),
        staging=name.format(source=source, table=prefix + table),
        staging_macro=macro,
        staging_arguments=tuple(given),
        key=key,
        key_columns=tuple(key_columns),
        has_before_images=not no_before_images,
        notes=tuple(notes),
        **others,
    )
