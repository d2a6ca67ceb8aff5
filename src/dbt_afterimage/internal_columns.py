"""The prefix of columns that exist only inside a computation: no data column begins with it."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "__afterimage_"
