"""`afterimage erase`: how its arguments are read, what it refuses, and what its preview says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from typer.testing import CliRunner

from dbt_afterimage.cli import app
from dbt_afterimage.cli.commands.erase import column_names, preview
from dbt_afterimage.erased.key_hash import key_hash_sql
from dbt_afterimage.erasure.keys import Keys
from dbt_afterimage.erasure.request import ErasureError, check_columns, parse_key
from dbt_afterimage.erasure.run import ErasurePlan
from dbt_afterimage.erasure.tables import ErasableTables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@pytest.mark.parametrize(
    ("text", "key", "values"),
    [
        ("13", ["id"], ("13",)),
        ("id=13", ["id"], ("13",)),
        ("a=b, c", ["id"], ("a=b, c",)),
        ("id=a,b=c", ["id"], ("a,b=c",)),
        ("id=13,region=EU", ["id", "region"], ("13", "EU")),
        ("region=EU, id=13", ["id", "region"], ("13", "EU")),
        ("region=a,b,id=13", ["id", "region"], ("13", "a,b")),
        ("id=1,id_2=2", ["id", "id_2"], ("1", "2")),
    ],
)
def test_a_key_gives_values_in_the_order_of_the_key(
    text: str, key: list[str], values: tuple[str, ...]
) -> None:
    assert parse_key(text, key, "sales.customers") == values


@pytest.mark.parametrize("text", ["13", "id=13", "id=13,id=14", "x,id=13,region=EU", ""])
def test_a_key_that_lacks_a_column_is_refused(text: str) -> None:
    with pytest.raises(ErasureError) as caught:
        parse_key(text, ["id", "region"], "sales.customers")
    message = str(caught.value)
    assert f"--key {text!r}" in message
    assert "sales.customers, whose `key` is [id, region]" in message
    assert message.endswith("Fix: --key 'id=...,region=...'.")


def test_columns_are_spelt_as_the_log_spells_them() -> None:
    given = check_columns(["EMAIL", "name", "Name"], ["id", "Name", "email"], ["id"], "t")
    assert given == ("email", "Name")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ID", "names `ID`, a key column of source table sales.customers"),
        ("emial", "no such column. Did you mean `email`? Allowed: name, email."),
    ],
)
def test_columns_that_cannot_be_erased(name: str, said: str) -> None:
    with pytest.raises(ErasureError) as caught:
        check_columns(["name", name], ["id", "name", "email"], ["id"], "sales.customers")
    assert said in str(caught.value)
    assert "Nothing was erased. Fix: " in str(caught.value)


@pytest.mark.parametrize("given", [(), ("--columns", "name", "--rows"), ("--columns", " , ")])
def test_columns_or_rows(given: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Before dbt is called."""
    monkeypatch.setattr("dbt_afterimage.cli.commands.erase.run_operation", None)
    result = CliRunner().invoke(app, ["erase", "customers", "--key", "1", *given])
    assert result.exit_code == 2
    assert "Allowed: one of the two. Nothing was erased. Fix: give --columns" in result.output


def test_names_of_columns() -> None:
    assert column_names("name, email,", rows=False) == ["name", "email"]
    assert column_names(None, rows=True) is None


def plan(table_format: str = "iceberg", **given: Any) -> ErasurePlan:
    tables = ErasableTables(
        change_log="customers_changes",
        selected_as="customers_changes",
        log="lake.customers_changes",
        rejected="lake.customers_changes_rejected",
        progress="lake.afterimage_progress",
        erasures="lake.afterimage_erasures",
        table_format=table_format,
        settings={"key": ["id", "region"], "source_table": "sales.customers"},
        data_columns=["id", "region", "name"],
        beginning_of_time="1900-01-01 00:00:00",
        is_published=False,
        marts=[],
        decoded=[],
        raw_tables=["sales.customers__ct"],
        downstream=["mailing_list"],
    )
    keys = Keys(
        rows=cast("DataFrame", None),
        texts=[("13", "EU"), ("14", "EU")],
        hashes=[],
        followed=[("14", "EU")],
    )
    counts = {"lake.customers_changes": 3, "lake.customers_history": 1200}
    made: dict[str, Any] = {"columns": None, "up_to": "42", "counts": counts, "without_key": 0}
    return ErasurePlan(tables=tables, keys=keys, erasures=[], **{**made, **given})


def test_the_preview_names_keys_tables_and_what_is_not_reached() -> None:
    assert preview(plan()) == [
        "Erase whole records up to change_seq 42 of these keys:",
        "  id=13,region=EU",
        "  id=14,region=EU  (from a key change)",
        "lake.customers_changes        3 rows",
        "lake.customers_history    1,200 rows",
        "Old states and files of these tables are removed, too.",
        "Not reached: raw tables (sales.customers__ct), backups and copies",
        "Not reached: logs and files in dbt's target folder, whose errors may quote values",
        "Not reached: mailing_list; rebuild them",
    ]
    lines = preview(plan("delta", columns=("name",), without_key=2))
    assert lines[0] == "Erase columns name up to change_seq 42 of these keys:"
    assert "Delta's transaction log" in lines[-2]
    assert lines[-1] == ("Not reached: 2 rejected records without a key; see afterimage rejects")


def test_a_hash_is_of_the_log_and_of_all_key_columns() -> None:
    assert key_hash_sql("it's", ["id", "tag"], {"id": "int", "tag": "binary"}) == (
        "sha2(concat('it\\'s', to_json(array(cast(`id` as string), hex(`tag`)))), 256)"
    )
