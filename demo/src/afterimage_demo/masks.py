"""The ways in which Qlik Replicate writes a change mask, all of the same bits.

Bit i (0 = least significant) stands for the column with the 1-based ordinal i + 1 of the
change table, its header columns included. Binary masks hold bits 0 to 7 in byte 0 and may
leave out trailing zero bytes (Qlik's page "Change Tables"). Hex text has the most significant
byte first, as seen in messages: `008080` over 16 columns means columns 8 and 16.

A form takes the bits and the number of columns that they cover, and returns the stored value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

MASK_BYTES_AT_MOST = 128
"""The column is `varbinary(128)`, that is 1,024 columns."""

MaskForm = Callable[[int, int], "str | bytes"]


def bits_of(ordinals: Iterable[int]) -> int:
    """Return the mask with the bits of these 1-based column ordinals set."""
    bits = 0
    for ordinal in ordinals:
        bits |= 1 << (ordinal - 1)
    return bits


def full_hex(bits: int, columns: int) -> str:
    """Upper case, as many whole bytes as the columns need."""
    return f"{bits:0{2 * _bytes_for(columns)}X}"


def short_hex(bits: int, columns: int) -> str:
    """Upper case without leading zeros: may be of odd length, and empty when no bit is set."""
    return f"{bits:X}" if bits else ""


def message_hex(bits: int, columns: int) -> str:
    """Upper case, columns // 8 + 1 bytes as in messages: at times one more than needed."""
    return f"{bits:0{2 * (columns // 8 + 1)}X}"


def lower_hex(bits: int, columns: int) -> str:
    """Lower case, as many whole bytes as the columns need."""
    return full_hex(bits, columns).lower()


def prefixed_hex(bits: int, columns: int) -> str:
    """Lower case behind `0x`, as some loaders print binary values."""
    return "0x" + lower_hex(bits, columns)


def trimmed_bytes(bits: int, columns: int) -> bytes:
    """Byte 0 first, trailing zero bytes left out; empty when no bit is set."""
    return padded_bytes(bits, columns).rstrip(b"\x00")


def padded_bytes(bits: int, columns: int) -> bytes:
    """Byte 0 first, as many bytes as the columns need."""
    return bits.to_bytes(_bytes_for(columns), "little")


def widest_bytes(bits: int, columns: int) -> bytes:
    """Byte 0 first, filled with zeros to the widest mask that the column can hold."""
    return bits.to_bytes(MASK_BYTES_AT_MOST, "little")


def _bytes_for(columns: int) -> int:
    return (columns + 7) // 8
