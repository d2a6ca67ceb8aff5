"""Values as Spark SQL writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def text(value: str) -> str:
    """A text as an SQL literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def texts(values: Iterable[str]) -> str:
    """An array of texts, typed also when it is empty."""
    listed = ", ".join(map(text, values))
    return f"array({listed})" if listed else "cast(array() as array<string>)"


def timestamp_as_text(moment: str, beside: str) -> str:
    """A timestamp, given as text, as SQL that Spark casts for each row.

    Spark writes timestamps into the code that it generates, and compiles it again for each of them;
    texts it does not.

    Args:
        beside: a column of the rows: of a constant alone Spark would make a timestamp at once.
    """
    return f"cast(concat(left(coalesce({beside}, ''), 0), {text(moment)}) as timestamp)"


_MOST_BATCHES = 100
"""Iceberg skips files by a set of up to 200 values."""


def is_of_batches(after: str | None, moments: Sequence[str] | None) -> str:
    """Condition: recorded in one of these batches.

    For two values or more, Spark makes a set, which it does not write into the code that it
    generates (`spark.sql.optimizer.inSetConversionThreshold`). No batch is of 1970.

    Args:
        after: the batch before them; None where there is none.
        moments: the batches; None where they are not known.
    """
    is_later = f"recorded_at > {timestamp(after)}" if after else "true"
    if not moments:
        return is_later
    if len(moments) > _MOST_BATCHES:
        return f"{is_later} and recorded_at <= {timestamp(max(moments))}"
    listed = ", ".join(map(timestamp, ["1970-01-01 00:00:00", *moments]))
    return f"recorded_at in ({listed})"


def timestamp(moment: str | None) -> str:
    """A timestamp, given as text, as SQL."""
    return f"timestamp {text(moment)}" if moment else "cast(null as timestamp)"
