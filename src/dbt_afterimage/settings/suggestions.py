"""Finds the names that a misspelt one resembles."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def did_you_mean(name: str, allowed: Sequence[str]) -> str:
    """A sentence for a message: the allowed name that is most like this one, "" for none."""
    close = similar_names(name, allowed, limit=1)
    return f" Did you mean `{close[0]}`?" if close else ""


def similar_names(name: str, names: Sequence[str], limit: int, cutoff: float = 0.6) -> list[str]:
    """Up to `limit` names that are like this one, the most similar first, whatever their case.

    Args:
        cutoff: how similar they must be, from 0 to 1.
    """
    by_lower_case = {value.lower(): value for value in names}
    close = difflib.get_close_matches(name.lower(), by_lower_case, n=limit, cutoff=cutoff)
    return [by_lower_case[letters] for letters in close]
