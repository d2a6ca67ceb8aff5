"""Settings of Progress OpenEdge change tables."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from dbt_afterimage.sequence import OpenEdgeChangeSequence
from dbt_afterimage.settings.base import ColumnEntry, TableSettings


class OpenEdgeSettings(TableSettings):
    """Settings of a Progress OpenEdge change table `CDC_<table>`."""

    positions = OpenEdgeChangeSequence
    optional_columns = ("source_user",)
    column_settings = (*TableSettings.column_settings, "arrays")
    positions_per_table = True
    # a tracking row and its change row, or the records of a split change
    has_halves = True

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
                "stores before images, and no other does. Fix: leave `before_images` out"
            )
        return {**given, "before_images": stored}

    def without_before_images(self) -> str:
        """The setting that says the source stores no before images."""
        return "policy_level: 2"

    def is_own_column(self, name: str) -> bool:
        """Every name of OpenEdge's begins with `_`, which a user's field may not.

        `changed_fields` is the usual name for the list that its SQL function yields.
        The macro `_is_openedge_column` says the same of the columns of a raw table.
        """
        return name.startswith("_") or name.lower() == "changed_fields"

    def added_columns(self) -> list[ColumnEntry]:
        """Columns of the tracking table that a setting may name."""
        types = {
            self.partition_column: "int",
            self.tenant_column: "int",
            self.recid_column: "bigint",
        }
        return [{"name": name, "data_type": kind} for name, kind in types.items() if name]
