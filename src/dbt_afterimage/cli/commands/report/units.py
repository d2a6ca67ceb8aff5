"""Numbers as people read them, and the tick marks of an axis in the same units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

_STEPS = (1, 2, 2.5, 5, 10)


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
        scale, name = self._scale(value)
        scaled = value / scale
        digits = 0 if abs(scaled) >= 10 or round(scaled, 1).is_integer() else 1
        return f"{scaled:,.{digits}f} {name}".rstrip()

    def ticks(self, greatest: float, most: int = 3) -> list[tuple[float, str]]:
        """Round values from 0 to at least the greatest value, each with its text."""
        scale, name = self._scale(greatest)
        rough = max(greatest, 1e-9) / scale / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * each for each in _STEPS if power * each >= rough * 0.999)
        if scale == self.scales[-1][0]:
            # the smallest scale counts things: no half of one
            step = max(1.0, math.ceil(step))
        count = max(1, math.ceil(greatest / scale / step - 1e-9))
        steps = [index * step for index in range(1, count + 1)]
        return [(0.0, "0"), *((each * scale, f"{each:,g} {name}".rstrip()) for each in steps)]

    def _scale(self, value: float) -> tuple[float, str]:
        for scale, name in self.scales:
            if abs(value) >= self.least * scale:
                return scale, name
        return self.scales[-1]


COUNT = Unit(((1e9, "bn"), (1e6, "M"), (1e3, "k"), (1, "")), 10)
SECONDS = Unit(((86400, "d"), (3600, "h"), (60, "min"), (1, "s")), 2)
BYTES = Unit(((1024**4, "TiB"), (1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"), (1, "B")), 1)


def moment(time: datetime | None, span: float | None = None) -> str:
    """A time as text, without its zone; `-` if it is not known.

    Args:
        span: seconds that an axis covers; leaves out what is the same along it, or too fine.
    """
    if time is None:
        return "-"
    if span is None:
        return time.strftime("%Y-%m-%d %H:%M")
    if span < 600:
        return time.strftime("%H:%M:%S")
    if span < 86400:
        return time.strftime("%H:%M")
    return time.strftime("%b %d %H:%M" if span < 5 * 86400 else "%Y-%m-%d")
