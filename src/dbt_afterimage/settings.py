"""The settings of a source table: declared once, in the `meta` of its YAML entry, and checked here.

dbt does not check `meta`, so a misspelt key would be silence. Every error names the table, the
setting, what it got, what is allowed, and the cure. README.md lists the settings.
"""

from __future__ import annotations

import difflib
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from dbt_afterimage.sequence import (
    OpenEdgePositions,
    Positions,
    QlikPositions,
    SolidDbPositions,
    duration_seconds,
)

# What Spark casts to a timestamp, of the many forms that Python's fromisoformat reads.
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)


OPTIONAL_COLUMNS = {
    "stream_position": "string",
    "transaction_last_event": "boolean",
    "source_user": "string",
}
"""Columns of the change-event contract that only some systems have, with their types.

Each system names its own. Its staging models yield them, change logs and rejected records keep
them, and history does where `history_metadata` says so.
"""


class SettingsError(ValueError):
    """A source table's settings cannot be used; the text is meant for the user."""


class Base(BaseModel):
    """The full load that a table of its own holds."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["frozen", "live"]
    load_id: str = "initial"
    position: str | None = None
    loaded_at: str | None = None

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
        form: type[Positions] = (info.context or {})["positions"]
        if value is not None and not form.is_form_of(value):
            raise ValueError(
                f"Allowed: {form.form()}, a change_seq of the source, in quotes, "
                "since YAML would read a number"
            )
        return value

    @field_validator("loaded_at")
    @classmethod
    def _is_timestamp(cls, value: str | None) -> str | None:
        if value is not None and not _is_timestamp(value):
            raise ValueError("Allowed: a date or a time in UTC, such as 2026-03-02 07:30:00")
        return value


class TableSettings(BaseModel):
    """Settings that a table of any system has, and what the rest of the project asks of a system.

    Attributes:
        positions: the form of the system's change_seq.
        column_settings: settings that name columns which the table must have.
        optional_columns: those of the change-event contract that the system has.
        has_own_loads: full loads come among the changes, with a load_id and a position each.
        without_before_images: the setting that says the source stores no before images.
    """

    model_config = ConfigDict(extra="forbid")
    positions: ClassVar[type[Positions]]
    column_settings: ClassVar[tuple[str, ...]] = ("key", "track", "ignore")
    optional_columns: ClassVar[tuple[str, ...]] = ()
    has_own_loads: ClassVar[bool] = False
    without_before_images: ClassVar[str] = "before_images: false"

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
    history_metadata: list[str] = Field(default_factory=list)

    @abstractmethod
    def is_own_column(self, name: str) -> bool:
        """Whether a column of the raw table is one that the tool adds to the source's."""

    @abstractmethod
    def carried_columns(self) -> list[str] | None:
        """Columns that a change may leave out, so that their last value is carried forward.

        None = any but the key.
        """

    def added_columns(self) -> list[dict[str, str]]:
        """Data columns that staging adds to those of the raw table, as {name, data_type}."""
        return []

    def lists_all_columns(self, declared: Sequence[str]) -> bool:
        """Whether declared columns are all that the table has, and not some whose type differs.

        A list with the tool's own columns is one of all columns.
        """
        return any(self.is_own_column(name) for name in declared)

    @field_validator("*")
    @classmethod
    def _names_each_once(cls, value: Any) -> Any:
        for column in value if isinstance(value, list) else []:
            if value.count(column) > 1:
                raise ValueError(f"It names {column!r} twice")
        return value

    @field_validator("history_metadata")
    @classmethod
    def _is_metadata(cls, value: list[str]) -> list[str]:
        for column in value:
            if column not in cls.optional_columns:
                allowed = ", ".join(cls.optional_columns) or "no column, the system has none"
                raise ValueError(f"It names {column!r}. Allowed: {allowed}")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> TableSettings:
        if self.track and self.ignore:
            raise ValueError(
                f"`track` is {self.track!r} and `ignore` is {self.ignore!r}; the two exclude each "
                "other. Cure: keep one of them"
            )
        for column in self.ignore:
            if column in self.key:
                raise ValueError(
                    f"`ignore` names the key column {column!r}; a key is always tracked. "
                    "Cure: take it out of `ignore`"
                )
        if self.base and self.base.kind == "live" and not self.before_images:
            raise ValueError(
                "`base.kind` is 'live' and `before_images` is false; a live base needs before "
                "images to be rewound to the time of the load. Cure: switch before images on at "
                "the source, or use a frozen base"
            )
        return self


