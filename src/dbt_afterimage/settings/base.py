"""Settings that a table of any system has."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Literal, TypedDict

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from dbt_afterimage.sequence import ChangeSequence, duration_seconds
from dbt_afterimage.settings.timestamps import is_timestamp

OPTIONAL_COLUMNS = {
    "stream_position": "string",
    "transaction_last_event": "boolean",
    "source_user": "string",
}
"""Columns of the change-event contract that only some systems have, with their types.

Each system names its own, and a setting may add others. Staging models yield them, change logs and
rejected records keep them, and history does where `history_metadata` says so.
"""


class ColumnEntry(TypedDict):
    """A column as the source's YAML declares it."""

    name: str
    data_type: str | None


class BaseEntry(TypedDict):
    """The settings of `Base`, validated."""

    kind: Literal["frozen", "live"]
    load_id: str
    position: str | None
    loaded_at: str | None


class SourceSettings(TypedDict, total=False):
    """The validated settings of a source table, as far as Python reads them; macros read them all.

    Those of `TableSettings`, those of the table's system, and what follows from them.

    Attributes:
        source_table: its name for messages.
        change_seq_form: in words.
        declared_columns: in YAML order.
        data_columns: those of them that are not the tool's.
        optional_columns: those of the change-event contract that the table has, with their types.
        pairs_before_images: staging may yield before images.
        has_halves: staging joins parts of a change, and shows one without the rest as an `N`.
        without_before_images: the setting that says the source stores none.
    """

    system: str
    key: list[str]
    before_images: bool
    track: list[str]
    ignore: list[str]
    base: BaseEntry | None
    look_back: Any
    arrival_look_back: int
    on_reject: Literal["quarantine", "fail"]
    on_gap: Literal["fail", "warn", "ignore"]
    keep_deleted: bool
    auto_compact: bool
    history_metadata: list[str]
    task: str | None
    landing_delay: str | None

    framing: str
    char_encoding: str
    table_from: Literal["topic", "schema_id", "header", "message"]
    table_header: str | None
    schemas_from: Literal["columns", "metadata", "registry"]
    schema_registry: str | None
    mask_byte_order: Literal["auto", "msb_first", "lsb_first"]
    message_table: str | None
    table_schema: str | None
    json_text: str | None
    load_id: str | None

    source_table: str
    change_seq_form: str
    declared_columns: list[ColumnEntry]
    data_columns: list[ColumnEntry]
    optional_columns: dict[str, str]
    pairs_before_images: bool
    has_halves: bool
    without_before_images: str


def _duration(value: Any) -> str:
    duration_seconds(str(value))
    return str(value)


Duration = Annotated[str, BeforeValidator(_duration)]
"""A setting such as `15 minutes`."""


