"""Names of the columns that the history step adds to its intermediate rows, all under one prefix.

Columns of the change log (change_seq, changed_at, known_columns, before ...) keep their names; the
contract of the log reserves those.
"""

from __future__ import annotations

from typing import Final

from dbt_afterimage.internal_columns import PREFIX

KIND: Final = f"{PREFIX}kind"
"""Kind of a key event: the letter of the change, K for a key-change-in, or one of these."""
ANCHOR_VERSION: Final = "S"
KEY_CHANGE_OUT: Final = "X"
MISSING_FROM_LOAD: Final = "R"
RANK: Final = f"{PREFIX}rank"
"""Order of the key events at one change_seq (R1)."""
ROW: Final = f"{PREFIX}row"
"""The data columns except the key, as one struct."""
ANCHOR: Final = f"{PREFIX}anchor"
"""How an anchor version began: struct<opened_by, changed_columns>."""
REPLAY_FROM: Final = f"{PREFIX}replay_from"
"""The change_seq from which a key is replayed; NULL for the whole log."""
UNKNOWN: Final = f"{PREFIX}unknown_columns"
"""Columns whose value is unknown after forward filling; NULL when all are known."""

BOUNDARY_EVENTS: Final = f"{PREFIX}boundary_events"
"""All truncates and load markers in order, an array."""
LOADS: Final = f"{PREFIX}loads"
TRUNCATES: Final = f"{PREFIX}truncates"
"""The change_seq of truncates without a scope, an array."""
BISECTION_STEPS: Final = f"{PREFIX}bisection_steps"
"""Descending powers of two, an array: enough to search any of the arrays above."""

MOVE_GROUP: Final = f"{PREFIX}move_group"
"""The transaction of a key change (R7)."""

VERSION_ID: Final = f"{PREFIX}version_id"
IS_PRIOR: Final = f"{PREFIX}is_prior"
"""Whether a version is one of the prior versions."""
IS_UPDATED_IN_PLACE: Final = f"{PREFIX}is_updated_in_place"


def own(name: str) -> str:
    """The name of a column that lives within one transform."""
    return PREFIX + name
