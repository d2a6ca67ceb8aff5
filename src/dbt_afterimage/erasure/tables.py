"""The tables that hold data of one source table, as the macro `erasable_tables` hands them over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dbt_afterimage.erased.erasures import ErasuresTable
from dbt_afterimage.settings import SourceSettings


@dataclass(frozen=True)
class Mart:
    """A mart of the source table.

    Attributes:
        kind: its materialization, or that of a feed.
        model: the model's alias.
        name: its name in `afterimage_progress`.
        history: its input, None for a history itself.
        select: the statement that yields all of its rows, None for a history and its feed.
    """

    kind: Literal["scd2_history", "history_feed", "current_state", "field_changes"]
    model: str
    name: str
    table: str
    history: str | None
    select: str | None


@dataclass(frozen=True)
class DecodedLog:
    """A table of decoded records, of several source tables, that a change log is read from.

    Attributes:
        name: its name in `afterimage_progress`.
        staging: the staging view of the source table.
        records: condition for the records of the source table.
    """

    name: str
    table: str
    staging: str
    records: str


@dataclass(frozen=True)
class ErasableTables:
    """All tables of a source table.

    Attributes:
        change_log: name of the change log in `afterimage_progress`.
        selected_as: its model's name for dbt's `--select`.
        rejected: the rejected records; the table may not exist.
        erasures: the table of erasures; it may not exist.
        table_format: `iceberg` or `delta`.
        beginning_of_time: `valid_from` of a load without a time.
        is_published: whether readers see the marts at the tag of a publication.
        marts: the marts that were built; each after its inputs.
        decoded: decoded logs upstream.
        raw_tables: raw tables upstream, which are not erased.
        downstream: models and snapshots of the project downstream of these, which are not erased.
    """

    change_log: str
    selected_as: str
    log: str
    rejected: str
    progress: str
    erasures: str
    table_format: str
    settings: SourceSettings
    data_columns: Sequence[str]
    beginning_of_time: str
    is_published: bool
    marts: Sequence[Mart]
    decoded: Sequence[DecodedLog]
    raw_tables: Sequence[str]
    downstream: Sequence[str]

    @classmethod
    def of(cls, handed_over: Mapping[str, Any]) -> ErasableTables:
        """From what the macro has handed over."""
        return cls(
            **{
                **handed_over,
                "marts": [Mart(**mart) for mart in handed_over["marts"]],
                "decoded": [DecodedLog(**log) for log in handed_over["decoded"]],
            }
        )

    @property
    def key(self) -> list[str]:
        """The key columns."""
        return list(self.settings["key"])

    @property
    def erasures_table(self) -> ErasuresTable:
        """The table of erasures, with what it takes to check it."""
        return ErasuresTable(self.erasures, self.table_format, self.progress)

    @property
    def source_table(self) -> str:
        """The source table, for messages."""
        return str(self.settings["source_table"])

    def made_from(self, mart: Mart) -> str:
        """The table whose new rows a mart applies: the log, or a history."""
        is_by_images = mart.kind == "field_changes" and self.settings["before_images"]
        return self.log if is_by_images or mart.history is None else mart.history
