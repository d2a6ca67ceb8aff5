"""Spark's errors as a user wants them: the sentence, without the logical plan that follows it."""

from __future__ import annotations

import re

# `... SQLSTATE: 42703; line 3 pos 8;` ends the sentence; the plan stands in the lines after it.
_SENTENCE_END = re.compile(r"SQLSTATE: \w+[^\n]*")


def without_plan(text: str) -> str:
    """The text up to the end of Spark's sentence; text without such an end stays as it is."""
    end = _SENTENCE_END.search(text)
    return text[: end.end()] if end else text
