"""Which texts are times."""

from __future__ import annotations

import re
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
