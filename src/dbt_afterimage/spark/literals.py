"""Values as Spark SQL writes them."""

from __future__ import annotations

from collections.abc import Iterable


def text(value: str) -> str:
    """A text as an SQL literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def texts(values: Iterable[str]) -> str:
    """An array of texts, typed also when it is empty."""
    listed = ", ".join(map(text, values))
    return f"array({listed})" if listed else "cast(array() as array<string>)"


def timestamp(moment: str | None) -> str:
    """A timestamp, given as text, as SQL."""
    return f"timestamp {text(moment)}" if moment else "cast(null as timestamp)"
