"""A record is known again by its values, whatever the types of the raw table and its log's age."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.functional.dbt_project import DbtProject
from tests.functional.people import HEADERS, STAGING, People, seq, start
from tests.functional.project_files import changes_model

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODELS = {**STAGING, **changes_model("people", "stg_people")}
TYPES = {"fee": "decimal(9,2)", "at": "timestamp", "is_paid": "boolean"}
TYPED = {**HEADERS, "id": "int", **TYPES}
AS_TEXT = {**HEADERS, "id": "int", **dict.fromkeys(TYPES, "string")}


def reasons(people: People) -> list[tuple[Any, ...]]:
    return people.rows("changes_rejected", "reject_reason, change_oper", "reject_reason")


def is_conserved(people: People) -> bool:
    _, result, _ = people.dbt("test").results  # between the hooks
    return (result.node.name[:9], result.status, result.failures) == ("conserved", "pass", 0)


def test_a_raw_column_that_becomes_text_is_declared_alone_and_its_records_are_known(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> None:
    people = start(make_dbt_project(tmp_path, schema="hashes"), spark, table_format, MODELS)
    people.land(TYPED, [(seq(1), "I", 1, "1.25", "2026-03-02 07:30:00", "true")])
    people.dbt("run")

    people.declare(TYPES)
    landed: list[tuple[Any, ...]] = [
        (seq(1), "I", 1, "1.250", "2026-03-02T07:30:00Z", "TRUE"),
        (seq(2), "B", 1, "1.25", "2026-03-02 07:30:00", "true"),
        (seq(2), "U", 1, "7.5", "2026-03-02 07:30:00", "f"),
    ]
    people.land(AS_TEXT, landed)
    people.dbt("run")
    assert reasons(people) == []
    assert people.rows("changes", "change_oper, fee, is_paid", "change_seq") == [
        ("I", Decimal("1.25"), True),
        ("U", Decimal("7.50"), False),
    ]
    assert is_conserved(people)

    # a copy with another value; and two that a cast would make equal
    landed += [
        (seq(1), "I", 1, "1.26", "2026-03-02 07:30:00", "true"),
        (seq(3), "I", 3, "1.238", None, None),
        (seq(3), "I", 3, "1.239", None, None),
    ]
    people.land(AS_TEXT, landed)
    people.dbt("run")
    assert reasons(people) == [
        ("conflicting_duplicate", "I"),
        ("uncastable_value:fee", "I"),
        ("uncastable_value:fee", "I"),
    ]
    assert is_conserved(people)


def test_a_log_with_hashes_of_an_earlier_form_goes_on(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> None:
    people = start(make_dbt_project(tmp_path, schema="old_hashes"), spark, table_format, MODELS)
    people.declare({"fee": "decimal(9,2)"})
    columns = {**HEADERS, "id": "int", "fee": "string"}
    landed: list[tuple[Any, ...]] = [
        (seq(1), "I", 1, "1.25"),
        (seq(2), "B", 1, "1.25"),
        (seq(2), "U", 1, "7.50"),
        (seq(3), "I", 3, "much"),
    ]
    people.land(columns, landed)
    people.dbt("run")
    # as an earlier version left them
    changes = people.name("changes")
    spark.sql(f"update {changes} set record_hash = 1, before_record_hash = before_record_hash + 1")
    spark.sql(f"update {changes}_rejected set record_hash = 2")
    spark.sql(f"alter table {changes} unset tblproperties ('afterimage.hashed_after')")

    landed += [(seq(4), "I", 4, "4.00")]
    people.land(columns, landed)
    people.dbt("run")
    assert people.rows("changes", "change_oper, fee, before.fee", "change_seq") == [
        ("I", Decimal("1.25"), None),
        ("U", Decimal("7.50"), Decimal("1.25")),
        ("I", Decimal("4.00"), None),
    ]
    assert reasons(people) == [("uncastable_value:fee", "I")]
    assert is_conserved(people)
    # what is recorded from then on is compared by its content
    landed += [(seq(4), "I", 4, "4.01")]
    people.land(columns, landed)
    people.dbt("run")
    assert reasons(people) == [("conflicting_duplicate", "I"), ("uncastable_value:fee", "I")]
    before = people.properties("changes")
    people.dbt("run")
    assert people.properties("changes") == before
