"""Settings of any other change feed: which of its columns say what of a change."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import md5
from importlib.resources import files
from typing import Annotated, Any, Literal
from uuid import UUID

import yaml
from pydantic import Field, computed_field, field_validator, model_validator

from dbt_afterimage.sequence import ChangeFeedSequence
from dbt_afterimage.settings.base import TableSettings
from dbt_afterimage.settings.suggestions import did_you_mean

SEQUENCE_WIDTHS = {
    "number": 16,
    "timestamp": 16,
    "digits": 32,
    "long_digits": 48,
    "binary": 32,
    "text": 32,
}
"""Hex digits of a part of the sequence, by its type."""

WHOLE_DOCUMENT = "whole document"
"""`after` of documents whose own fields are the data columns."""

OPERATIONS = ("I", "U", "D", "B", "T", "L", "N")
"""Operations of the contract that a feed can have."""

ENCODINGS = {
    "text": ("any",),
    "days": ("date",),
    "milliseconds": ("timestamp", "timestamp_ntz"),
    "microseconds": ("timestamp", "timestamp_ntz"),
    "nanoseconds": ("timestamp", "timestamp_ntz"),
    "by_schema": ("timestamp", "timestamp_ntz"),
    "time_milliseconds": ("string",),
    "time_microseconds": ("string",),
    "base64": ("binary",),
    "unscaled_base64": ("decimal",),
    "scaled_base64": ("decimal",),
    "extended_json": ("any",),
}
"""How a JSON document writes a value, and the types that a column of this encoding can have."""

SCHEMA_ENCODINGS = {
    "io.debezium.time.Date": "days",
    "org.apache.kafka.connect.data.Date": "days",
    "io.debezium.time.Timestamp": "milliseconds",
    "org.apache.kafka.connect.data.Timestamp": "milliseconds",
    "io.debezium.time.MicroTimestamp": "microseconds",
    "io.debezium.time.NanoTimestamp": "nanoseconds",
    "io.debezium.time.Time": "time_milliseconds",
    "org.apache.kafka.connect.data.Time": "time_milliseconds",
    "io.debezium.time.MicroTime": "time_microseconds",
    "org.apache.kafka.connect.data.Decimal": "unscaled_base64",
    "io.debezium.data.VariableScaleDecimal": "scaled_base64",
}
"""The encoding that a message's schema gives a column, by the name of the column's type there.

