"""What goes wrong on the way from the replication tool to the raw tables.

Delivery is at least once and in no guaranteed order: records are repeated, within a batch and
in the next one, an update arrives before its before image, or a batch later, alone or with it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from afterimage_demo.qlik import RawRow
from afterimage_demo.tables import Table

REPEAT_EVERY = 97
REPEAT_DISTANCE = 5
HELD_BACK_BEHIND = 3
"""Number of records of the table that follow an update that arrives a batch later."""

Record = TypeVar("Record")


def repeat_some(records: list[Record]) -> list[Record]:
    """Return the records with some of them repeated, a few records later."""
    repeated: list[Record] = []
    for number, record in enumerate(records):
        repeated.append(record)
        if number % REPEAT_EVERY == REPEAT_EVERY // 2:
            repeated.append(records[number - REPEAT_DISTANCE])
    return repeated


def reverse_one_pair(records: list[RawRow]) -> None:
    """Put the first update in front of its before image."""
    for number, record in enumerate(records[:-1]):
        if record["header__change_oper"] == "B" and _are_pair(record, records[number + 1]):
            records[number], records[number + 1] = records[number + 1], record
            return


def deliver_again(table: Table, earlier: list[RawRow], later: list[RawRow]) -> None:
    """Send the first record of a batch and its last three again with the next batch.

    The last ones are within the look-back; the first one is far behind it.
    """
    partition = _partition_of(table, later)
    later[:0] = [record | partition for record in (earlier[0], *earlier[-3:])]


def split_first_pair(earlier: list[RawRow], later: list[RawRow]) -> None:
    """Let the first before image of a batch arrive at the end of the batch before."""
    assert _are_pair(later[0], later[1])
    earlier.append(later.pop(0))


def hold_back_an_update(
    table: Table, earlier: list[RawRow], later: list[RawRow], spoilt: Collection[str | None]
) -> None:
    """Let an update near the end of a batch arrive with the next one: newer ones are there then.

    spoilt: change_seq of malformed records, which stay where they are.
    """
    for number in range(len(earlier) - 2 - HELD_BACK_BEHIND, -1, -1):
        pair = earlier[number : number + 2]
        if _are_pair(*pair) and pair[0]["header__change_seq"] not in spoilt:
            del earlier[number : number + 2]
            later[:0] = [record | _partition_of(table, later) for record in pair]
            return


def _partition_of(table: Table, records: list[RawRow]) -> RawRow:
    """The partition that the records of a batch are in, where the table has such a column."""
    return {
        name: records[0][name] for name in table.header_columns if name == "header__partition_name"
    }


def _are_pair(before: RawRow, update: RawRow) -> bool:
    return (
        before["header__change_oper"] == "B"
        and update["header__change_oper"] == "U"
        and before["header__change_seq"] == update["header__change_seq"]
    )
