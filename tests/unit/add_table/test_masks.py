"""Which mask layout reads sampled masks right; masks as in the vendor's documentation."""

from __future__ import annotations

import pytest

from dbt_afterimage.cli.add_table.masks import MaskLayout, bits, fits
from dbt_afterimage.cli.add_table.raw_schema import ChangeRecord

COLUMNS = ["id", "name", "notes", "total"]
MSB = MaskLayout("msb_first", 3)
LSB = MaskLayout("lsb_first", 3)
WITHOUT_HEADERS = MaskLayout("msb_first", 0)


def update(
    number: int, mask: str, before: tuple[int, ...], after: tuple[int, ...]
) -> list[ChangeRecord]:
    return [
        ChangeRecord("B", str(number), None, before),
        ChangeRecord("U", str(number), mask, after),
    ]


@pytest.mark.parametrize(
    ("mask", "byte_order", "expected"),
    [
        # captured: columns 8 and 16 of 16
        ("008080", "msb_first", {7, 15}),
        ("808000", "lsb_first", {7, 15}),
        ("0x3", "msb_first", {0, 1}),
        ("", "msb_first", set()),
    ],
)
def test_bits(mask: str, byte_order: str, expected: set[int]) -> None:
    assert bits(mask, byte_order) == expected


def test_the_byte_order_follows_from_what_updates_changed() -> None:
    records = update(1, "0010", (1, 5, 7, 8), (1, 6, 7, 8))
    best, *others = fits(records, COLUMNS, [], [LSB, MSB])
    assert (best.layout, best.fitting, best.records) == (MSB, 1, 1)
    assert [fit.fitting for fit in others] == [0]


def test_the_first_data_bit_follows_from_what_updates_changed() -> None:
    records = update(1, "02", (1, 5, 7, 8), (1, 6, 7, 8))
    assert fits(records, COLUMNS, [], [MSB, WITHOUT_HEADERS])[0].layout == WITHOUT_HEADERS


def test_an_insert_sets_no_bit_of_a_header_column() -> None:
    records = [ChangeRecord("I", "1", "0f", (1, 2, 3, 4))]
    assert fits(records, COLUMNS, [], [MSB, WITHOUT_HEADERS])[0].layout == WITHOUT_HEADERS


def test_a_column_that_changes_without_a_bit_is_a_large_object_if_its_type_may_be_one() -> None:
    records = [
        *update(1, "0010", (1, 5, 7, 8), (1, 6, 7, 8)),
        *update(2, "0000", (1, 6, 7, 8), (1, 6, 9, 8)),
    ]
    fit = fits(records, COLUMNS, ["name", "notes"], [MSB])[0]
    assert (fit.lobs, fit.fitting) == (("notes",), 2)
    fit = fits(records, COLUMNS, ["name"], [MSB])[0]
    assert (fit.lobs, fit.fitting) == ((), 1)


def test_the_default_wins_where_nothing_speaks_against_it() -> None:
    assert fits([], COLUMNS, [], [LSB, MSB])[0].layout == LSB


def test_a_mask_that_is_no_hex_text_fits_no_layout() -> None:
    records = update(1, "zz", (1, 5, 7, 8), (1, 6, 7, 8))
    assert fits(records, COLUMNS, [], [MSB])[0].fitting == 0
