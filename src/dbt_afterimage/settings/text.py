"""What a text is: a time, or the misspelling of a name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from datetime import datetime

# What Spark casts to a timestamp, of the many forms that Python's fromisoformat reads.
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)


def is_timestamp(text: str) -> bool:
    """Whether a text is a date or a time that Spark casts to a timestamp."""
    match = _TIMESTAMP.fullmatch(text)
    try:
        return match is not None and bool(datetime.fromisoformat(text[:19].removesuffix("Z")))
    except ValueError:  # such as 30 February
        return False


def did_you_mean(name: str, allowed: Sequence[str]) -> str:
    """A sentence for a message: the allowed name that is most like this one, "" for none."""
    by_letters = {value.lower(): value for value in allowed}
    close = difflib.get_close_matches(name.lower(), by_letters, n=1)
    return f" Did you mean `{by_letters[close[0]]}`?" if close else ""
