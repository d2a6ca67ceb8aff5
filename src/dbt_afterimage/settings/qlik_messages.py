"""Settings of tables whose changes come as Qlik messages, and of the messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from dbt_afterimage.sequence import QlikChangeSequence
from dbt_afterimage.settings.base import Duration, TableSettings


class QlikMessagesSettings(TableSettings):
    """Settings of a table whose changes come as Qlik messages, and of the messages themselves.

    `table_from`, `table_header`, `schemas_from` and `schema_registry` concern the messages: they
    are set on their source, which also sets them for all tables.
    """

    positions = QlikChangeSequence
    column_settings = (*TableSettings.column_settings, "lob_columns")
    has_own_loads = True
    optional_columns = ("stream_position", "transaction_last_event")

    system: Literal["qlik_messages"]
    look_back: Duration = "15 minutes"
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
                "table's name, and `table_from: header` reads it. Fix: set both, or neither"
            )
        if self.schemas_from == "registry" and self.schema_registry is None:
            raise ValueError(
                "`schemas_from` is 'registry' and `schema_registry` is missing. Allowed: the "
                "registry's address, such as http://localhost:8081, or a folder of <id>.avsc "
                "files. Fix: add it"
            )
        if self.table_from == "schema_id" and self.schemas_from != "metadata":
            raise ValueError(
                f"`table_from` is 'schema_id' and `schemas_from` is {self.schemas_from!r}; which "
                "table a schema id belongs to is known from metadata messages alone. Fix: set "
                "`schemas_from: metadata`, or take the table from the topic or from a header"
            )
        if self.mask_columns and self.schemas_from == "metadata":
            raise ValueError(
                f"`mask_columns` is {self.mask_columns!r} and `schemas_from` is 'metadata'; "
                "metadata messages have the ordinals of each version of a table, and a list holds "
                "for one version only. Fix: leave `mask_columns` out"
            )
        names_schemas = self.schemas_from == "metadata" or self.table_from == "message"
        if self.table_schema is not None and not names_schemas:
            raise ValueError(
                f"`table_schema` is {self.table_schema!r}, `table_from` is {self.table_from!r} and "
                f"`schemas_from` is {self.schemas_from!r}; only metadata messages and the messages "
                "themselves name schemas of tables. Fix: leave `table_schema` out, or set "
                "`schemas_from: metadata` or `table_from: message`"
            )
        return self

    def is_own_column(self, name: str) -> bool:
        """No column: a table's rows are in the messages, and its source entry declares its own."""
        return False

    def lists_all_columns(self, declared: Sequence[str]) -> bool:
        """All, if no metadata message has the table's columns: then these are decoded."""
        return bool(declared) and self.schemas_from != "metadata"
