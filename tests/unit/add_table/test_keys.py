"""Which key is proposed, and whether it is sure."""

from __future__ import annotations

from io import StringIO

import pytest

from dbt_afterimage.cli.commands.add_table.keys import Sample, key_candidates, propose_key
from dbt_afterimage.cli.commands.add_table.keys_option import KeyOptions, KeyUnknownError
from dbt_afterimage.cli.commands.add_table.proposal import KeyProposal, Proposal, SourceTable
from dbt_afterimage.cli.frame import UsageProblem
from dbt_afterimage.cli.support.raw_schema.schema import Column, RawTable

COLUMNS = ["customer_id", "invoice_id", "line_no", "amount"]


def base(*key: str) -> RawTable:
    return RawTable("invoices", tuple(Column(name, "bigint") for name in COLUMNS), key)


def test_a_declared_key_is_sure_and_takes_the_spelling_of_the_change_table() -> None:
    found = propose_key("invoices", COLUMNS, base("INVOICE_ID"), Sample())
    assert (found.columns, found.is_sure) == (("invoice_id",), True)


def test_a_declared_key_that_the_change_table_lacks_is_none() -> None:
    assert propose_key("invoices", COLUMNS, base("other"), Sample()).columns == ()


def test_deletes_that_hold_the_key_only_name_it() -> None:
    found = propose_key("invoices", COLUMNS, None, Sample(deletes=[{"invoice_id", "line_no"}] * 3))
    assert (found.columns, found.is_sure) == (("invoice_id", "line_no"), True)


@pytest.mark.parametrize(
    "deletes",
    [
        [set(COLUMNS)] * 3,  # whole rows
        [{"invoice_id"}],  # one may be an odd one
        [{"invoice_id"}, {"amount"}] * 3,
    ],
)
def test_deletes_that_do_not_name_one_key_are_no_evidence(deletes: list[set[str]]) -> None:
    assert propose_key("invoices", COLUMNS, None, Sample(deletes=deletes)).columns == ()


def test_one_unique_candidate_is_sure_and_several_are_not() -> None:
    one = propose_key("invoices", COLUMNS, None, Sample(unique=[("invoice_id",)]))
    assert (one.columns, one.is_sure) == (("invoice_id",), True)
    two = propose_key("invoices", COLUMNS, None, Sample(unique=[("customer_id",), ("invoice_id",)]))
    assert (two.columns, two.is_sure) == (("invoice_id",), False)
    assert "customer_id" in two.reason


def test_candidates_begin_with_the_table_s_own_id_and_end_with_pairs() -> None:
    found = key_candidates("invoices", COLUMNS)
    assert found[0] == ("invoice_id",)
    assert ("invoice_id", "line_no") in found
    assert ("amount",) not in found


def proposal(key: KeyProposal) -> Proposal:
    return Proposal(
        system="qlik_change_table",
        schema="sales",
        source="sales",
        table="invoices",
        entry=SourceTable("invoices__ct", ""),
        key=key,
        key_columns=("Invoice_id", "line_no"),
    )


UNSURE = KeyProposal(("Invoice_id",), "unique, as is line_no", is_sure=False)


def typed_key(monkeypatch: pytest.MonkeyPatch, text: str) -> tuple[str, ...]:
    """The key after the user typed a text at the prompt."""
    typed = StringIO(text)
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", typed)
    return KeyOptions.parse([]).apply(proposal(UNSURE)).key.columns


def test_an_unsure_key_is_prompted_for_or_an_error_says_what_to_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(KeyUnknownError, match=r"Fix: add --key invoices=Invoice_id, or") as error:
        KeyOptions.parse([]).apply(proposal(UNSURE))
    assert str(error.value).startswith("sales.invoices__ct: its key is not sure")
    assert typed_key(monkeypatch, "invoice_id, line_no\n") == ("Invoice_id", "line_no")
    assert typed_key(monkeypatch, "\n") == ("Invoice_id",)


@pytest.mark.parametrize("typed", ["invoices=line_no", " line_no "])
def test_a_key_may_be_typed_as_the_option_is_given(
    monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    assert typed_key(monkeypatch, f"{typed}\n") == ("line_no",)


def test_a_mistyped_key_is_prompted_for_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed_key(monkeypatch, "linie_no\nline_no,line_no\nline_no\n") == ("line_no",)
    shown = capsys.readouterr().out
    assert "none of its columns: Invoice_id, line_no" in shown
    assert "allowed: names of columns, each once" in shown


@pytest.mark.parametrize("option", ["line_no", "invoices=line_no"])
def test_a_given_key_wins(option: str) -> None:
    sure = KeyProposal(("Invoice_id",), "declared", is_sure=True)
    found = KeyOptions.parse([option]).apply(proposal(sure))
    assert found.key.columns == ("line_no",)


def test_no_key_can_be_given() -> None:
    for option in ("-", "invoices= -"):
        assert KeyOptions.parse([option]).apply(proposal(UNSURE)).key.columns == ()


def test_a_given_key_names_columns_and_tables_that_are_there() -> None:
    with pytest.raises(KeyUnknownError, match=r"'linie_no'.*did you mean|line_no"):
        KeyOptions.parse(["linie_no"]).apply(proposal(UNSURE))
    with pytest.raises(UsageProblem, match=r"--key invoice=.*: no table"):
        KeyOptions.parse(["invoice=id"]).check(["invoices"])
    with pytest.raises(UsageProblem, match="2 tables are added"):
        KeyOptions.parse(["id"]).check(["invoices", "clients"])


def test_a_key_may_be_that_of_a_table_that_could_not_be_read() -> None:
    """Then the reason is shown why it could not, which matters more."""
    KeyOptions.parse(["id"]).check([], unread=1)
    KeyOptions.parse(["broken=id"]).check(["invoices"], unread=1)
    with pytest.raises(UsageProblem, match="2 tables are added"):
        KeyOptions.parse(["id"]).check(["invoices"], unread=1)


@pytest.mark.parametrize("option", ["", "invoices=", "invoices=,", "invoices=id,id", "-,id,id"])
def test_a_key_without_columns_or_with_one_twice_is_refused(option: str) -> None:
    with pytest.raises(UsageProblem, match=r"allowed: names of columns.* or - for no key"):
        KeyOptions.parse([option])
