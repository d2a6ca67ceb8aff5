"""Framing: where one value ends and the next begins inside DATA.

The manual gives the bytes of a value, and not how values follow each other. So this is the one part
that may differ from a real server, and the one that can be replaced: the setting `framing` takes
the dotted name of a function with the signature of `Framing`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TypeAlias

from dbt_afterimage.sources.soliddb.value_columns import Column

Framing: TypeAlias = Callable[[bytes, Sequence[Column]], "list[bytes | None]"]
"""Cuts DATA into the bytes of its values.

Arguments: DATA of one record; the columns of its table at that time, in the order of their numbers.
Returns one element per value that was found, in their order; None is NULL. It need not count: that
there is one value per column is checked by the caller.
Raises `FramingError` where the bytes cannot be cut, or bytes that are not a value remain, and
`BlobReferenceError` where a value is not in DATA. Whatever else it raises rejects the record too.

It runs in Spark's workers: its module must be importable there, and import neither Spark nor dbt.
"""

_BLOB_REFERENCE = 0xFF
_LONG_VALUE = 0xFE


class FramingError(ValueError):
    """DATA cannot be cut into values; the text says at which byte."""


class BlobReferenceError(ValueError):
    """A value is stored outside of DATA, which holds a reference to it only."""


class UnknownFramingError(ValueError):
    """The setting `framing` names no function; the text is meant for the user."""


def length_prefixed(data: bytes, columns: Sequence[Column]) -> list[bytes | None]:
    """A 4-byte length before each value, most significant byte first; -1 is NULL."""
    values: list[bytes | None] = []
    position, end = 0, len(data)
    while position < end:
        start = position + 4
        if start > end:
            raise FramingError(
                f"{end - position} bytes left over at byte {position}, a length has 4"
            )
        length = int.from_bytes(data[position:start], "big", signed=True)
        if length == -1:
            values.append(None)
            position = start
            continue
        position = start + length
        if length < 0 or position > end:
            raise FramingError(
                f"the length at byte {start - 4} is {length}, and {end - start} bytes follow"
            )
        values.append(data[start:position])
    return values


def engine(data: bytes, columns: Sequence[Column]) -> list[bytes | None]:
    """The form in which the engine stores rows.

    A first byte below 0xFE is the length, 0 is NULL. 0xFE: the length is in the next four bytes,
    least significant first. 0xFF: a reference to a blob.
    """
    values: list[bytes | None] = []
    position, end = 0, len(data)
    while position < end:
        length, start = data[position], position + 1
        if length == _BLOB_REFERENCE:
            raise BlobReferenceError(
                f"value {len(values) + 1} is a reference to a blob, which the log does not hold"
            )
        if length == 0:
            values.append(None)
            position = start
            continue
        if length == _LONG_VALUE:
            start += 4
            if start > end:
                raise FramingError(
                    f"the length at byte {position} has 4 bytes, {end - position - 1} follow"
                )
            length = int.from_bytes(data[position + 1 : start], "little")
        if start + length > end:
            raise FramingError(
                f"the length at byte {position} is {length}, and {end - start} bytes follow"
            )
        position = start + length
        values.append(data[start:position])
    return values


FRAMINGS: dict[str, Framing] = {"length_prefixed": length_prefixed, "engine": engine}


def framing_of(name: str) -> Framing:
    """The framing that the setting names.

    Args:
        name: `length_prefixed`, `engine`, or a dotted name such as `our_framing.cut`.

    Raises:
        UnknownFramingError: there is no such function.
    """
    if name in FRAMINGS:
        return FRAMINGS[name]
    module, _, function = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise UnknownFramingError(_unknown(name, str(error))) from error
    if not callable(found):
        raise UnknownFramingError(_unknown(name, f"`{name}` is not a function"))
    framing: Framing = found
    return framing


def _unknown(name: str, why: str) -> str:
    return (
        f"`framing` is {name!r}: {why}. Allowed: {', '.join(FRAMINGS)}, decoded, or the dotted "
        "name of a function (data, columns) that returns the bytes of each value. Fix: correct "
        "the name, or install its module where dbt and Spark's workers run."
    )
