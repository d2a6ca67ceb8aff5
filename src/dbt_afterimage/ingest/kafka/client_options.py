"""Options of Kafka's client, as they are given on the command line and in a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class OptionError(ValueError):
    """An option cannot be read; the text is meant for the user."""


def client_options(given: Sequence[str], file: Path | None) -> dict[str, str]:
    """Options by Kafka's own names; what is given goes before what the file says.

    Args:
        given: texts `name=value`.
        file: lines `name=value`; empty ones and those that begin with `#` count for nothing.

    Raises:
        OptionError: a text or a line is none of that form.
    """
    lines = file.read_text(encoding="utf-8").splitlines() if file else []
    of_file = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return {**dict(map(_parsed, of_file)), **dict(map(_parsed, given))}


def _parsed(text: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark or not name.strip():
        # the text itself may be secret
        raise OptionError(
            "an option is not of the form name=value, such as security.protocol=SSL. Fix: correct "
            "it, on the command line or in the file of --properties."
        )
    return name.strip(), value.strip()
