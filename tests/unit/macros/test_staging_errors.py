"""What stage_qlik_change_table says when it stops: macro, table, setting, what it got, the fix."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dbt_afterimage.settings import parse_settings
from tests.macro_renderer import CompilationError, MacroRenderer, normalised

HEADERS = {"header__change_seq": "string", "header__change_oper": "string"}
MASK = {"header__change_mask": "string"}
DATA = {"invoice_id": "bigint", "amount": "decimal(18,2)", "scan": "string"}
TAKEN = ["amount", "arrival", "recorded_at", "before", "outcome", "record_key"]
FROZEN = {"base": {"kind": "frozen"}}


def stage(
    columns: dict[str, str],
    settings: dict[str, Any] | None = None,
    base: str | None = None,
    base_columns: dict[str, str] | None = None,
) -> str:
    """The staging SQL of a table sales.invoices__ct; none of its columns is declared."""
    tables = {"sales.invoices__ct": columns, "sales.invoices": base_columns or DATA}

    def raw_columns(relation: str) -> list[dict[str, str]]:
        return [{"name": name, "data_type": kind} for name, kind in tables[relation].items()]

    def settings_of(source_name: str, name: str) -> Any:
        given = {"afterimage": {"system": "qlik_change_table", **(settings or {})}}
        return parse_settings({"source_name": source_name, "name": name, "meta": given})

    render = MacroRenderer(_raw_columns=raw_columns, _settings=settings_of)
    return str(render("stage_qlik_change_table", "sales", "invoices__ct", base=base))


def error_of(*arguments: Any, **keywords: Any) -> str:
    with pytest.raises(CompilationError) as caught:
        stage(*arguments, **keywords)
    return str(caught.value)


def check(error: str, parts: list[str]) -> None:
    """Every error names the macro and the table, and ends in a fix."""
    assert error.startswith("`stage_qlik_change_table`: ")
    missing = [part for part in ["sales.invoices", "Fix: ", *parts] if part not in error]
    assert missing == [], error


def test_a_table_in_order_has_no_error() -> None:
    settings = {"lob_columns": ["SCAN"], "mask_columns": ["amount", "gone", "invoice_id"], **FROZEN}
    assert stage({**HEADERS, **MASK, **DATA}, settings, base="invoices")


@pytest.mark.parametrize(
    ("columns", "settings", "parts"),
    [
        (
            {"header__change_oper": "string", **DATA},
            {},
            ["`header__change_seq`", "header__change_oper, invoice_id", "`header_prefix`"],
        ),
        (
            {"header__change_seq": "string", **DATA},
            {},
            ["`header__change_oper`", "header__change_seq, invoice_id", "now 'header__'"],
        ),
        (
            {**HEADERS, **DATA},
            {"header_prefix": "hdr_"},
            ["`hdr_change_seq`", "header__change_seq", "`header_prefix` (now 'hdr_')"],
        ),
        (
            {**HEADERS, **DATA},
            {"header_prefix": ""},
            ["`change_seq`", "header__change_seq", "`header_prefix` (now '')"],
        ),
        (HEADERS, {}, ["header columns only", "`header_prefix` (now 'header__')"]),
        (
            {**HEADERS, "partition_name": "string"},
            {},
            ["header columns only", "`header_prefix` (now 'header__')"],
        ),
    ],
)
def test_header_columns(
    columns: dict[str, str], settings: dict[str, Any], parts: list[str]
) -> None:
    check(error_of(columns, settings), parts)


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        (
            {"lob_columns": ["scam"]},
            ["`lob_columns`", "`scam`", "invoice_id, amount, scan", "correct the name"],
        ),
        # a header column is not a data column
        ({"lob_columns": ["header__change_seq"]}, ["`lob_columns`", "`header__change_seq`"]),
        (
            {"mask_columns": ["invoice_id", "scan"]},
            ["`mask_columns`", "leaves out `amount`", "`lob_columns`", "add the column"],
        ),
    ],
)
def test_settings_that_name_columns(settings: dict[str, Any], parts: list[str]) -> None:
    check(error_of({**HEADERS, **MASK, **DATA}, settings), parts)


def test_additional_header_columns_are_columns_of_the_change() -> None:
    columns = {**HEADERS, "header__UserName": "string", "header__port": "int", **DATA}
    assert "as username" not in normalised(stage(columns)).lower()
    sql = normalised(
        stage(columns, {"header_columns": ["USERNAME", "port"], **FROZEN}, base="invoices")
    )
    assert (
        "cast(null as string) as stream_position, header__UserName as username, "
        "cast(header__port as string) as port, cast(null as array<string>)"
    ) in sql
    assert (
        "cast(null as string) as stream_position, cast(null as string) as username, "
        "cast(null as string) as port, cast(null as array<string>)"
    ) in sql


def test_without_a_prefix_an_additional_header_column_is_no_data_column() -> None:
    columns = {"change_seq": "string", "change_oper": "string", "UserName": "string", **DATA}
    sql = normalised(stage(columns, {"header_prefix": "", "header_columns": ["username"]}))
    assert "UserName as username" in sql
    assert sql.count("UserName as username") == 1
    assert "raw_record, invoice_id, amount, scan from source" in sql


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("host", ["has no column `header__host`", "Its header columns: header__change_seq"]),
        ("header__username", ["has no column `header__header__username`", "without the prefix"]),
        # of the data, of the contract, of the change log, and of its rejected records
        *((name, ["takes the name", "renames"]) for name in TAKEN),
    ],
)
def test_header_columns_that_cannot_be_taken(name: str, parts: list[str]) -> None:
    taken = {f"header__{taken}": "string" for taken in TAKEN}
    columns = {**HEADERS, "header__username": "string", **taken, **DATA}
    error = error_of(columns, {"header_columns": ["username", name]})
    check(error, ["`header_columns`", f"`{name}`", *parts])


@pytest.mark.parametrize("kind", ["bigint", "array<tinyint>"])
def test_a_mask_of_another_type(kind: str) -> None:
    error = error_of({**HEADERS, "header__change_mask": kind, **DATA})
    check(error, ["`header__change_mask`", kind, "string", "binary"])


@pytest.mark.parametrize(
    "name",
    [
        # of the contract, of the change log, and of the staging SQL itself
        "arrival",
        "Reject_Reason",
        "before",
        "recorded_at",
        "_change_oper",
        "_mask_word_1",
    ],
)
def test_a_data_column_with_a_name_of_the_contract(name: str) -> None:
    error = error_of({**HEADERS, **MASK, **DATA, name: "string"})
    check(error, [f"`{name}`", "view", "renames"])


def test_data_columns_that_differ_in_case_only() -> None:
    check(error_of({**HEADERS, "Name": "string", "name": "string"}), ["`Name`", "`name`", "case"])


def test_a_base_that_no_setting_knows() -> None:
    error = error_of({**HEADERS, **DATA}, base="invoices")
    check(error, ["`base='invoices'`", "have no `base`", "kind: frozen", "live", "meta.afterimage"])


def test_a_setting_without_its_base() -> None:
    error = error_of({**HEADERS, **DATA}, FROZEN)
    check(error, ["`base`", "names no base table", "base='", "meta.afterimage"])


def test_a_base_of_another_table() -> None:
    columns = {"customer_id": "bigint", "city": "string"}
    error = error_of({**HEADERS, **DATA}, FROZEN, base="invoices", base_columns=columns)
    check(error, ["base table sales.invoices ", "customer_id, city", "argument `base`"])


def test_a_table_that_no_source_declares() -> None:
    other = SimpleNamespace(source_name="sales", name="orders__ct")
    render = MacroRenderer(graph=SimpleNamespace(sources={"source.sales.orders__ct": other}))
    with pytest.raises(CompilationError) as caught:
        render("stage_qlik_change_table", "sales", "invoices__ct")
    assert "sales.invoices__ct" in str(caught.value)
    assert "Declare it in a sources YAML" in str(caught.value)


def test_change_mask_fits_needs_a_mask() -> None:
    render = MacroRenderer(
        _tested_node=lambda: SimpleNamespace(name="stg_invoices", sources=[["sales", "invoices"]]),
        _raw_columns=lambda relation: [
            {"name": name, "data_type": kind} for name, kind in {**HEADERS, **DATA}.items()
        ],
        _settings=lambda source_name, name: parse_settings(
            {
                "source_name": source_name,
                "name": name,
                "meta": {"afterimage": {"system": "qlik_change_table"}},
            }
        ),
    )
    with pytest.raises(CompilationError) as caught:
        render("test_change_mask_fits", "stg_invoices")
    for part in ("`change_mask_fits` on stg_invoices", "sales.invoices", "Remove the test"):
        assert part in str(caught.value)


def test_change_mask_fits_needs_a_source() -> None:
    render = MacroRenderer(
        _tested_node=lambda: SimpleNamespace(name="invoices_history", sources=[])
    )
    with pytest.raises(CompilationError) as caught:
        render("test_change_mask_fits", "invoices_history")
    for part in ("`change_mask_fits` on invoices_history", "reads no source table", "Fix: move it"):
        assert part in str(caught.value)


def test_a_table_that_does_not_exist_is_no_table_without_headers() -> None:
    """Its declared columns, here the key alone, are not what it has."""
    settings = {"afterimage": {"system": "qlik_change_table", "key": ["invoice_id"]}}
    entry = {
        "source_name": "sales",
        "name": "invoices__ct",
        "meta": settings,
        "columns": {"invoice_id": {"name": "invoice_id", "data_type": "bigint"}},
    }
    render = MacroRenderer(
        _raw_columns=lambda relation: [],
        _settings=lambda source_name, name: parse_settings(entry),
        adapter=SimpleNamespace(
            afterimage=SimpleNamespace(
                describe_missing=lambda relation: f"{relation} does not exist: it is not."
            )
        ),
    )
    with pytest.raises(CompilationError) as caught:
        render("stage_qlik_change_table", "sales", "invoices__ct")
    assert str(caught.value).startswith(
        "`stage_qlik_change_table`: sales.invoices__ct does not exist: it is not. Fix: "
    )


@pytest.mark.parametrize(
    ("settings", "way"),
    [
        ({"system": "qlik_change_table"}, "put a view over the table that renames"),
        ({"system": "qlik_messages"}, "let the replication tool rename"),
        ({"system": "change_feed", "preset": "debezium"}, "let the replication tool rename"),
        ({"system": "change_feed", "preset": "debezium_flat"}, "put a view over the table"),
        ({"system": "soliddb"}, "rename the column at the server"),
    ],
)
def test_a_column_with_a_name_of_the_contract_can_be_renamed_where_it_is_stored(
    settings: dict[str, Any], way: str
) -> None:
    meta = {"afterimage": {"key": ["payment_id"], **settings}}
    columns = {"payment_id": {"name": "payment_id", "data_type": "int"}}
    entry = {"source_name": "shop", "name": "payments", "meta": meta, "columns": columns}
    render = MacroRenderer(_log_columns=lambda settings: [])
    with pytest.raises(CompilationError) as refused:
        render("_check_data_columns", "m", "t", ["Transaction_id"], parse_settings(entry))
    assert "a data column `Transaction_id`, and the change-event contract" in str(refused.value)
    assert f"Fix: {way}" in str(refused.value)
