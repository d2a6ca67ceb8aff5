"""Settings of Qlik change tables."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator

from dbt_afterimage.sequence import QlikChangeSequence
from dbt_afterimage.settings.base import Duration, TableSettings

HEADER_NAME = r"[a-z_][a-z0-9_]*"
"""Allowed names of additional header columns, in small letters and without the prefix."""


class QlikChangeTableSettings(TableSettings):
    """Settings of a Qlik change table `<table>__ct`."""

    positions = QlikChangeSequence
    # not `mask_columns`: a column that the table has no longer keeps its place there
    column_settings = (*TableSettings.column_settings, "lob_columns")
    optional_columns = ("stream_position",)

    system: Literal["qlik_change_table"]
    look_back: Duration = "15 minutes"
    lob_columns: list[str] = Field(default_factory=list)
    header_prefix: str = "header__"
    header_columns: list[str] = Field(default_factory=list)
    mask_byte_order: Literal["auto", "msb_first", "lsb_first"] = "auto"
    mask_first_data_bit: Literal["auto"] | Annotated[int, Field(ge=0, strict=True)] = "auto"
    mask_columns: list[str] = Field(default_factory=list)

    @field_validator("header_columns")
    @classmethod
    def _are_additional_headers(cls, value: list[str]) -> list[str]:
        # as all columns of the change-event contract, they are written in small letters
        names = [name.lower() for name in value]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"It names {name!r} twice")
            if name in (*_QLIK_HEADERS, "partition_name"):
                raise ValueError(
                    f"It names {name!r}, one of Qlik's own header columns, which need no setting. "
                    "Allowed: names of additional header columns, without the prefix"
                )
            if not re.fullmatch(HEADER_NAME, name):
                raise ValueError(
                    f"It names {name!r}. Allowed: letters, digits and underscores; a view over the "
                    "raw table can rename the column"
                )
        return names

    def is_own_column(self, name: str) -> bool:
        """A header column: by its prefix, or without one by its name."""
        name, prefix = name.lower(), self.header_prefix.lower()
        if prefix and name.startswith(prefix):
            return True
        own = (*_QLIK_HEADERS, *self.header_columns)
        return name == "partition_name" or (not prefix and name in own)

    def metadata_columns(self) -> dict[str, str]:
        """Those of the system, and additional header columns as text."""
        return {**super().metadata_columns(), **dict.fromkeys(self.header_columns, "string")}


_QLIK_HEADERS = (
    "change_seq",
    "change_oper",
    "change_mask",
    "stream_position",
    "operation",
    "transaction_id",
    "timestamp",
)