class QlikChangeTableSettings(TableSettings):
    """Settings of a Qlik change table `<table>__ct`."""

    positions = QlikPositions
    # not `mask_columns`: a column that the table has no longer keeps its place there
    column_settings = (*TableSettings.column_settings, "lob_columns")
    optional_columns = ("stream_position",)

    system: Literal["qlik_change_table"]
    look_back: str = "15 minutes"
    lob_columns: list[str] = Field(default_factory=list)
    header_prefix: str = "header__"
    mask_byte_order: Literal["auto", "msb_first", "lsb_first"] = "auto"
    mask_first_data_bit: Literal["auto"] | Annotated[int, Field(ge=0, strict=True)] = "auto"
    mask_columns: list[str] = Field(default_factory=list)

    @field_validator("look_back", mode="before")
    @classmethod
    def _is_duration(cls, value: Any) -> str:
        duration_seconds(str(value))
        return str(value)

    def is_own_column(self, name: str) -> bool:
        """A header column: by its prefix, or without one by its name.

        The macro `_is_qlik_header` says the same of the columns of a raw table.
        """
        name, prefix = name.lower(), self.header_prefix.lower()
        if prefix and name.startswith(prefix):
            return True
        return name == "partition_name" or (not prefix and name in _QLIK_HEADERS)

    def carried_columns(self) -> list[str]:
        """Large objects: an update sends them only when it changed them."""
        return self.lob_columns


_QLIK_HEADERS = (
    "change_seq",
    "change_oper",
    "change_mask",
    "stream_position",
    "operation",
    "transaction_id",
    "timestamp",
)


class OpenEdgeSettings(TableSettings):
    """Settings of a Progress OpenEdge change table `CDC_<table>`."""

    positions = OpenEdgePositions
    optional_columns = ("source_user",)
    without_before_images = "policy_level: 2"
    column_settings = (*TableSettings.column_settings, "arrays")

    system: Literal["openedge"]
    look_back: int = Field(default=10_000, ge=0)
    table_number: int | None = Field(default=None, ge=0)
    policy_level: Literal[0, 1, 2, 3] = 3
    sparse_updates: bool = True
    extract: Literal["sql", "abl"] = "sql"
    first_user_field: int | None = Field(default=None, ge=0)
    operation_column: str | None = None
    other_policies: list[str] = Field(default_factory=list)
    mask_columns: list[str] = Field(default_factory=list)
    arrays: list[str] = Field(default_factory=list)
    partition_column: str | None = None
    tenant_column: str | None = None
    recid_column: str | None = None

    @field_validator("other_policies", mode="before")
    @classmethod
    def _ids_as_text(cls, value: Any) -> Any:
        # YAML reads an id of digits as a number
        if not isinstance(value, list):
            return value
        return [str(policy) if type(policy) is int else policy for policy in value]

    @model_validator(mode="before")
    @classmethod
    def _before_images_by_level(cls, given: Any) -> Any:
        level = given.get("policy_level", 3)
        stored = given.get("before_images", level == 3)
        if isinstance(stored, bool) and stored != (level == 3):
            raise ValueError(
                f"`before_images` is {str(stored).lower()} and `policy_level` is {level}; level 3 "
                "stores before images, and no other does. Cure: leave `before_images` out"
            )
        return {**given, "before_images": stored}

    def is_own_column(self, name: str) -> bool:
        """Every name of OpenEdge's begins with `_`, which a user's field may not.

        `changed_fields` is the usual name for the list that its SQL function yields.
        The macro `_is_openedge_column` says the same of the columns of a raw table.
        """
        return name.startswith("_") or name.lower() == "changed_fields"

    def carried_columns(self) -> list[str] | None:
        """An update may leave out what it did not change."""
        return None if self.sparse_updates else []

    def added_columns(self) -> list[dict[str, str]]:
        """What the tracking table knows of a row, where a setting gives it a name."""
        types = {
            self.partition_column: "int",
            self.tenant_column: "int",
            self.recid_column: "bigint",
        }
        return [{"name": name, "data_type": kind} for name, kind in types.items() if name]


