"""Settings of tables in a solidDB transaction log, and of the log."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from dbt_afterimage.sequence import SolidDbChangeSequence
from dbt_afterimage.settings.base import TableSettings


class SolidDbSettings(TableSettings):
    """Settings of a table whose changes are in a solidDB transaction log, and of the log itself.

    `framing` and `char_encoding` concern the log: they are set on its source, which also sets them
    for all tables.
    """

    positions = SolidDbChangeSequence

    system: Literal["soliddb"]
    # the log is in the order of commits: nothing comes late
    look_back: Annotated[int, Field(ge=0, le=0)] = 0
    capture_off: Literal["skip_all", "skip_deletes", "keep"] = "skip_all"
    framing: str = "length_prefixed"
    char_encoding: str = "utf-8"
    table_schema: str | None = None
    relation_id: int | None = Field(default=None, ge=1)

    @field_validator("landing_delay", mode="before")
    @classmethod
    def _has_no_delay(cls, value: Any) -> None:
        if value is not None:
            raise ValueError(
                "All tables of a solidDB log are decoded from it together, so none is ahead of "
                "another by its landing. Fix: remove it"
            )

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
            # Python uses the encoding only if there is a byte to decode
            b"    ".decode(value, errors="replace")
        except (LookupError, UnicodeError):
            raise ValueError(
                "Allowed: an encoding that Python knows, such as utf-8 or latin-1"
            ) from None
        return value

    def is_own_column(self, name: str) -> bool:
        """No column: a table's rows are in the log, and its source entry declares its own."""
        return False