Source: Debezium documentation, "Data type mappings" of its connectors.
"""


def schema_encodings_of(kind: str) -> dict[str, list[str]]:
    """The encodings that a schema may give columns of a type, each with the names that do.

    Args:
        kind: Spark's type without precision, such as `decimal`.
    """
    found: dict[str, list[str]] = {}
    for name, encoding in SCHEMA_ENCODINGS.items():
        if kind in ENCODINGS[encoding]:
            found.setdefault(encoding, []).append(name)
    return found


def unavailable_spellings(value: str) -> list[str]:
    """The texts that Debezium writes for its placeholder, by the type of the column.

    Source: Debezium's `UnchangedToastedPlaceholder` of the PostgreSQL connector, and the binary
    handling modes of its page. Arrays hold the placeholder as text, as the numbers of its bytes,
    as bytes, or as the UUID that Java makes of its bytes.
    """
    data = value.encode()
    as_base64, as_hex = b64encode(data).decode(), data.hex()
    uuid = str(UUID(bytes=md5(data, usedforsecurity=False).digest(), version=3))
    arrays = [[text] for text in (value, as_base64, as_hex, uuid)]
    documents = [*arrays, list(data), {value: value}]
    texts = [json.dumps(each, separators=(",", ":"), ensure_ascii=False) for each in documents]
    return [value, as_base64, as_hex, as_hex.upper(), *texts]


class ChangeFeedSettings(TableSettings):
    """Settings of a table with one row per change, described by settings alone.

    `preset` names the settings of a vendor's format; a setting of the table goes before them.
    """

    positions = ChangeFeedSequence
    # not `mask_columns`: a column that the table has no longer keeps its place there
    column_settings = (*TableSettings.column_settings, "encodings", "unknown_if_null")

    system: Literal["change_feed"]
    look_back: Annotated[int, Field(ge=0, le=0)] = 0
    preset: str | None = None
    sequence: dict[str, str]
    operation: str
    operations: dict[str, str]
    missing_operation: str | None = None
    filter: str | None = None
    json_text: str | None = None
    json_fields: str | None = None
    json_payload: str | None = None
    schema_registry: str | None = None
    after: str | None = None
    before: str = "none"
    incomplete_before: list[str] = Field(default_factory=list)
    changed_at: str | None = None
    changed_at_unit: Literal[
        "timestamp", "seconds", "milliseconds", "microseconds", "nanoseconds"
    ] = "timestamp"
    transaction_id: str | None = None
    transaction_event: str | None = None
    changed_columns: str | None = None
    changed_mask: str | None = None
    sparse_updates: bool = True
    unknown_if_null: bool | list[str] = False
    known_columns: str | None = None
    unchanged_columns: str | None = None
    mask_byte_order: Literal["msb_first", "lsb_first"] = "msb_first"
    mask_first_data_bit: Annotated[int, Field(ge=0, strict=True)] = 0
    mask_columns: list[str] = Field(default_factory=list)
    unavailable_value: str | None = None
    absent: Literal["unknown", "null"] = "unknown"
    encodings: dict[str, str] = Field(default_factory=dict)
    type_encodings: dict[str, str] = Field(default_factory=dict)
    load_id: str | None = None
    load_end: str | None = None
    arrival: str | None = None
    ignore_columns: list[str] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _with_preset(cls, given: Any) -> Any:
        name = given.get("preset")
        of_preset = _preset(name) if name is not None else {}
        settings = {**of_preset, **given}
        if isinstance(given.get("json_fields"), str):
            _check_fields(given["json_fields"], name, of_preset, given)
        before = settings.get("before", "none")
        stored = given.get("before_images", before != "none")
        may_lack = before not in ("none", "rows") and stored is False
        if isinstance(stored, bool) and stored != (before != "none") and not may_lack:
            raise ValueError(
                f"`before_images` is {str(stored).lower()} and `before` is {before!r}; `before` "
                "says whether the feed has before images. Fix: leave `before_images` out"
            )
        return {**settings, "before_images": stored}

    @field_validator("absent", mode="before")
    @classmethod
    def _null_as_text(cls, value: Any) -> Any:
        # YAML reads null as no value
        return "null" if value is None else value

    @field_validator("sequence")
    @classmethod
    def _is_sequence(cls, value: dict[str, str]) -> dict[str, str]:
        if not 1 <= len(value) <= 6 or not set(value.values()) <= SEQUENCE_WIDTHS.keys():
            raise ValueError(
                "Allowed: one to six columns or SQL expressions in their order, each with its type "
                f"({', '.join(SEQUENCE_WIDTHS)}), such as {{commit_lsn: number}}"
            )
        return value

    @field_validator("operations", mode="before")
    @classmethod
    def _keys_as_text(cls, value: Any) -> Any:
        # YAML reads 1 as a number
        if isinstance(value, dict):
            return {str(key) if type(key) is int else key: of for key, of in value.items()}
        return value

    @field_validator("operations")
    @classmethod
    def _are_operations(cls, value: dict[str, str]) -> dict[str, str]:
        if not value or not set(value.values()) <= set(OPERATIONS):
            raise ValueError(
                "Allowed: values of the column `operation`, each with its operation: "
                f"{', '.join(OPERATIONS)}, such as {{insert: I, update: U, delete: D}}"
            )
        return value

    @field_validator("encodings", "type_encodings")
    @classmethod
    def _are_encodings(cls, value: dict[str, str]) -> dict[str, str]:
        for name, encoding in value.items():
            if encoding not in ENCODINGS:
                raise ValueError(
                    f"It gives {name!r} the encoding {encoding!r}. Allowed: "
                    f"{', '.join(ENCODINGS)}{did_you_mean(encoding, list(ENCODINGS))}"
                )
        return value

    @field_validator("missing_operation")
    @classmethod
    def _is_operation(cls, value: str | None) -> str | None:
        if value is not None and value not in OPERATIONS:
            raise ValueError(f"Allowed: {', '.join(OPERATIONS)}")
        return value

    @model_validator(mode="after")
    def _describes_one_feed(self) -> ChangeFeedSettings:
        has_rows = "B" in self.operations.values()
        if not self.is_before_in_record and has_rows != (self.before == "rows"):
            raise ValueError(
                f"`before` is {self.before!r} and `operations` "
                f"{'has' if has_rows else 'lacks'} the operation B (before image). Fix: set "
                f"`before: {'rows' if has_rows else 'none'}`, or correct `operations`"
            )
        if self.changed_columns and self.changed_mask:
            raise ValueError(
                f"`changed_columns` is {self.changed_columns!r} and `changed_mask` is "
                f"{self.changed_mask!r}; the two exclude each other. Fix: keep one of them"
            )
        if self.json_text and not (self.json_fields and self.after):
            raise ValueError(
                f"`json_text` is {self.json_text!r} without `json_fields` and `after`. Fix: set "
                "`json_fields` to the fields of a document and `after` to the one with the data "
                "columns, such as `json_fields: 'op string, after map<string, string>'` and "
                "`after: record.after`"
            )
        if self.after == WHOLE_DOCUMENT and not self.json_text:
            raise ValueError(
                f"`after` is {self.after!r} and there is no `json_text`. Fix: set `json_text` to "
                "the column with the document, or take `after` out if the data columns are those "
                "of the table"
            )
        if self.schema_registry and not self.json_text:
            raise ValueError(
                f"`schema_registry` is {self.schema_registry!r} and there is no `json_text`; "
                "messages of a registry are read as JSON documents. Fix: set `json_text: value`, "
                "`json_fields` and `after`, or take `schema_registry` out"
            )
        if self.absent == "null" and not self.json_text:
            raise ValueError(
                "`absent` is 'null' and there is no `json_text`; only a JSON document can lack a "
                "column. Fix: take `absent` out"
            )
        if self.after is not None and self.before.endswith("*"):
            raise ValueError(
                f"`after` is {self.after!r} and `before` is the prefix {self.before!r}; before "
                "images in columns with a prefix go with data columns in the table itself. Fix: "
                "set `before` to the struct with the before image, or take `after` out"
            )
        return self

    @model_validator(mode="after")
    def _has_times_of_changes(self) -> ChangeFeedSettings:
        if self.landing_delay and not self.changed_at:
            raise ValueError(
                f"`landing_delay` is {self.landing_delay!r} and there is no `changed_at`; the "
                "delay counts from the time of a change. Fix: set `changed_at` to the column with "
                "that time, or remove `landing_delay`"
            )
        return self

    @model_validator(mode="after")
    def _tells_its_loads_apart(self) -> ChangeFeedSettings:
        has_loads = "L" in self.operations.values() or self.missing_operation == "L"
        if has_loads != bool(self.load_id):
            raise ValueError(
                "`operations` has L (row of a full load), and there is no `load_id`. Fix: set it "
                "to SQL that identifies a load, or map the operation to I"
                if has_loads
                else f"`load_id` is {self.load_id!r}, and no operation is L (row of a full load). "
                "Fix: give `operations` one, or take `load_id` out"
            )
        if self.load_end and not has_loads:
            raise ValueError(
                f"`load_end` is {self.load_end!r}, and there is no `load_id`. Fix: set `load_id` "
                "to SQL that identifies a load, or take `load_end` out"
            )
        if has_loads and self.base:
            raise ValueError(
                "`base` is set and `operations` has the operation L: full loads come from a table "
                "of their own or among the changes. Fix: take `base` out, or map the operation to I"
            )
        return self

    # mypy knows no decorator over a property: pydantic's page on computed fields has the comment
    @computed_field  # type: ignore[prop-decorator]
    @property
    def is_before_in_record(self) -> bool:
        """A record of an update holds its before image too."""
        return self.before not in ("none", "rows")

    def is_own_column(self, name: str) -> bool:
        """A column that a setting reads, or one of `ignore_columns`."""
        if self.after is not None:
            # the columns of a source table are those of the images
            return False
        name = name.lower()
        if self.before.endswith("*") and name.startswith(self.before[:-1].lower()):
            return True
        read = (
            self.operation,
            None if self.before in ("none", "rows") else self.before,
            self.changed_at,
            self.transaction_id,
            self.transaction_event,
            self.changed_columns,
            self.changed_mask,
            self.known_columns,
            self.unchanged_columns,
            self.load_id,
            self.arrival,
        )
        if name in [column.strip("`").lower() for column in read if column]:
            return True
        ignored = [column.lower() for column in self.ignore_columns]
        return name in ignored or name.startswith(
            tuple(column[:-1] for column in ignored if column.endswith("*"))
        )

    def pairs_before_images(self) -> bool:
        """Also where only changed keys come with a before image, as a record of its own."""
        return self.before_images or "B" in self.operations.values()

    def without_before_images(self) -> str:
        """The setting that says the source stores no before images."""
        return "before_images: false" if self.is_before_in_record else "before: none"

    def lists_all_columns(self, declared: Sequence[str]) -> bool:
        """Of JSON documents the declared columns are all."""
        return self.json_text is not None or super().lists_all_columns(declared)


@dataclass(frozen=True)
class Recognition:
    """How `afterimage add-table` knows a raw table of a preset.

    Attributes:
        columns: a table that has all of them is one, in any case.
        connectors: instead: the connectors whose messages the preset reads.
        is_certain: no other table has such columns.
        has_load_table: a landed table of the source table's name is its full load.
    """

    columns: tuple[str, ...] = ()
    connectors: tuple[str, ...] = ()
    is_certain: bool = True
    has_load_table: bool = False


@dataclass(frozen=True)
class Preset:
    """The settings of a vendor's format, and how its tables are known; None: not by columns."""

    settings: dict[str, Any]
    recognition: Recognition | None


