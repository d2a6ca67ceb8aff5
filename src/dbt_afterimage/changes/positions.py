"""Arithmetic on change_seq, which differs by source system: width, look-back, the next position."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from dbt_afterimage.settings import QLIK_CHANGE_SEQ_DIGITS, duration_seconds


@dataclass(frozen=True)
class QlikPositions:
    """Qlik: 35 digits, YYYYMMDDhhmmss, hundredths, then a 19-digit counter (Change Tables page)."""

    look_back: str
    width: int = QLIK_CHANGE_SEQ_DIGITS

    @property
    def first(self) -> str:
        """The position of a first full load: before every change."""
        return "0" * self.width

    def after(self, seq: str) -> str:
        """The smallest position greater than ``seq``."""
        return str(int(seq) + 1).zfill(self.width)

    def before_look_back(self, seq: str) -> str:
        """The greatest position that the look-back from ``seq`` no longer covers.

        Args:
            seq: a well-formed position, or the position of a first load.

        Returns:
            A position; "", which sorts before all of them, when the look-back covers everything.
        """
        try:
            time = datetime.strptime(seq[:14], "%Y%m%d%H%M%S")
            earlier = time - timedelta(seconds=duration_seconds(self.look_back))
        except ValueError:  # the position of a first load
            return ""
        except OverflowError:  # before the calendar begins
            return ""
        return _digits(earlier) + seq[14:]

    def of_time(self, time: datetime) -> str:
        """The smallest position at ``time``, which is UTC unless it says otherwise."""
        if time.tzinfo is not None:
            time = time.astimezone(timezone.utc)
        return (_digits(time) + f"{time.microsecond // 10000:02d}").ljust(self.width, "0")


def _digits(time: datetime) -> str:
    # strftime does not pad years before 1000
    return f"{time.year:04d}{time:%m%d%H%M%S}"


def positions(settings: dict[str, object]) -> QlikPositions:
    """The arithmetic of a table's source system."""
    return QlikPositions(look_back=str(settings["look_back"]))