class Base(BaseModel):
    """The full load that a table of its own holds."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["frozen", "live"]
    load_id: str = "initial"
    position: str | None = None
    loaded_at: str | None = None

    @field_validator("kind", mode="before")
    @classmethod
    def _is_answered(cls, value: Any) -> Any:
        if isinstance(value, str) and "?" in value:
            raise ValueError(
                "`add-table` asks, and only you know. Allowed: frozen, if nothing changes the base "
                "table after its full load; live, if the replication tool keeps it up to date"
            )
        return value

    @field_validator("load_id", "position", "loaded_at", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        # YAML reads 2026-03-01 as a date and 35 digits as a number. A time is written with a `T`,
        # as dbt does when it saves its manifest, so that a load_id is the same in every run.
        if isinstance(value, date | datetime):
            return value.isoformat()
        return value if value is None else str(value)

    @field_validator("position")
    @classmethod
    def _is_position(cls, value: str | None, info: ValidationInfo) -> str | None:
        # whose table it is comes with the validation: the form differs by system
        form: type[ChangeSequence] = (info.context or {})["positions"]
        if value is not None and not form.is_form_of(value):
            raise ValueError(
                f"Allowed: {form.form()}, a change_seq of the source, in quotes, "
                "since YAML would read a number"
            )
        return value

    @field_validator("loaded_at")
    @classmethod
    def _is_timestamp(cls, value: str | None) -> str | None:
        if value is not None and not is_timestamp(value):
            raise ValueError("Allowed: a date or a time in UTC, such as 2026-03-02 07:30:00")
        return value


class TableSettings(BaseModel):
    """Settings of a table of any system, and the properties of its system that others need.

    Attributes:
        positions: the form of the system's change_seq.
        column_settings: settings that name columns which the table must have.
        optional_columns: those of the change-event contract that the system has.
        has_own_loads: full loads come among the changes, with a load_id and a position each.
        positions_per_table: a change_seq counts the changes of one table, so tables have no common
            order.
        has_halves: a change may come in parts that staging joins; without the rest it is an `N`.
    """

    model_config = ConfigDict(extra="forbid")
    positions: ClassVar[type[ChangeSequence]]
    column_settings: ClassVar[tuple[str, ...]] = ("key", "track", "ignore")
    optional_columns: ClassVar[tuple[str, ...]] = ()
    has_own_loads: ClassVar[bool] = False
    positions_per_table: ClassVar[bool] = False
    has_halves: ClassVar[bool] = False

    system: str
    key: list[str] = Field(default_factory=list)
    before_images: bool = True
    track: list[str] = Field(default_factory=list)
    ignore: list[str] = Field(default_factory=list)
    base: Base | None = None
    look_back: Any
    arrival_look_back: int = Field(default=1, ge=0)
    on_reject: Literal["quarantine", "fail"] = "quarantine"
    on_gap: Literal["fail", "warn", "ignore"] = "warn"
    keep_deleted: bool = False
    auto_compact: bool = True
    history_metadata: list[str] = Field(default_factory=list)
    task: str | None = Field(default=None, min_length=1)
    landing_delay: str | None = None

    @abstractmethod
    def is_own_column(self, name: str) -> bool:
        """Whether a column of the raw table is one that the tool adds to the source's."""

    def metadata_columns(self) -> dict[str, str]:
        """The optional columns of the contract that the table has, with their types."""
        return {name: OPTIONAL_COLUMNS[name] for name in self.optional_columns}

    def pairs_before_images(self) -> bool:
        """Whether a before image may come as a record of its own, or staging yields one."""
        return self.before_images

    def without_before_images(self) -> str:
        """The setting that says the source stores no before images."""
        return "before_images: false"

    def added_columns(self) -> list[ColumnEntry]:
        """Data columns that staging adds to those of the raw table, as {name, data_type}."""
        return []

    def lists_all_columns(self, declared: Sequence[str]) -> bool:
        """Whether declared columns are all that the table has, and not some whose type differs.

        A list with the tool's own columns is one of all columns.
        """
        return any(self.is_own_column(name) for name in declared)

    @field_validator("landing_delay", mode="before")
    @classmethod
    def _is_delay(cls, value: Any) -> str | None:
        return value if value is None else _duration(value)

    @field_validator("*")
    @classmethod
    def _names_each_once(cls, value: Any) -> Any:
        for column in value if isinstance(value, list) else []:
            if value.count(column) > 1:
                raise ValueError(f"It names {column!r} twice")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> TableSettings:
        if self.track and self.ignore:
            raise ValueError(
                f"`track` is {self.track!r} and `ignore` is {self.ignore!r}; the two exclude each "
                "other. Fix: keep one of them"
            )
        for column in self.ignore:
            if column in self.key:
                raise ValueError(
                    f"`ignore` names the key column {column!r}; a key is always tracked. "
                    "Fix: take it out of `ignore`"
                )
        for column in self.history_metadata:
            if column not in self.metadata_columns():
                allowed = ", ".join(self.metadata_columns()) or "no column, the system has none"
                raise ValueError(
                    f"`history_metadata` names {column!r}. Allowed: {allowed}. "
                    "Fix: correct the name, or take it out of `history_metadata`"
                )
        for name in ("task", "landing_delay"):
            if getattr(self, name) and self.positions_per_table:
                raise ValueError(
                    f"`{name}` is {getattr(self, name)!r}, but {self.system} counts the changes of "
                    "each table by itself, so its tables have no common order. "
                    f"Fix: remove `{name}`"
                )
        if self.landing_delay and not self.task:
            raise ValueError(
                f"`landing_delay` is {self.landing_delay!r} and there is no `task`; a cut is of "
                "all tables of a replication task. Fix: set `task` to its name, or remove "
                "`landing_delay`"
            )
        if self.base and self.base.kind == "live" and not self.before_images:
            raise ValueError(
                "`base.kind` is 'live' and `before_images` is false; a live base needs before "
                "images that reconstruct the rows of the load. Fix: switch before images on at "
                "the source, or use a frozen base"
            )
        return self
