"""Types in one spelling, and what does not fit into them."""

from __future__ import annotations

import pytest

from tests.macro_renderer import MacroRenderer


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ("NUMERIC(10)", "decimal(10,0)"),
        ("decimal(18)", "decimal(18,0)"),
        ("dec( 9, 2 )", "decimal(9,2)"),
        ("decimal", "decimal(10,0)"),
        ("array<decimal(10)>", "array<decimal(10)>"),
        ("varchar(20)", "string"),
        ("Integer", "int"),
    ],
)
def test_a_type_has_one_spelling(given: str, normal: str) -> None:
    assert MacroRenderer()("_normal_type", given) == normal


def test_a_number_with_a_fraction_does_not_fit_a_decimal_without_one() -> None:
    render = MacroRenderer()
    raw = {"name": "price", "data_type": "string"}
    without = render("_is_uncastable", render("_typed_column", "price", raw, "decimal(10)"))
    assert without == render(
        "_is_uncastable", render("_typed_column", "price", raw, "decimal(10,0)")
    )
    assert "try_cast(price as decimal(38, 28))" in without
