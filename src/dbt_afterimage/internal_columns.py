"""The prefix of columns that exist only inside a computation.

A data column may have any name, so the prefix is one that none is likely to begin with.
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "__afterimage_"
