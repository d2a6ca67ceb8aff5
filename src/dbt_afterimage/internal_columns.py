"""Columns of afterimage's own beside those of the source.

Those that exist only inside a computation have a prefix: a data column may have any name, so it is
one that none is likely to begin with.
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "__afterimage_"

UNDECIDED: Final = f"{PREFIX}undecided"
"""Why a run would leave a record of a key out of the log: `pending` or `rejected`."""

LANDED_FILE: Final = "_landed_file"
LANDED_BYTES: Final = "_landed_bytes"
LANDED_COLUMNS: Final = (LANDED_FILE, LANDED_BYTES)
"""In raw tables of `afterimage land files`: a row's file and its size, which the source has not."""