class SolidDbSettings(TableSettings):
    """Settings of a table whose changes are in a solidDB transaction log, and of the log itself.

    `framing` and `char_encoding` concern the log: they are set on its source, which also sets them
    for all tables.
    """

    positions = SolidDbPositions

    system: Literal["soliddb"]
    # the log is in the order of commits: nothing comes late
    look_back: Annotated[int, Field(ge=0, le=0)] = 0
    capture_off: Literal["skip_all", "skip_deletes", "keep"] = "skip_all"
    framing: str = "length_prefixed"
    char_encoding: str = "utf-8"
    table_schema: str | None = None
    relation_id: int | None = Field(default=None, ge=1)

    @field_validator("framing")
    @classmethod
    def _is_framing(cls, value: str) -> str:
        # whether there is such a function is found where it is used: settings import nothing
        if value not in ("length_prefixed", "engine", "decoded") and "." not in value:
            raise ValueError(
                "Allowed: length_prefixed, engine, decoded, or the dotted name of a function, such "
                "as our_framing.cut"
            )
        return value

    @field_validator("char_encoding")
    @classmethod
    def _is_encoding(cls, value: str) -> str:
        try:
            # Python asks for the encoding only where there is a byte to decode
            b"    ".decode(value, errors="replace")
        except (LookupError, UnicodeError):
            raise ValueError(
                "Allowed: an encoding that Python knows, such as utf-8 or latin-1"
            ) from None
        return value

    def is_own_column(self, name: str) -> bool:
        """No column: a table's rows are in the log, and its source entry declares its own."""
        return False

    def carried_columns(self) -> None:
        """Any: a column that ALTER TABLE adds or drops is in some records and not in others."""
        return None


class QlikMessagesSettings(TableSettings):
    """Settings of a table whose changes come as Qlik messages, and of the messages themselves.

    `table_from`, `table_header`, `schemas_from` and `schema_registry` concern the messages: they
    are set on their source, which also sets them for all tables.
    """

    positions = QlikPositions
    column_settings = (*TableSettings.column_settings, "lob_columns")
    has_own_loads = True
    optional_columns = ("stream_position", "transaction_last_event")

    system: Literal["qlik_messages"]
    look_back: str = "15 minutes"
    base: None = None
    table_from: Literal["topic", "schema_id", "header", "message"] = "topic"
    table_header: str | None = None
    schemas_from: Literal["columns", "metadata", "registry"] = "columns"
    schema_registry: str | None = None
    mask_byte_order: Literal["auto", "msb_first", "lsb_first"] = "auto"
    lob_columns: list[str] = Field(default_factory=list)
    mask_columns: list[str] = Field(default_factory=list)
    on_key_mismatch: Literal["fail", "warn", "ignore"] = "fail"
    message_table: str | None = None
    table_schema: str | None = None

    @field_validator("look_back", mode="before")
    @classmethod
    def _is_duration(cls, value: Any) -> str:
        duration_seconds(str(value))
        return str(value)

    @field_validator("base", mode="before")
    @classmethod
    def _no_base(cls, value: Any) -> None:
        if value is not None:
            raise ValueError("A full load comes as messages (REFRESH), there is no base table")

    @model_validator(mode="after")
    def _names_its_places(self) -> QlikMessagesSettings:
        if (self.table_from == "header") != (self.table_header is not None):
            raise ValueError(
                f"`table_from` is {self.table_from!r} and `table_header` is "
                f"{self.table_header!r}; `table_header` names the record header that holds a "
                "table's name, and `table_from: header` reads it. Cure: set both, or neither"
            )
        if self.schemas_from == "registry" and self.schema_registry is None:
            raise ValueError(
                "`schemas_from` is 'registry' and `schema_registry` is missing. Allowed: the "
                "registry's address, such as http://localhost:8081, or a folder of <id>.avsc "
                "files. Cure: add it"
            )
        if self.table_from == "schema_id" and self.schemas_from != "metadata":
            raise ValueError(
                f"`table_from` is 'schema_id' and `schemas_from` is {self.schemas_from!r}; which "
                "table a schema id belongs to is known from metadata messages alone. Cure: set "
                "`schemas_from: metadata`, or take the table from the topic or from a header"
            )
        if self.mask_columns and self.schemas_from == "metadata":
            raise ValueError(
                f"`mask_columns` is {self.mask_columns!r} and `schemas_from` is 'metadata'; "
                "metadata messages tell the ordinals of each version of a table, and a list holds "
                "for one version only. Cure: leave `mask_columns` out"
            )
        if self.table_schema is not None and self.table_from not in ("schema_id", "message"):
            raise ValueError(
                f"`table_schema` is {self.table_schema!r} and `table_from` is "
                f"{self.table_from!r}; only metadata messages and the messages themselves name "
                "schemas of tables. Cure: leave `table_schema` out, or set `table_from: schema_id` "
                "or `table_from: message`"
            )
        return self

    def is_own_column(self, name: str) -> bool:
        """No column: a table's rows are in the messages, and its source entry declares its own."""
        return False

    def lists_all_columns(self, declared: Sequence[str]) -> bool:
        """All, where no metadata message tells the table's columns: then these are decoded."""
        return bool(declared) and self.schemas_from != "metadata"

    def carried_columns(self) -> None:
        """Any: a message may lack columns, or say in its column mask that it does not know them."""
        return None


