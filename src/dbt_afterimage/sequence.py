"""Positions in a source's total order (change_seq): their form in each system, and arithmetic.

A settings class names the one of its system (settings/). All positions are text of fixed width
per table that compares correctly as text.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import ClassVar, Literal

DURATION_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}

_DURATION = re.compile(r"([0-9]+)\s+(second|minute|hour|day)s?")


@dataclass(frozen=True)
class ChangeSequence(ABC):
    """The positions of one table: their form, and the look-back from one of them.

    Attributes:
        look_back: how far behind the greatest position a run reads, in the unit of the system.
        widths: how many digits positions have. Where there are several, a table has one of them.
        base: of the digits, 10 or 16; digits of base 16 are in capital letters.
        is_made_by_staging: of a number, or checked where it is decoded, so that each is
            well-formed or NULL.
    """

    look_back: str | int

    widths: ClassVar[tuple[int, ...]]
    base: ClassVar[Literal[10, 16]] = 10
    is_made_by_staging: ClassVar[bool] = False

    @classmethod
    def form(cls) -> str:
        """In words, for messages: `35 digits`."""
        widths = " or ".join(map(str, cls.widths))
        return f"{widths} {'digits' if cls.base == 10 else 'hexadecimal digits'}"

    @classmethod
    def pattern(cls) -> str:
        """A regular expression for the whole text, the same for Python and for Spark."""
        digits = "[0-9]" if cls.base == 10 else "[0-9A-F]"
        return f"^({'|'.join(f'{digits}{{{width}}}' for width in cls.widths)})$"

    @classmethod
    def valid_pattern(cls) -> str:
        """Like `pattern`, but matches no text of that form that cannot be a change's position."""
        return cls.pattern()

    @classmethod
    def is_form_of(cls, text: str) -> bool:
        """Whether a text has the form of a position."""
        return re.fullmatch(cls.pattern(), text) is not None

    @property
    def first(self) -> str:
        """The position of a first full load: before every change."""
        return "0" * min(self.widths)

    def up_to_now(self, seq: str) -> str:
        """``seq``, or the position of this moment if ``seq`` has a later time.

        One source clock that is ahead must not end the look-back for all other records.
        """
        now = self.of_time(datetime.now(timezone.utc))
        return seq if now is None else min(seq, now)

    def after(self, seq: str) -> str:
        """The smallest position greater than ``seq``."""
        return self._moved(seq, 1)

    def before(self, seq: str) -> str:
        """The greatest position smaller than ``seq``; "" when there is none."""
        return self._moved(seq, -1)

    @abstractmethod
    def before_look_back(self, seq: str) -> str:
        """The greatest position that the look-back from ``seq`` no longer covers.

        Args:
            seq: a well-formed position, or the position of a first load.

        Returns:
            A position; "", which sorts before all of them, when the look-back covers everything.
        """

    @abstractmethod
    def before_look_back_sql(self, seq: str) -> str:
        """The same for an SQL expression; '' for NULL."""

    def not_read_again(self, seq: str) -> str:
        """The greatest position that no run reads by position once the log has come to ``seq``.

        The last position itself is read again: a load may have taken the one of the next change.
        """
        return min(self.before_look_back(self.up_to_now(seq)), self.before(seq))

    def of_time(self, time: datetime) -> str | None:
        """The smallest position at ``time``; None if positions do not contain the time.

        Args:
            time: UTC, unless it says otherwise.
        """
        return None

    def _moved(self, seq: str, by: int) -> str:
        number = int(seq, self.base) + by
        if number < 0:
            return ""
        digits = str(number) if self.base == 10 else f"{number:X}"
        # behind the greatest text of this width, the next one is longer
        return digits.zfill(len(seq)) if len(digits) <= len(seq) else seq + "0"


@dataclass(frozen=True)
class NumberedChangeSequence(ChangeSequence):
    """Positions that count changes; the look-back is a number of them."""

    look_back: int

    def before_look_back(self, seq: str) -> str:
        """`look_back` is a number of changes."""
        earlier = self._moved(seq, -self.look_back)
        return earlier if earlier.strip("0") else ""

    def before_look_back_sql(self, seq: str) -> str:
        """The same for an SQL expression."""
        if not self.look_back:
            return f"coalesce({seq}, '')"
        if self.base != 10:
            raise ValueError(f"A look-back of {self.look_back} in digits of base {self.base}")
        number = f"cast({seq} as decimal(38, 0))"
        return (
            f"if({number} > {self.look_back}, "
            f"lpad(cast({number} - {self.look_back} as string), {self.widths[0]}, '0'), '')"
        )


@dataclass(frozen=True)
class OpenEdgeChangeSequence(NumberedChangeSequence):
    """OpenEdge: `_Change-Sequence`, an int64 within one source table, padded with zeros."""

    widths: ClassVar[tuple[int, ...]] = (19,)
    is_made_by_staging: ClassVar[bool] = True


