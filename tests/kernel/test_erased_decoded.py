"""Erased data on its way into a table of decoded records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_afterimage.erased.erased_decoded import record_identity, without_erased_data
from dbt_afterimage.erased.erasures import Erasure
from dbt_afterimage.storage.local_relation import local_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = (
    "kind string, table_schema string, table_name string, change_seq string, load_id string, "
    "image map<string,string>, before map<string,string>, raw_value string, record_hash bigint"
)
ANN, ADA = {"id": "1", "Name": "Ann"}, {"id": "1", "Name": "Ada"}
NULLED = {"id": "1", "Name": None}
RECORDS = [
    ("change", None, "people", "1", None, ANN, None, None, 1),
    ("change", None, "people", "2", None, ADA, ANN, "{}", 2),
    ("load", None, "people", "0", "first", ANN, None, None, 3),
    ("load", None, "people", "9", "later", ANN, None, None, 3),
    ("change", None, "pets", "1", None, ANN, None, None, 1),
    ("position", None, "people", "2", None, None, None, None, None),
]


def test_values_and_records_are_removed_by_hash_table_and_load(spark: SparkSession) -> None:
    rows = local_rows(spark, RECORDS, COLUMNS)
    identities = rows.select(record_identity(rows.columns)).collect()
    first, second, load = (identities[number][0] for number in (0, 1, 2))

    def erasure(columns: tuple[str, ...] | None, *hashes: int) -> Erasure:
        return Erasure("people_changes", "", columns, "2", "messages", hashes)

    assert without_erased_data(spark, rows, []) is rows
    of_columns = without_erased_data(spark, rows, [erasure(("NAME",), first, second, load)])
    found = {
        (row["table_name"], row["change_seq"], row["kind"]): row for row in of_columns.collect()
    }
    assert len(found) == len(RECORDS)
    assert found["people", "1", "change"]["image"] == NULLED
    assert found["people", "2", "change"]["image"] == NULLED
    assert found["people", "2", "change"]["before"] == NULLED
    assert found["people", "2", "change"]["raw_value"] is None
    assert found["people", "0", "load"]["image"] == NULLED
    assert found["people", "9", "load"]["image"] == ANN
    assert found["pets", "1", "change"]["image"] == ANN
    whole = without_erased_data(spark, rows, [erasure(None, first, second, load)])
    left = [(row["table_name"], row["change_seq"], row["kind"]) for row in whole.collect()]
    assert sorted(left) == [
        ("people", "2", "position"),
        ("people", "9", "load"),
        ("pets", "1", "change"),
    ]
