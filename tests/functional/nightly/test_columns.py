"""What a source may call its columns, and how their types and letters may change."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_afterimage.change_log.contract import LOG_COLUMNS, STAGED_COLUMNS
from dbt_afterimage.spark.identifiers import quoted
from tests.functional.dbt_project import DbtProject
from tests.functional.people import HEADERS, MODELS, People, seq, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MACROS = Path(__file__).parents[3] / "macros"
HISTORY = Path(__file__).parents[3] / "src" / "dbt_afterimage" / "history"
# `history` refuses these with a message: it adds columns of these names
OF_HISTORY = {
    "valid_from",
    "valid_to",
    "valid_from_seq",
    "valid_to_seq",
    "is_current",
    "opened_by",
    "closed_by",
    "closed_by_transaction_id",
    "changed_columns",
    "unknown_columns",
}


@pytest.fixture
def new_people(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> Callable[[str], People]:
    """The small project in a schema of its own, with nothing landed yet."""

    def make(schema: str) -> People:
        return start(make_dbt_project(tmp_path, schema=schema), spark, table_format, MODELS)

    return make


def names_in_use() -> list[str]:
    """Names in the marts' SQL and in that of history, except those that history reserves."""
    names: set[str] = set()
    for file in (MACROS / "marts").glob("*.sql"):
        text = re.sub(r"\{#.*?#\}", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        for line in text.splitlines():
            is_of_tables = re.match(r"\s*(from|\)|(\w+ )*join)\b", line)
            names.update(re.findall(r"\bas ([a-z]\w*)\b(?!\()", "" if is_of_tables else line))
    for file in HISTORY.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        # aliases of tables, variables of lambdas, fields of structs
        for pattern in (r"alias\(\"(\w+)\"\)", r"\b([a-z]\w*) ->", r" as ([a-z]\w*)[,)]"):
            names.update(re.findall(pattern, text))
    return sorted(names - {*STAGED_COLUMNS, *LOG_COLUMNS, *OF_HISTORY, "before", "outcome"})


def test_a_data_column_may_have_any_name_that_the_sql_uses_itself(
    new_people: Callable[[str], People],
) -> None:
    """All of them at once; each must hold what the first one holds, in every table."""
    # the last ones are names of tables in the SQL
    names = sorted({*names_in_use(), "versions", "target", "source"})
    assert {"opened", "boundary", "move_group", "later"} < {*names}
    people = new_people("any_name")

    def record(number: int, oper: str, key: int, value: str) -> tuple[Any, ...]:
        return (seq(number), oper, key, *[value] * len(names))

    columns = {**HEADERS, "id": "int", **dict.fromkeys(names, "string")}
    batches = [
        [record(10, "I", 1, "a"), record(11, "I", 2, "p")],
        # in time, and a key that moves
        [
            record(20, "B", 1, "a"),
            record(20, "U", 1, "b"),
            record(30, "B", 2, "p"),
            record(30, "U", 3, "q"),
        ],
        # late, so that a key is built again
        [record(15, "B", 1, "a"), record(15, "U", 1, "aa")],
    ]
    landed: list[tuple[Any, ...]] = []
    for batch in batches:
        landed += batch
        people.land(columns, landed)
        people.dbt("run")

    name = f"`{names[0]}`"
    history = [
        (1, "a", seq(10), seq(15)),
        (1, "aa", seq(15), seq(20)),
        (1, "b", seq(20), None),
        (2, "p", seq(11), seq(30)),
        (3, "q", seq(30), None),
    ]
    shown = f"id, {name}, valid_from_seq, valid_to_seq"
    assert people.rows("history", shown, "id, valid_from_seq") == history
    assert people.rows("current", f"id, {name}", "id") == [(1, "b"), (3, "q")]
    for table in ("changes", "history", "current"):
        given = people.spark.table(people.name(table)).select([f"`{name}`" for name in names])
        assert all(len({*row}) == 1 for row in given.collect())
    counts = people.spark.sql(
        f"select column_name, count(*) from {people.name('field_changes')} group by column_name"
    ).collect()
    # of id 1 at 15 and at 20, and of the row that moved from 2 to 3
    assert {row[0]: row[1] for row in counts} == {"id": 1, **dict.fromkeys(names, 3)}


def test_a_data_column_may_have_a_name_that_sql_must_quote(
    new_people: Callable[[str], People],
) -> None:
    """Its key too; each column must hold what the first one holds, in every table."""
    people = new_people("quoted_names")
    key, names = "row.id and so", ["a.b", "with space", "back`tick", "select", "null", "it's", "é"]
    people.declare(key=[key])
    later = "late, but.here"

    def record(number: int, oper: str, key: int, value: str, times: int) -> tuple[Any, ...]:
        return (seq(number), oper, key, *[value] * times)

    columns = {**HEADERS, key: "int", **dict.fromkeys(names, "string")}
    landed = [record(10, "I", 1, "a", len(names)), record(11, "I", 2, "p", len(names))]
    people.land(columns, landed)
    people.dbt("run")
    # a change in time, a key that moves; and a column is new
    names.append(later)
    landed = [(*row, None) for row in landed]
    landed += [
        record(20, "B", 1, "a", len(names)),
        record(20, "U", 1, "b", len(names)),
        record(30, "B", 2, "p", len(names)),
        record(30, "U", 3, "q", len(names)),
    ]
    people.land({**columns, later: "string"}, landed)
    people.dbt("run")
    # late, so that a key is built again
    landed += [record(15, "B", 1, "a", len(names)), record(15, "U", 1, "aa", len(names))]
    people.land({**columns, later: "string"}, landed)
    people.dbt("run")

    shown = f"`{key}`, `a.b`, valid_from_seq, valid_to_seq"
    assert people.rows("history", shown, "1, 3") == [
        (1, "a", seq(10), seq(15)),
        (1, "aa", seq(15), seq(20)),
        (1, "b", seq(20), None),
        (2, "p", seq(11), seq(30)),
        (3, "q", seq(30), None),
    ]
    assert people.rows("current", f"`{key}`, `a.b`", "1") == [(1, "b"), (3, "q")]
    for table in ("changes", "history", "current"):
        given = people.spark.table(people.name(table)).select(*map(quoted, names[:-1]))
        assert all(len({*row}) == 1 for row in given.collect())
    assert people.rows("current", f"`{later}`", "1") == [("b",), ("q",)]
    counts = people.spark.sql(
        f"select column_name, count(*) from {people.name('field_changes')} group by column_name"
    ).collect()
    assert {row[0]: row[1] for row in counts} == {key: 1, **dict.fromkeys(names, 3)}
    assert people.spark.table(f"{people.name('changes')}_rejected").collect() == []
    _, result, _ = people.dbt("test").results  # between the hooks
    assert (result.node.name[:9], result.status, result.failures) == ("conserved", "pass", 0)


def test_a_decimal_that_only_gains_digits_gets_through(
    new_people: Callable[[str], People],
) -> None:
    """Nothing else of the change table changes: not its columns, nor their kinds of types."""
    people = new_people("more_digits")
    columns = {**HEADERS, "id": "int", "small": "smallint", "fee": "decimal(5,2)"}
    people.land(columns, [(seq(1), "I", 1, 7, "1.25")])
    people.dbt("run")
    landed = [(seq(1), "I", 1, 7, "1.25"), (seq(2), "I", 2, 70_000, "1234567.89")]
    people.land({**columns, "small": "int", "fee": "decimal(9,2)"}, landed)
    people.dbt("run")
    assert people.rows("history", "id, small, fee", "id") == [
        (1, 7, Decimal("1.25")),
        (2, 70_000, Decimal("1234567.89")),
    ]
    for table in ("changes", "history", "current"):
        types = people.types(table)
        assert (types["small"], types["fee"]) == ("int", "decimal(9,2)")


def test_a_column_that_changes_its_letters_is_the_same_column(
    new_people: Callable[[str], People],
) -> None:
    """An update that leaves out a large object names the columns that it knows: in new letters."""
    people = new_people("letters")
    people.declare(lob_columns=["note"], header_columns=["username"], history_metadata=["username"])
    headers = {**HEADERS, "header__change_mask": "string"}
    first = (seq(1), "I", "70", "ann", 1, "Ann", "long")
    columns = {"header__username": "string", "id": "int", "name": "string", "note": "string"}
    people.land({**headers, **columns}, [first])
    people.dbt("run")
    # four header columns: name is bit 5
    images = [
        (seq(2), "B", None, "bob", 1, "Ann", None),
        (seq(2), "U", "20", "bob", 1, "Bob", None),
    ]
    columns = {"header__UserName": "string", "id": "int", "NAME": "string", "note": "string"}
    people.land({**headers, **columns}, [first, *images])
    people.dbt("run")
    assert people.rows("changes", "change_oper, username, name", "change_seq") == [
        ("I", "ann", "Ann"),
        ("U", "bob", "Bob"),
    ]
    assert people.rows("history", "name, username", "valid_from_seq") == [
        ("Ann", "ann"),
        ("Bob", "bob"),
    ]
    assert "username" not in people.types("current")
    assert people.rows("history", "name, note, valid_to_seq", "valid_from_seq") == [
        ("Ann", "long", seq(2)),
        ("Bob", "long", None),
    ]
    assert people.rows("field_changes", "column_name, old_value, new_value", "1") == [
        ("name", "Ann", "Bob")
    ]