SYSTEMS: dict[str, type[TableSettings]] = {
    "qlik_change_table": QlikChangeTableSettings,
    "qlik_messages": QlikMessagesSettings,
    "openedge": OpenEdgeSettings,
    "soliddb": SolidDbSettings,
}


def positions(settings: Mapping[str, Any]) -> Positions:
    """The positions of a table, from its validated settings."""
    return SYSTEMS[settings["system"]].positions(settings["look_back"])


def has_own_loads(settings: Mapping[str, Any]) -> bool:
    """Whether full loads come among the changes of a table, from its validated settings."""
    return SYSTEMS[settings["system"]].has_own_loads


def moment_kind(text: str, system: str | None = None) -> Literal["change_seq", "timestamp"] | None:
    """Which way to name a moment a text is: a position in the source's order, or a time in UTC.

    Args:
        text: the moment.
        system: whose positions are meant; None = those of any system.

    Returns:
        None when it is neither.
    """
    systems = SYSTEMS.values() if system is None else [SYSTEMS[system]]
    if any(model.positions.is_form_of(text) for model in systems):
        return "change_seq"
    return "timestamp" if _is_timestamp(text) else None


def _is_timestamp(text: str) -> bool:
    match = _TIMESTAMP.fullmatch(text)
    try:
        return match is not None and bool(datetime.fromisoformat(text[:19].removesuffix("Z")))
    except ValueError:  # such as 30 February
        return False


def parse_settings(source: Mapping[str, Any]) -> dict[str, Any]:
    """Check one source table's settings and fill in the defaults.

    Args:
        source: the table's entry in dbt's graph: `source_name`, `name`, `meta`, `columns`.

    Returns:
        Setting name -> value, plus `source_table`, its name for messages; `change_seq_form`, in
        words; `declared_columns`, a list of {name, data_type} in YAML order, and `data_columns`,
        those of them that are not the tool's; `carried_columns`, names of those that a change may
        leave out, None = any but the key; `optional_columns`, those of the contract that the system
        has, with their types; `without_before_images`, the setting that says the source stores no
        before images.

    Raises:
        SettingsError: something is missing, misspelt or not allowed.
    """
    table = f"{source['source_name']}.{source['name']}"
    given = _given(table, source)
    if not given:
        raise SettingsError(
            f"Source table {table} has no `meta.afterimage`. Cure: add `config: {{meta: "
            f"{{afterimage: {{system: ..., key: [...]}}}}}}` to the table or its source; allowed "
            f"systems: {', '.join(SYSTEMS)}."
        )
    system = given.get("system")
    if not isinstance(system, str) or system not in SYSTEMS:
        raise SettingsError(
            f"Source table {table}: `system` is {system!r}; allowed: {', '.join(SYSTEMS)}."
            f"{did_you_mean(str(system), list(SYSTEMS))} Cure: set it on the source, it holds for "
            "all its tables."
        )
    model = SYSTEMS[system]
    try:
        parsed = model.model_validate(given, context={"positions": model.positions})
    except ValidationError as error:
        raise SettingsError(_explain(table, model, error)) from error
    settings = parsed.model_dump()
    columns = [
        {"name": column["name"], "data_type": column.get("data_type")}
        for column in (source.get("columns") or {}).values()
    ]
    data = [column for column in columns if not parsed.is_own_column(column["name"])]
    if data:
        names = [column["name"] for column in data]
        data += [column for column in parsed.added_columns() if column["name"] not in names]
    settings["source_table"] = table
    settings["change_seq_form"] = model.positions.form()
    settings["declared_columns"] = columns
    settings["data_columns"] = data
    settings["optional_columns"] = {
        name: kind for name, kind in OPTIONAL_COLUMNS.items() if name in model.optional_columns
    }
    settings["carried_columns"] = parsed.carried_columns()
    settings["without_before_images"] = model.without_before_images
    if parsed.lists_all_columns([column["name"] for column in columns]):
        _check_columns(table, settings, model.column_settings)
    return settings