@cache
def presets() -> dict[str, Preset]:
    """All presets, by name; `like` in one names another whose settings it has, too."""
    folder = files("dbt_afterimage.settings") / "presets"
    found: dict[str, Preset] = {}
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".yml"):
            settings = yaml.safe_load(file.read_text(encoding="utf-8"))
            known = settings.pop("add_table", None)
            like = settings.pop("like", None)
            if like:
                settings = {**found[like].settings, **settings}
            recognition = None
            if known:
                lists = {name: tuple(of) for name, of in known.items() if isinstance(of, list)}
                recognition = Recognition(**{**known, **lists})
            found[file.name.removesuffix(".yml")] = Preset(settings, recognition)
    return found


def _check_fields(
    json_fields: str, name: Any, of_preset: dict[str, Any], given: dict[str, Any]
) -> None:
    """Stop where a setting of the preset reads a field that the table's own `json_fields` lack."""
    words = set(re.findall(r"\w+", json_fields))
    for setting, value in of_preset.items():
        if setting in given or setting == "json_fields":
            continue
        for path in re.findall(
            r"\brecord\.([\w.]+)", " ".join([*value] if setting == "sequence" else [str(value)])
        ):
            for field in path.split("."):
                if field not in words:
                    raise ValueError(
                        f"`json_fields` lacks the field `{field}`, and `{setting}` of the preset "
                        f"{name} reads record.{path}. Fix: add the field to `json_fields`, or set "
                        f"`{setting}` on the table"
                    )


def _preset(name: Any) -> dict[str, Any]:
    if not isinstance(name, str) or name not in presets():
        raise ValueError(
            f"`preset` is {name!r}; allowed: {', '.join(presets())}."
            f"{did_you_mean(str(name), list(presets()))} Fix: correct the name, or leave `preset` "
            "out and describe the feed by its settings"
        )
    return presets()[name].settings
