"""The staging view of a solidDB table: what it takes from the catalogue, what it leaves out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dbt_afterimage.settings import parse_settings
from tests.macro_renderer import CompilationError, MacroRenderer, normalised


def column(name: str, number: int, sql_type: str = "", **digits: int | None) -> dict[str, Any]:
    return {
        "column_name": name,
        "data_type_number": number,
        "sql_type": sql_type,
        "numeric_precision": digits.get("precision"),
        "numeric_scale": digits.get("scale"),
    }


def known_as(relation_id: int, name: str, schema: str = "BRANCH") -> dict[str, Any]:
    return {"id": relation_id, "newest_name": name, "newest_schema": schema}


ID = column("ID", 1, "INTEGER")


def stage(
    *columns: dict[str, Any],
    tables: list[dict[str, Any]] | None = None,
    is_landed: bool = True,
    declared: dict[str, str] | None = None,
    **settings: Any,
) -> str:
    """The SQL of branch.people, with what the landed catalogue answers."""
    tables = [known_as(500, "PEOPLE")] if tables is None else tables
    tables = [{**known, "last_number": number} for number, known in enumerate(tables)]

    def run_query(sql: str) -> SimpleNamespace:
        if "from the_log" in sql:
            return SimpleNamespace(rows=[])
        return SimpleNamespace(rows=columns if "column_name" in sql else tables)

    def settings_of(source_name: str, name: str) -> Any:
        return parse_settings(
            {
                "source_name": source_name,
                "name": name,
                "meta": {"afterimage": {"system": "soliddb", "key": ["id"], **settings}},
                "columns": {
                    name: {"name": name, "data_type": kind}
                    for name, kind in (declared or {}).items()
                },
            }
        )

    render = MacroRenderer(
        source=lambda source_name, table: SimpleNamespace(identifier=table),
        run_query=run_query,
        _raw_columns=lambda relation: [{"name": "id", "data_type": "int"}] if is_landed else [],
        _settings=settings_of,
        adapter=SimpleNamespace(
            afterimage=SimpleNamespace(
                describe_missing=lambda relation: f"{relation.identifier} does not exist."
            )
        ),
    )
    return normalised(str(render("stage_soliddb_table", "branch", "people", log="the_log")))


def error_of(*columns: dict[str, Any], **keywords: Any) -> str:
    with pytest.raises(CompilationError) as caught:
        stage(*columns, **keywords)
    return str(caught.value)


@pytest.mark.parametrize(
    ("of_catalogue", "cast"),
    [
        (column("C", 0, "VARCHAR"), None),
        (column("C", 1, "SMALLINT"), "try_cast(c as int)"),
        (column("C", 2, "REAL"), "try_cast(c as double)"),
        (column("C", 3, "DOUBLE PRECISION"), "try_cast(c as double)"),
        (column("C", 4, "DATE"), "try_cast(c as date)"),
        (column("C", 4, "TIME"), None),
        (column("C", 4, "TIMESTAMP"), "try_cast(c as timestamp)"),
        (column("C", 5, "DECIMAL", precision=12, scale=3), "try_cast(c as decimal(12, 3))"),
        (column("C", 5, "DECIMAL", precision=52, scale=3), None),
        (column("C", 5, "NUMERIC", precision=9), "try_cast(c as decimal(9, 0))"),
        (column("C", 6, "VARBINARY"), "unhex("),
        (column("C", 7, "WVARCHAR"), None),
        (column("C", 8, "BIGINT"), "try_cast(c as bigint)"),
    ],
)
def test_types_follow_from_the_catalogue(of_catalogue: dict[str, Any], cast: str | None) -> None:
    sql = stage(of_catalogue)
    assert "element_at(image, 'C') as c" in sql
    if cast is None:
        assert "raw_record, c from source" in sql
    else:
        assert cast in sql
        assert "then 'uncastable_value:c'" in sql


def test_a_declared_type_goes_before_that_of_the_catalogue() -> None:
    sql = stage(ID, column("SEEN_AT", 4, "TIMESTAMP"), declared={"id": "int", "Seen_At": "string"})
    assert "element_at(image, 'SEEN_AT') as Seen_At" in sql
    assert "uncastable_value:Seen_At" not in sql


def test_a_digit_that_a_timestamp_cannot_hold_is_a_reason() -> None:
    sql = stage(column("SEEN_AT", 4, "TIMESTAMP"))
    assert "or seen_at rlike '[.][0-9]{6}[0-9]*[1-9]' then 'uncastable_value:seen_at'" in sql


@pytest.mark.parametrize(
    ("capture_off", "skipped"),
    [
        ("skip_deletes", "when _is_capture_off and (_record_id = 4 or _ddl_code = 73) then 'N'"),
        (
            "skip_all",
            "when _is_capture_off and (_record_id in (1, 3, 4, 5) or _ddl_code = 73) then 'N'",
        ),
    ],
)
def test_transactions_that_should_not_be_propagated(capture_off: str, skipped: str) -> None:
    assert skipped in stage(ID, capture_off=capture_off)


def test_nothing_of_a_transaction_that_should_not_be_propagated_is_read_by_default() -> None:
    assert stage(ID) == stage(ID, capture_off="skip_all")


def test_transactions_that_should_not_be_propagated_can_be_kept() -> None:
    assert "when _is_capture_off" not in stage(ID, capture_off="keep")


def test_a_table_recreated_keeps_its_name_and_has_two_ids() -> None:
    sql = stage(ID, tables=[known_as(500, "PEOPLE"), known_as(501, "PEOPLE")])
    assert "relation_id in (500, 501)" in sql


def test_a_renamed_table_error_says_its_name() -> None:
    message = error_of(ID, tables=[known_as(500, "PERSONS")])
    assert "has no table people, which source table branch.people names" in message
    assert "It is called PERSONS now. Fix: set the `identifier`" in message


def test_a_table_that_the_catalogue_lacks_is_an_error() -> None:
    assert "Fix: set the `identifier`" in error_of(ID, tables=[])


def test_a_name_in_two_schemas_needs_a_setting() -> None:
    tables = [known_as(500, "PEOPLE"), known_as(600, "PEOPLE", "OTHER")]
    message = error_of(ID, tables=tables)
    assert "several schemas have a table people" in message
    assert "BRANCH, OTHER" in message
    assert "relation_id in (600)" in stage(ID, tables=tables, table_schema="other")


def test_one_id_of_a_name_can_be_chosen() -> None:
    tables = [known_as(500, "PEOPLE"), known_as(600, "PEOPLE")]
    assert "relation_id in (600)" in stage(ID, tables=tables, relation_id=600)
    message = error_of(ID, tables=tables, relation_id=700)
    assert "has no table people with the id 700, which source table branch.people" in message


def test_a_column_with_a_name_of_the_contract_is_an_error() -> None:
    message = error_of(column("CHANGE_SEQ", 0))
    assert "table branch.people has a data column `change_seq`" in message


def test_without_a_landed_catalogue_the_declared_columns_are_there() -> None:
    sql = stage(is_landed=False, declared={"id": "int"})
    assert "relation_id in (-1)" in sql
    assert "try_cast(id as int)" in sql
    assert "sys_columns does not exist. Fix: " in error_of(is_landed=False)
