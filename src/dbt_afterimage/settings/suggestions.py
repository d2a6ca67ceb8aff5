"""Suggests the allowed name that a misspelt one resembles."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def did_you_mean(name: str, allowed: Sequence[str]) -> str:
    """A sentence for a message: the allowed name that is most like this one, "" for none."""
    by_letters = {value.lower(): value for value in allowed}
    close = difflib.get_close_matches(name.lower(), by_letters, n=1)
    return f" Did you mean `{by_letters[close[0]]}`?" if close else ""