@dataclass(frozen=True)
class SolidDbChangeSequence(NumberedChangeSequence):
    """solidDB: LOGADDR as hex text; 20 bytes by the manual, 28 on newer servers."""

    widths: ClassVar[tuple[int, ...]] = (40, 56)
    base: ClassVar[Literal[10, 16]] = 16
    # `sources.soliddb.raw.check_records` lets no other address into the decoded log
    is_made_by_staging: ClassVar[bool] = True


@dataclass(frozen=True)
class ChangeFeedSequence(NumberedChangeSequence):
    """A change feed: the parts of the setting `sequence`, each as hex text of fixed width.

    A part has 16, 32 or 48 digits (`settings.change_feed.SEQUENCE_WIDTHS`), a table has up to six.
    """

    widths: ClassVar[tuple[int, ...]] = tuple(range(16, 289, 16))
    base: ClassVar[Literal[10, 16]] = 16
    is_made_by_staging: ClassVar[bool] = True

    @property
    def first(self) -> str:
        """Shorter than a part, so that it sorts before the position 0 of a table of any width."""
        return "0"

    def after(self, seq: str) -> str:
        """The smallest text greater than ``seq``: before the next change, whatever the width."""
        return seq + "0"

    def before_look_back(self, seq: str) -> str:
        """The newest position itself: a batch may end between the two rows of an update."""
        return self.before(seq)

    def before_look_back_sql(self, seq: str) -> str:
        """The same for an SQL expression, or a text that sorts as it does: without the last 0."""
        rest, last = f"left({seq}, length({seq}) - 1)", f"right({seq}, 1)"
        lower = f"translate({last}, '123456789ABCDEF', '0123456789ABCDE')"
        return f"coalesce(concat({rest}, if({last} = '0', '', {lower})), '')"


@dataclass(frozen=True)
class QlikChangeSequence(ChangeSequence):
    """Qlik: 35 digits, YYYYMMDDhhmmss, hundredths, then a 19-digit counter (Change Tables page).

    Attributes:
        look_back: a duration, such as `15 minutes`.
    """

    look_back: str

    widths: ClassVar[tuple[int, ...]] = (35,)

    @classmethod
    def valid_pattern(cls) -> str:
        """With a month of the year, a day of the month and a time of the day."""
        days = {
            "0[13578]|1[02]": "0[1-9]|[12][0-9]|3[01]",
            "0[469]|11": "0[1-9]|[12][0-9]|30",
            "02": "0[1-9]|1[0-9]|2[0-8]",
        }
        dates = "|".join(f"({months})({numbers})" for months, numbers in days.items())
        fourth = "0[48]|[2468][048]|[13579][26]"
        leap_day = f"([0-9]{{2}}({fourth})|({fourth}|00)00)0229"
        times = "([01][0-9]|2[0-3])[0-5][0-9][0-5][0-9]"
        # the calendar begins with the year 1
        return f"^(?!0000)([0-9]{{4}}({dates})|{leap_day}){times}[0-9]{{21}}$"

    def before_look_back(self, seq: str) -> str:
        """`look_back` is a duration: the time in front of the counter goes back by it."""
        try:
            time = datetime.strptime(seq[:14], "%Y%m%d%H%M%S")
            earlier = time - timedelta(seconds=duration_seconds(self.look_back))
        except ValueError:  # the position of a first load
            return ""
        except OverflowError:  # before the calendar begins
            return ""
        return _digits(earlier) + seq[14:]

    def before_look_back_sql(self, seq: str) -> str:
        """The same for an SQL expression."""
        time = f"try_to_timestamp(left({seq}, 14), 'yyyyMMddHHmmss')"
        # not `least`, which leaves out NULL
        time = f"if({time} > current_timestamp(), current_timestamp(), {time})"
        earlier = f"date_format({time} - interval {self.look_back}, 'yyyyMMddHHmmss')"
        return f"coalesce({earlier} || substr({seq}, 15), '')"

    def of_time(self, time: datetime) -> str:
        """Digits of the time, to the hundredth of a second, and the lowest counter."""
        if time.tzinfo is not None:
            time = time.astimezone(timezone.utc)
        return (_digits(time) + f"{time.microsecond // 10000:02d}").ljust(self.widths[0], "0")


def duration_seconds(text: str) -> int:
    """Seconds of a duration such as `15 minutes` or `1 day`.

    Raises:
        ValueError: it is not a number and a unit.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(
            f"`{text}` is not a duration; allowed: a number and one of "
            f"{', '.join(u + 's' for u in DURATION_UNITS)}, such as `15 minutes`"
        )
    return int(match[1]) * DURATION_UNITS[match[2]]


def _digits(time: datetime) -> str:
    # strftime does not pad years before 1000
    return f"{time.year:04d}{time:%m%d%H%M%S}"
