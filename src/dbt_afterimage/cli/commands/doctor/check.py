"""One check of `afterimage doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dbt_afterimage.errors import explained


@dataclass(frozen=True)
class Check:
    """The result of a check.

    Attributes:
        name: what was checked.
        state: warning: runs work, but a result may not be what is wanted; failed: runs fail.
        text: what was found, in one sentence.
        fix: what to do; "" where all is well.
    """

    name: str
    state: Literal["ok", "warning", "failed"]
    text: str
    fix: str = ""


def failed_by(error: Exception, name: str, fix: str = "") -> Check:
    """A failed check from an error. A fix in the error text takes precedence over `fix`."""
    text = " ".join(explained(str(error)).split())
    problem, _, own_fix = text.partition(" Fix: ")
    return Check(name, "failed", problem, own_fix or fix)
