"""Names as Spark SQL writes them."""

from __future__ import annotations


def quoted(name: str) -> str:
    """The name of a column, or one part of a table's name, in backticks."""
    return "`" + name.replace("`", "``") + "`"
