"""Settings of any other change feed: which of its columns say what of a change."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, field_validator, model_validator

from dbt_afterimage.sequence import ChangeFeedSequence
from dbt_afterimage.settings.base import TableSettings
from dbt_afterimage.settings.suggestions import did_you_mean

SEQUENCE_WIDTHS = {"number": 16, "timestamp": 16, "digits": 32, "binary": 32, "text": 32}
"""Hex digits of a part of the sequence, by its type."""

OPERATIONS = ("I", "U", "D", "B", "T", "N")
"""Operations of the contract that a feed can have; full loads come from a base table."""


class ChangeFeedSettings(TableSettings):
    """Settings of a table with one row per change, described by settings alone.

    `preset` names the settings of a vendor's format; a setting of the table goes before them.
    """

    positions = ChangeFeedSequence
    without_before_images = "before: none"
    column_settings = (*TableSettings.column_settings, "mask_columns")

    system: Literal["change_feed"]
    look_back: Annotated[int, Field(ge=0, le=0)] = 0
    preset: str | None = None
    sequence: dict[str, str]
    operation: str
    operations: dict[str, str]
    missing_operation: str | None = None
    before: Literal["none", "rows"] = "none"
    incomplete_before: list[str] = Field(default_factory=list)
    changed_at: str | None = None
    changed_at_unit: Literal[
        "timestamp", "seconds", "milliseconds", "microseconds", "nanoseconds"
    ] = "timestamp"
    transaction_id: str | None = None
    transaction_event: str | None = None
    changed_columns: str | None = None
    changed_mask: str | None = None
    mask_byte_order: Literal["msb_first", "lsb_first"] = "msb_first"
    mask_first_data_bit: Annotated[int, Field(ge=0, strict=True)] = 0
    mask_columns: list[str] = Field(default_factory=list)
    unavailable_value: str | None = None
    arrival: str | None = None
    ignore_columns: list[str] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _with_preset(cls, given: Any) -> Any:
        name = given.get("preset")
        settings = {**(_preset(name) if name is not None else {}), **given}
        before = settings.get("before", "none")
        stored = given.get("before_images", before != "none")
        if isinstance(stored, bool) and stored != (before != "none"):
            raise ValueError(
                f"`before_images` is {str(stored).lower()} and `before` is {before!r}; `before` "
                "says whether the feed has before images. Fix: leave `before_images` out"
            )
        return {**settings, "before_images": stored}

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

    @field_validator("missing_operation")
    @classmethod
    def _is_operation(cls, value: str | None) -> str | None:
        if value is not None and value not in OPERATIONS:
            raise ValueError(f"Allowed: {', '.join(OPERATIONS)}")
        return value

    @model_validator(mode="after")
    def _describes_one_feed(self) -> ChangeFeedSettings:
        has_rows = "B" in self.operations.values()
        if has_rows != (self.before == "rows"):
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
        return self

    def is_own_column(self, name: str) -> bool:
        """A column that a setting reads, or one of `ignore_columns`.

        The macro `_is_feed_column` says the same of the columns of a raw table.
        """
        name = name.lower()
        read = (
            self.operation,
            self.changed_at,
            self.transaction_id,
            self.transaction_event,
            self.changed_columns,
            self.changed_mask,
            self.arrival,
        )
        if name in [column.strip("`").lower() for column in read if column]:
            return True
        ignored = [column.lower() for column in self.ignore_columns]
        return name in ignored or name.startswith(
            tuple(column[:-1] for column in ignored if column.endswith("*"))
        )

    def forward_filled_columns(self) -> list[str] | None:
        """Any if a value stands for "unchanged", else those that a before image may leave out."""
        return None if self.unavailable_value is not None else self.incomplete_before


@cache
def _presets() -> dict[str, dict[str, Any]]:
    folder = files("dbt_afterimage.settings") / "presets"
    return {
        file.name.removesuffix(".yml"): yaml.safe_load(file.read_text(encoding="utf-8"))
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".yml")
    }


def _preset(name: Any) -> dict[str, Any]:
    presets = _presets()
    if not isinstance(name, str) or name not in presets:
        raise ValueError(
            f"`preset` is {name!r}; allowed: {', '.join(presets)}."
            f"{did_you_mean(str(name), list(presets))} Fix: correct the name, or leave `preset` "
            "out and describe the feed by its settings"
        )
    return presets[name]
