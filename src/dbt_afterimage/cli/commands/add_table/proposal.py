"""The proposal of `add-table` for a table: all that its files need."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dbt_afterimage.cli.support.raw_schema.schema import RawTable


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
    comment: str = ""
    data_type: str | None = None

    @property
    def description(self) -> str:
        """Its comment; the linter wants a description of every column."""
        return self.comment or f"Column {self.name} of the source."


@dataclass(frozen=True)
class SourceTable:
    """A table of the source YAML with its settings (`meta.afterimage`)."""

    name: str
    description: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    columns: Sequence[SourceColumn] = ()
    identifier: str | None = None


@dataclass(frozen=True)
class SharedModel:
    """A model that decodes for all tables of a source: messages, or a transaction log.

    Attributes:
        builder: `build_messages` or `build_log`.
        module: the module of `dbt_afterimage` that has it.
        arguments: of the builder, as Python source.
    """

    name: str
    module: str
    builder: str
    arguments: tuple[str, ...]
    description: str


# System -> name of a staging model, and its macro.
_STAGING = {
    "qlik_change_table": ("stg_qlik__{table}", "stage_qlik_change_table"),
    "qlik_messages": ("stg_qlik_messages__{table}", "stage_qlik_messages"),
    "openedge": ("stg_openedge__{table}", "stage_openedge"),
    "soliddb": ("stg_soliddb__{table}", "stage_soliddb_table"),
    "change_feed": ("stg_{source}__{table}", "stage_change_feed"),
}


@dataclass(frozen=True)
class Proposal:
    """All that the files of one table need.

    Attributes:
        schema: the raw schema.
        source: name of the dbt source, and of the folders.
        table: name of the table in model names.
        entry: the table in the source YAML.
        key_columns: the columns that a key may have.
        notes: what the user should know or check.
        base: the landed full load in the source YAML.
        arguments: of the staging macro, as Jinja source, between the entry and the base.
        has_before_images: whether the source stores them.
        has_mask: whether the change table stores a change mask.
        source_settings: settings of the source, for all its tables, besides its system.
        shared_tables: entries that all tables of the source share.
        shared_model: the model that decodes for all tables of the source.
    """

    system: str
    schema: str
    source: str
    table: str
    entry: SourceTable
    key: KeyProposal
    key_columns: Sequence[str]
    notes: Sequence[str] = ()
    base: SourceTable | None = None
    arguments: Sequence[str] = ()
    has_before_images: bool = True
    has_mask: bool = False
    source_settings: Mapping[str, Any] = field(default_factory=dict)
    shared_tables: Sequence[SourceTable] = ()
    shared_model: SharedModel | None = None

    @property
    def raw_name(self) -> str:
        """The table as messages to the user name it."""
        return f"{self.schema}.{self.entry.name}"

    @property
    def tables(self) -> list[SourceTable]:
        """The entries of the source that belong to this table alone."""
        return [self.entry, *([self.base] if self.base else [])]

    @property
    def staging(self) -> str:
        """The staging model's name."""
        return _STAGING[self.system][0].format(source=self.source, table=self.table)

    @property
    def staging_call(self) -> list[str]:
        """The macro that the staging model calls, and its arguments as Jinja source."""
        base = [f"base='{self.base.name}'"] if self.base else []
        given = [f"'{self.source}'", f"'{self.entry.name}'", *self.arguments, *base]
        return [_STAGING[self.system][1], *given]


@dataclass(frozen=True)
class Found:
    """A table of a source system whose changes a raw schema holds.

    Attributes:
        system: the system's name in settings.
        name: as the user may name it: the raw change table, or the table at the source.
        table: its name in model names, and another name that the user may use.
        propose: samples it; takes the name of the dbt source.
        is_certain: no other table has such columns. False: it must be named, `--all` leaves it out.
    """

    system: str
    name: str
    table: str
    propose: Callable[[str], Proposal]
    is_certain: bool = True


def source_columns(
    table: RawTable, data: Collection[str], describe: Callable[[str], str]
) -> list[SourceColumn]:
    """All columns of a raw table.

    Args:
        data: its data columns.
        describe: the description of another column, for one without a comment.
    """
    return [
        SourceColumn(
            column.name, column.comment or ("" if column.name in data else describe(column.name))
        )
        for column in table.columns
    ]


def full_load(base: RawTable | None, table: str) -> SourceTable | None:
    """A landed full load in the source YAML.

    Args:
        table: the table's name in model names.
    """
    if base is None:
        return None
    return SourceTable(base.name, base.comment or f"One row per row of {table}: the full load.")
