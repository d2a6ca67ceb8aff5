"""Numbers and times as people read them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Unit:
    """A kind of number.

    Attributes:
        scales: length and name of each scale, the greatest first.
        least: a scale is used from this many of it on.
    """

    scales: tuple[tuple[float, str], ...]
    least: float

    def text(self, value: float | None) -> str:
        """A number in its scale, such as `12 KiB`; `-` if it is not known."""
        if value is None:
            return "-"
        scale, name = self.scale(value)
        scaled = value / scale
        digits = 0 if abs(scaled) >= 10 or round(scaled, 1).is_integer() else 1
        return f"{scaled:,.{digits}f} {name}".rstrip()

    def scale(self, value: float) -> tuple[float, str]:
        """Length and name of the scale in which a number is shown."""
        for scale, name in self.scales:
            if abs(value) >= self.least * scale:
                return scale, name
        return self.scales[-1]


COUNT = Unit(((1e9, "bn"), (1e6, "M"), (1e3, "k"), (1, "")), 10)
SECONDS = Unit(((86400, "d"), (3600, "h"), (60, "min"), (1, "s")), 2)
BYTES = Unit(((1024**4, "TiB"), (1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"), (1, "B")), 1)


def moment(time: datetime | None) -> str:
    """A time as text, without its zone; `-` if it is not known."""
    return "-" if time is None else time.strftime("%Y-%m-%d %H:%M")
