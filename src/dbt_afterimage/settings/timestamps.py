"""Which texts are times."""

from __future__ import annotations

import re
from datetime import datetime

# What Spark casts to a timestamp, of the many forms that Python's fromisoformat reads.
_TIMESTAMP = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"([ T](?P<clock>[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)"
    r"(Z|[+-](?P<hours>[0-9]{2}):(?P<minutes>[0-9]{2}))?)?"
)
_GREATEST_OFFSET = 18 * 60
"""Minutes, of a zone: Java knows no greater one."""


def is_timestamp(text: str) -> bool:
    """Whether a text is a date or a time that Spark casts to a timestamp."""
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return False
    try:
        # without fraction and zone, of which Python 3.10 reads some forms only
        datetime.fromisoformat(f"{found['date']} {(found['clock'] or '00:00')[:8]}")
    except ValueError:  # such as 30 February
        return False
    hours, minutes = int(found["hours"] or 0), int(found["minutes"] or 0)
    return minutes < 60 and 60 * hours + minutes <= _GREATEST_OFFSET
