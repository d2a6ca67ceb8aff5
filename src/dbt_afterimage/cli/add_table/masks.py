"""Which mask settings read the change masks of sampled records right.

The generic test `change_mask_fits` checks the same over all records of a table; here a sample is
enough to propose `mask_byte_order`, `mask_first_data_bit` and `lob_columns`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dbt_afterimage.cli.add_table.raw_schema import ChangeRecord

BYTE_ORDERS = ("msb_first", "lsb_first")


@dataclass(frozen=True)
class MaskLayout:
    """A way to read masks: byte order, and the bit of the first data column."""

    byte_order: str
    first_data_bit: int


@dataclass(frozen=True)
class MaskReading:
    """How well a layout reads the sampled masks.

    Attributes:
        layout: the layout.
        records: how many records say something about it.
        fitting: how many of them it reads right.
        lobs: columns that changed in updates whose bits no record sets: large objects.
        surplus: bits of updates whose column did not change; the right layout has few.
    """

    layout: MaskLayout
    records: int
    fitting: int
    lobs: tuple[str, ...]
    surplus: int


def bits(mask: str, byte_order: str) -> set[int]:
    """The bits that are set in a mask of hex text, from 0, the least significant."""
    digits = mask.strip().lower().removeprefix("0x")
    data = bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2))
    number = int.from_bytes(data, "big" if byte_order == "msb_first" else "little")
    return {bit for bit in range(number.bit_length()) if number >> bit & 1}


def fits(
    records: Sequence[ChangeRecord],
    columns: Sequence[str],
    may_be_lobs: Sequence[str],
    layouts: Sequence[MaskLayout],
    header_behind: int = 0,
) -> list[MaskReading]:
    """How well each layout reads the records' masks, the best first; among equals the given order.

    Args:
        records: of a change table.
        columns: its data columns, in the order of the mask's bits.
        may_be_lobs: columns whose type may be that of a large object.
        layouts: those to compare, the default first.
        header_behind: header columns behind the first data column, whose bits may follow.
    """
    found = [_read(records, columns, may_be_lobs, layout, header_behind) for layout in layouts]
    return sorted(found, key=lambda fit: (-fit.fitting, len(fit.lobs), fit.surplus))


def _read(
    records: Sequence[ChangeRecord],
    columns: Sequence[str],
    may_be_lobs: Sequence[str],
    layout: MaskLayout,
    header_behind: int,
) -> MaskReading:
    pairs = list(_updates(records))
    set_anywhere = {
        bit
        for record in records
        if record.mask and record.operation in ("I", "U")
        for bit in _readable(record.mask, layout.byte_order) or ()
    }
    changed_anywhere = {place for _, changed in pairs for place in changed}
    lobs = {
        place
        for place in changed_anywhere
        if columns[place] in may_be_lobs and place + layout.first_data_bit not in set_anywhere
    }
    end = layout.first_data_bit + len(columns) + header_behind
    fitting = surplus = total = 0
    for record, changed in [
        *pairs,
        *((record, frozenset[int]()) for record in records if record.operation in ("I", "D")),
    ]:
        if record.mask is None:
            continue
        total += 1
        found = _readable(record.mask, layout.byte_order)
        if found is None:
            continue
        needed = {place + layout.first_data_bit for place in changed - lobs}
        is_insert_right = (
            record.operation != "I" or min(found, default=end) >= layout.first_data_bit
        )
        # only values that are there can have been inserted or identify a row
        has_values = record.operation == "U" or all(
            record.hashes[bit - layout.first_data_bit] is not None
            for bit in found
            if record.operation == "D" and 0 <= bit - layout.first_data_bit < len(record.hashes)
        )
        if needed <= found and max(found, default=0) < end and is_insert_right and has_values:
            fitting += 1
        if record.operation == "U":
            surplus += len(found - needed)
    return MaskReading(
        layout, total, fitting, tuple(columns[place] for place in sorted(lobs)), surplus
    )


def _readable(mask: str, byte_order: str) -> set[int] | None:
    try:
        return bits(mask, byte_order)
    except ValueError:
        return None


def _updates(records: Sequence[ChangeRecord]) -> Iterator[tuple[ChangeRecord, frozenset[int]]]:
    """Updates with a mask and a before image, and the places of the columns that differ."""
    before = {record.change_seq: record for record in records if record.operation == "B"}
    for record in records:
        other = before.get(record.change_seq)
        if record.operation == "U" and record.mask is not None and other is not None:
            yield (
                record,
                frozenset(
                    place
                    for place, (new, old) in enumerate(
                        zip(record.hashes, other.hashes, strict=True)
                    )
                    if new != old
                ),
            )