def _given(table: str, source: Mapping[str, Any]) -> dict[str, Any]:
    """The source's `afterimage` meta, the table's over it: dbt's own merge replaces it whole."""
    meta = {**(source.get("meta") or {}), **((source.get("config") or {}).get("meta") or {})}
    whole = (source.get("source_meta") or {}).get("afterimage")
    own = meta.get("afterimage")
    given: dict[str, Any] = {}
    for level, settings in (("source", whole), ("table", own)):
        if settings is None:
            continue
        if not isinstance(settings, Mapping):
            raise SettingsError(
                f"Source table {table}: `meta.afterimage` of the {level} is {settings!r}; allowed: "
                "a mapping of settings. Cure: write it as `afterimage: {system: ..., key: [...]}`."
            )
        given.update({str(name): value for name, value in settings.items()})
    return given


def _check_columns(table: str, settings: dict[str, Any], column_settings: tuple[str, ...]) -> None:
    columns = settings["declared_columns"] + settings["data_columns"]
    declared = [column["name"] for column in columns]
    for setting in column_settings:
        for column in settings[setting]:
            if column not in declared:
                raise SettingsError(
                    f"Source table {table}: `{setting}` names the column {column!r}, which its "
                    f"`columns` do not declare.{did_you_mean(column, declared)} Cure: correct the "
                    "name, or declare the column with its data_type."
                )


def _explain(table: str, model: type[BaseModel], error: ValidationError) -> str:
    lines = [
        f"Source table {table}: {_explain_one(model, dict(problem))}" for problem in error.errors()
    ]
    # Where one of several types is allowed, pydantic tells why each of them does not fit.
    return "\n".join(dict.fromkeys(lines))


def _explain_one(model: type[BaseModel], problem: dict[str, Any]) -> str:
    path = problem["loc"]
    own_words = str(problem["msg"]).removeprefix("Value error, ")
    if not path:
        return f"{own_words}."
    owner = Base if path[0] == "base" and len(path) > 1 else model
    of_owner = path[1:] if owner is Base else path
    setting = str(of_owner[0])
    name = f"base.{setting}" if owner is Base else setting
    names = list(owner.model_fields)
    if problem["type"] == "extra_forbidden":
        return (
            f"unknown setting `{name}`.{did_you_mean(setting, names)} "
            f"Allowed: {', '.join(names)}. Cure: correct the name, or remove it."
        )
    field = owner.model_fields[setting]
    allowed = f"Allowed: {', '.join(_allowed_values(field.annotation))}."
    if problem["type"] == "missing":
        return f"the setting `{name}` is missing. {allowed} Cure: add it."
    verb = "holds" if any(isinstance(part, int) for part in of_owner) else "is"
    reason = f"{own_words}." if problem["type"] == "value_error" else allowed
    cure = "Cure: correct it."
    if not field.is_required():
        default = field.get_default(call_default_factory=True)
        cure = f"Cure: correct it, or leave it out (default: {default!r})."
    return f"`{name}` {verb} {problem['input']!r}. {reason} {cure}"


def _allowed_values(annotation: Any) -> list[str]:
    words = {
        bool: "true, false",
        int: "a whole number from 0 on",
        str: "text",
        Base: "a mapping, such as {kind: frozen}",
    }
    if annotation in words:
        return [words[annotation]]
    if get_origin(annotation) is Literal:
        return [str(value) for value in get_args(annotation)]
    if get_origin(annotation) is list:
        return ["a list of column names, such as [order_id]"]
    return [value for part in get_args(annotation) for value in _allowed_values(part)]


def did_you_mean(name: str, allowed: Sequence[str]) -> str:
    """A sentence for a message: the allowed name that is most like this one, "" for none."""
    by_letters = {value.lower(): value for value in allowed}
    close = difflib.get_close_matches(name.lower(), by_letters, n=1)
    return f" Did you mean `{by_letters[close[0]]}`?" if close else ""
