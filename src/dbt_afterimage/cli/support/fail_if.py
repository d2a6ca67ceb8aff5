"""Conditions such as `lag > 1h or unresolved > 0`, for monitors."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from dbt_afterimage.cli.frame import UsageProblem
from dbt_afterimage.settings.suggestions import did_you_mean

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "%": 0.01}
_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
}
_ONE = re.compile(r"\s*(\w+)\s*(>=|<=|>|<|=)\s*(\d+(?:\.\d+)?)\s*([smhd%]?)\s*")


@dataclass(frozen=True)
class Condition:
    """A comparison of a measure with a number; seconds for times, 0 to 1 for shares."""

    measure: str
    comparison: str
    limit: float
    text: str

    def holds(self, values: Mapping[str, float | None]) -> bool:
        """Whether it holds of these measures; never of one that is not known."""
        value = values[self.measure]
        return value is not None and _OPERATORS[self.comparison](value, self.limit)


def parse_conditions(text: str, measures: Iterable[str]) -> list[Condition]:
    """Conditions that `or` joins.

    Args:
        text: such as `lag > 1h or late_share > 5%`; units are s, m, h, d and %.

    Raises:
        UsageProblem: the text is not such a condition, or names another measure.
    """
    allowed = list(measures)
    found = []
    for part in re.split(r"\bor\b", text):
        match = _ONE.fullmatch(part)
        if not match:
            raise UsageProblem(
                f"`--fail-if`: got {part.strip()!r}. Allowed: MEASURE OPERATOR NUMBER with a unit "
                "of s, m, h, d or %, several of them joined by `or`; operators are > >= < <= =. "
                "Fix: write for example --fail-if 'lag > 1h or unresolved > 0'."
            )
        measure, comparison, number, unit = match.groups()
        if measure not in allowed:
            raise UsageProblem(
                f"`--fail-if`: there is no measure {measure}.{did_you_mean(measure, allowed)} "
                f"Allowed: {', '.join(allowed)}. Fix: correct the name."
            )
        found.append(Condition(measure, comparison, float(number) * _UNITS[unit], part.strip()))
    return found
