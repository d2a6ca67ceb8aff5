"""Which texts are times."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

# What Spark casts to a timestamp, of the many forms that Python's fromisoformat reads.
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)

_GREATEST_OFFSET = timedelta(hours=18)
"""Java knows no greater one; Python does."""


def is_timestamp(text: str) -> bool:
    """Whether a text is a date or a time that Spark casts to a timestamp."""
    if _TIMESTAMP.fullmatch(text) is None:
        return False
    try:
        found = datetime.fromisoformat(text)
    except ValueError:  # such as 30 February
        return False
    return abs(found.utcoffset() or timedelta()) <= _GREATEST_OFFSET
