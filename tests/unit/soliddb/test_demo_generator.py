"""The bank branch's data shows what the demo promises, in the binary form."""

from __future__ import annotations

import pytest

from afterimage_demo.soliddb.generate import BankData, generate_bank
from afterimage_demo.soliddb.tables import TABLES


@pytest.fixture(scope="module")
def data() -> BankData:
    return generate_bank()


def test_the_same_seed_gives_the_same_bytes(data: BankData) -> None:
    again = generate_bank()
    for one, other in zip(data.batches, again.batches, strict=True):
        assert one.tables == other.tables
    assert generate_bank(seed=8).batches[0].tables != data.batches[0].tables


def test_every_record_id_and_every_type_occurs(data: BankData) -> None:
    rows = [row for batch in data.batches for row in batch.tables["sys_log"].to_pylist()]
    assert {row["recid"] for row in rows} == {None, 1, 3, 4, 5, 6, 7, 12, 13}
    assert {row["flags"] for row in rows} == {0, 1, 2, 65}
    types = {column.type_number for table in TABLES.values() for column in table.columns}
    assert types == set(range(9))


def test_a_batch_ends_in_the_middle_of_a_transaction(data: BankData) -> None:
    last = data.batches[0].tables["sys_log"].to_pylist()[-1]
    first = data.batches[1].tables["sys_log"].to_pylist()[0]
    assert last["recid"] == 1
    assert first["recid"] == 12
    assert first["trxid"] == last["trxid"]


@pytest.mark.parametrize("wrong", [{"scale": 0}, {"batches": 0}])
def test_sizes_below_one_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be 1 or more"):
        generate_bank(**wrong)
