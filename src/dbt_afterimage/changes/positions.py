"""Arithmetic on change_seq, which differs by source system: width, look-back, the next position."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from dbt_afterimage.settings import duration_seconds


@dataclass(frozen=True)
class QlikPositions:
    """Qlik: 35 digits, YYYYMMDDhhmmss, hundredths, then a 19-digit counter (Change Tables page)."""

    look_back: str
    width: int = 35

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
        """
        try:
            time = datetime.strptime(seq[:14], "%Y%m%d%H%M%S")
        except ValueError:  # the position of a first load
            return ""
        earlier = time - timedelta(seconds=duration_seconds(self.look_back))
        return earlier.strftime("%Y%m%d%H%M%S") + seq[14:]

    def of_time(self, time: datetime) -> str:
        """The smallest position at ``time`` (UTC)."""
        return (time.strftime("%Y%m%d%H%M%S") + f"{time.microsecond // 10000:02d}").ljust(
            self.width, "0"
        )


def positions(settings: dict[str, object]) -> QlikPositions:
    """The arithmetic of a table's source system."""
    return QlikPositions(look_back=str(settings["look_back"]))
