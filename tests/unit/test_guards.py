"""What stops a run before it writes to a table, and what is altered instead."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from dbt_afterimage.change_log.contract import LOG_COLUMNS, changed_roles
from dbt_afterimage.history.table import HistoryError, history_table
from dbt_afterimage.settings import SourceSettings
from dbt_afterimage.storage.schema_contract import (
    Alterations,
    Origin,
    SchemaContractError,
    TargetSchema,
    alterations,
    holds,
    statements,
)

WIDENING = {"delta.enableTypeWidening": "true"}
COLUMNS = {"valid_from": "timestamp", "id": "int", "name": "string", "amount": "decimal(9,2)"}
DATA = {"id": "int", "name": "string", "amount": "decimal(9,2)"}
TRACK_ALL: Mapping[str, Sequence[str]] = {"track": [], "ignore": []}


def wanted(**others: Any) -> TargetSchema:
    given: dict[str, Any] = {
        "table": "shop.people_history",
        "source_table": "erp.people__ct",
        "upstream": "shop.people_changes",
        "origin": Origin(["id"], TRACK_ALL),
        "own": ["valid_from"],
        "data": DATA,
        "copies": {},
        "rebuild_hint": "rebuild the table",
        "retype": "restore the type upstream",
        **others,
    }
    return TargetSchema(**given)


def made_from(**others: Any) -> dict[str, str]:
    """Properties of a table; written out here, for tables out there have them."""
    given = {"layout": 1, "key": ["id"], "tracked": {}, **others}
    return {f"afterimage.{name}": json.dumps(value) for name, value in given.items()}


def test_a_table_that_fits_is_left_alone() -> None:
    found = alterations(wanted(), COLUMNS, made_from() | {"owner": "someone"})
    assert found == Alterations()
    assert statements("t", found, {}) == statements("t", found, WIDENING) == []


def test_a_table_without_properties_is_taken_over() -> None:
    found = alterations(wanted(), COLUMNS, {"owner": "someone"})
    assert found == Alterations(properties=made_from())
    assert statements("shop.t", found, WIDENING) == [
        "alter table shop.t set tblproperties ('afterimage.layout' = '1', "
        "'afterimage.key' = '[\"id\"]', 'afterimage.tracked' = '{}')"
    ]


def test_what_a_table_that_is_taken_over_lacks_is_named() -> None:
    with pytest.raises(SchemaContractError) as error:
        alterations(wanted(), DATA, {})
    assert str(error.value) == (
        "shop.people_history has no column `valid_from`, which this version of the project writes. "
        "Something else made the table, or altered it. Nothing was written. Fix: give the table "
        "another name, or rebuild the table."
    )


def test_spelling_in_capitals_is_the_same_column() -> None:
    capitals = {name.upper(): kind for name, kind in COLUMNS.items()}
    assert alterations(wanted(), capitals, made_from()) == Alterations()


@pytest.mark.parametrize("key", [[], ["id", "name"], ["name"]])
def test_another_key(key: list[str]) -> None:
    with pytest.raises(SchemaContractError) as error:
        alterations(wanted(), COLUMNS, made_from(key=key))
    assert str(error.value) == (
        "shop.people_history: the `key` of source table erp.people__ct is [id], and the table was "
        f"built with [{', '.join(key)}]. Nothing was written. Fix: restore the setting, or rebuild "
        "the table."
    )


def test_the_order_of_a_key_matters() -> None:
    with pytest.raises(
        SchemaContractError, match=r"is \[id, name\], and the table was built with \[name, id"
    ):
        alterations(
            wanted(origin=Origin(["id", "name"], TRACK_ALL)),
            COLUMNS,
            made_from(key=["name", "id"]),
        )


@pytest.mark.parametrize(
    ("was", "tracking", "message"),
    [
        (
            {},
            {"track": ["name"], "ignore": []},
            "`track: [name]`: [name], and the table was built with neither `track` nor `ignore`: "
            "[name, amount]",
        ),
        (
            {"ignore": ["amount"]},
            TRACK_ALL,
            "neither `track` nor `ignore`: [name, amount], and the table was built with "
            "`ignore: [amount]`: [name]",
        ),
    ],
)
def test_other_tracked_columns(
    was: dict[str, list[str]], tracking: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(SchemaContractError) as error:
        alterations(wanted(origin=Origin(["id"], tracking)), COLUMNS, made_from(tracked=was))
    assert message in str(error.value)
    assert "Source table erp.people__ct says" in str(error.value)


def test_a_column_of_our_own_is_not_tracked() -> None:
    own = {"closed_by_transaction_id": "string"}
    origin = Origin(["id"], {"track": ["name", "amount"], "ignore": []})
    schema = wanted(origin=origin, data=DATA | own, untracked=[*own])
    found = alterations(schema, COLUMNS | own, made_from())
    assert found.properties == {"afterimage.tracked": '{"track": ["name", "amount"]}'}


def test_the_same_columns_set_in_another_way_are_recorded() -> None:
    origin = Origin(["id"], {"track": ["name"], "ignore": []})
    found = alterations(wanted(origin=origin), COLUMNS, made_from(tracked={"ignore": ["amount"]}))
    assert found == Alterations(properties={"afterimage.tracked": '{"track": ["name"]}'})


def test_a_new_column_may_be_ignored_from_the_start() -> None:
    origin = Origin(["id"], {"track": [], "ignore": ["loaded_at"]})
    data = DATA | {"loaded_at": "timestamp"}
    found = alterations(wanted(origin=origin, data=data), COLUMNS, made_from())
    assert found.added == {"`loaded_at`": "timestamp"}
    assert found.properties == {"afterimage.tracked": '{"ignore": ["loaded_at"]}'}


def test_a_new_column_is_no_change_of_what_is_tracked() -> None:
    data = DATA | {"a `quoted` name": "string"}
    found = alterations(wanted(data=data), COLUMNS, made_from())
    assert statements("t", found, {}) == ["alter table t add columns (`a ``quoted`` name` string)"]


def test_new_and_wider_columns_of_a_log_are_two_statements() -> None:
    data = {"id": "bigint", "name": "string", "amount": "decimal(12,2)", "city": "string"}
    log = wanted(data=data, copies={"before": list(data)}, origin=Origin(["id"]))
    found = alterations(log, COLUMNS, made_from())
    widen = (
        "alter table t alter column `id` type bigint, `before`.`id` type bigint, "
        "`amount` type decimal(12,2), `before`.`amount` type decimal(12,2)"
    )
    add = "alter table t add columns (`city` string, `before`.`city` string)"
    assert statements("t", found, {}) == [widen, add]
    assert statements("t", found, WIDENING) == [
        "alter table t set tblproperties ('delta.enableTypeWidening' = 'true')",
        widen,
        add,
    ]


def test_a_struct_repeats_only_its_own_columns() -> None:
    marts = wanted(data=DATA | {"id": "bigint"}, copies={"previous_key": ["id"]})
    assert alterations(marts, COLUMNS, made_from()).widened == {
        "`id`": "bigint",
        "`previous_key`.`id`": "bigint",
    }


def test_another_layout() -> None:
    with pytest.raises(SchemaContractError) as error:
        alterations(wanted(), COLUMNS, made_from(layout=2))
    assert str(error.value) == (
        "shop.people_history was made by another version of this project: its layout is 2, and "
        "this version writes layout 1. Nothing was written. Fix: go back to the version that made "
        "it (pip install its wheel, then `dbt deps`), or rebuild the table."
    )


WIDER = [
    ("tinyint", "smallint"),
    ("smallint", "bigint"),
    ("int", "bigint"),
    ("float", "double"),
    ("decimal(9,2)", "decimal(38,2)"),
]
OTHER = [
    ("string", "int"),
    ("int", "string"),
    ("int", "double"),
    ("int", "decimal(12,0)"),
    ("double", "decimal(9,2)"),
    ("date", "timestamp"),
    ("timestamp", "timestamp_ntz"),
    ("decimal(9,2)", "decimal(12,4)"),
    ("decimal(9,2)", "decimal(9,3)"),
]


@pytest.mark.parametrize(("narrow", "wide"), WIDER)
def test_what_is_widened_and_what_fits_as_it_is(narrow: str, wide: str) -> None:
    columns = COLUMNS | {"amount": narrow}
    found = alterations(wanted(data=DATA | {"amount": wide}), columns, made_from())
    assert found == Alterations(widened={"`amount`": wide})
    assert holds(wide, narrow)
    assert not holds(narrow, wide)
    # Iceberg has no smallint: a table created from one has an int, and accepts it in every run
    columns = COLUMNS | {"amount": wide}
    assert (
        alterations(wanted(data=DATA | {"amount": narrow}), columns, made_from()) == Alterations()
    )


@pytest.mark.parametrize(("stored", "given"), OTHER)
def test_other_types_stop_the_run(stored: str, given: str) -> None:
    columns = COLUMNS | {"amount": stored}
    with pytest.raises(SchemaContractError) as error:
        alterations(wanted(data=DATA | {"amount": given}), columns, made_from())
    assert str(error.value) == (
        f"shop.people_history: the column `amount` is {stored} in the table and {given} in "
        "shop.people_changes. Allowed: a wider integer, double for float (except in a key), a "
        "decimal with more digits before the point. Nothing was written. Fix: restore the type "
        "upstream, or rebuild the table."
    )


def test_a_key_whose_text_would_change_is_not_widened() -> None:
    """0.1 as a float is 0.10000000149011612 as a double, and the surrogate key is made of it."""
    with pytest.raises(
        SchemaContractError, match="the column `id` is float in the table and double"
    ):
        alterations(wanted(data=DATA | {"id": "double"}), COLUMNS | {"id": "float"}, made_from())


@pytest.mark.parametrize(
    ("optional", "found"),
    [
        (["stream_position", "username"], []),
        # not in the log yet
        (["stream_position", "username", "host"], []),
        (["stream_position"], ["username"]),
        (["stream_position", "username", "name"], ["name"]),
    ],
)
def test_data_columns_and_metadata_of_a_log_keep_their_roles(
    optional: list[str], found: list[str]
) -> None:
    logged = [*LOG_COLUMNS, "stream_position", "username", "id", "name", "before"]
    assert changed_roles(logged, ["id", "NAME"], optional) == found


@pytest.mark.parametrize(
    ("column", "system", "way"),
    [
        ("valid_to", "openedge", "put a view over the table"),
        ("people_history_id", "soliddb", "rename the column at the server"),
        ("valid_to", "qlik_messages", "let the replication tool rename"),
    ],
)
def test_metadata_with_a_name_of_history(column: str, system: str, way: str) -> None:
    settings: SourceSettings = {
        "system": system,
        "key": ["id"],
        "history_metadata": [column],
        "source_table": "erp.people__ct",
    }
    with pytest.raises(HistoryError, match=f"has a column `{column}`.*Fix: {way}"):
        history_table("people_history", settings, "log", ["id"], ["id", column], "1900-01-01")
