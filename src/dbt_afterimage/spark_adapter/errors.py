"""Spark's errors as a user wants them: the sentence, without the logical plan that follows it."""

from __future__ import annotations

import re

# `... SQLSTATE: 42703; line 3 pos 8;` ends the sentence; the plan stands in the lines after it, up
# to the next exception of a chain. Lines of code in a traceback are indented and stay.
_PLAN = re.compile(
    r"^(\S[^\n]*SQLSTATE: \w+[^\n]*)\n.*?(?=\n\n(?:The above|During handling)|\Z)",
    re.DOTALL | re.MULTILINE,
)


def without_plan(text: str) -> str:
    """An error's text, or a traceback, without the plans; text without any stays as it is."""
    return _PLAN.sub(r"\1", text)
