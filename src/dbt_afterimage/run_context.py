"""The tables, settings and vars of a run of one change log or decoded log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from dbt_afterimage.settings import SourceSettings

NOT_READ: Mapping[str, Any] = MappingProxyType({})
"""`raw_tables` before the versions are read."""


@dataclass(frozen=True)
class RunContext:
    """Values that only dbt knows; the macro `_run_context` hands them to the Python model.

    Attributes:
        model: the table's name in `afterimage_progress`, and in messages.
        log: the table that the run appends to.
        progress: the progress table.
        file_format: `iceberg` or `delta`.
        settings: validated settings of the source table, see `settings.parse_settings`.
        selected_as: the model's name for dbt's `--select`; `model` may have a schema and an alias.
        erasures: the table of erasures, which may not exist.
        rejected: the table of rejected records; "" for a decoded log, which has none.
        upstream: the relations that the model reads, down to raw tables.
        raw_tables: version of each raw table when the run began, see `raw_version.raw_tables`; None
            where some raw table has none.
        started_at: when the command began, ISO text in UTC: before any raw table was read.
        beginning_of_time: `valid_from` of a full load whose time is not known, as text.
        backfill_from: a change_seq or a time; None where the var is not set.
        rebuild_changes: the log is built again from the raw tables.
        accept_gap: the run continues where `on_gap` would stop or warn.
        complete_load: tables of Qlik messages whose full load counts as complete.
        tables: of a decoded log of messages: the tables it has, by settings.
        message_tables: all tables of messages in the project, to check `complete_load`.
        is_preview: a reader asks what a run would do; nothing is altered or written.
    """

    model: str
    log: str
    progress: str
    file_format: str
    settings: SourceSettings
    selected_as: str = ""
    erasures: str = ""
    rejected: str = ""
    upstream: Sequence[str] = ()
    raw_tables: Mapping[str, Any] | None = field(default_factory=lambda: NOT_READ)
    started_at: str | None = None
    beginning_of_time: str = "1900-01-01 00:00:00"
    backfill_from: str | None = None
    rebuild_changes: bool = False
    accept_gap: bool = False
    complete_load: Any = ()
    tables: Sequence[Any] = ()
    message_tables: Sequence[Any] = ()
    is_preview: bool = False

    @property
    def overrides_reading(self) -> bool:
        """A var of this run may make it read fewer records than all that a first run would."""
        return bool(self.backfill_from or self.accept_gap)
