"""Names and values that break careless SQL, Jinja and paths come out of the tables as they went in.

Tables that contradict their progress are in test_restored_tables.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_afterimage.spark.identifiers import quoted
from tests.functional.dbt_project import DbtProject
from tests.functional.people import HEADERS, MODELS, People, seq, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY = 'it\'s `the` "key"'
NAMES = (
    "a.b",
    "back`tick",
    'quo"te',
    "apo'strophe",
    "two words",
    "back\\slash",
    "{{ var('nothing') }}",
    "{# hidden #}",
    "select",
    "größe",
    "名前",
    "\x1b[2J",
    "tab\there",
    "-- comment",
    "$1 %s",
    "l" * 120,
)
TEXTS = (
    "",
    " ",
    "null",
    "it's",
    'quo"te',
    "back\\slash",
    "{{ var('nothing') }}",
    "nul\x00inside",
    "\x1b[2J",
    "line\nbreak\r\n",
    "e\u0301",
    "\u00e9",
    "\U0001f600",
    "\u202ereversed",
    "long" * 250_000,
)
EDGES = {
    "whole": ("bigint", "-9223372036854775808", "9223372036854775807"),
    "small": ("tinyint", "-128", "127"),
    "exact": ("decimal(38,0)", f"-{'9' * 38}", "9" * 38),
    "fraction": ("decimal(38,38)", f"-0.{'9' * 38}", f"0.{'0' * 37}1"),
    "single": ("float", "-Infinity", "1.4E-45"),
    "real": ("double", "NaN", "1.7976931348623157E308"),
    "day": ("date", "0001-01-01", "9999-12-31"),
    "moment": ("timestamp", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
    "flag": ("boolean", "false", "true"),
    "bytes": ("binary", "", "\x00"),
}


@pytest.fixture
def people(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> People:
    """A project of a schema of its own, in which nothing is landed."""
    schema = f"hostile_{request.node.originalname.removeprefix('test_')[:20]}"
    return start(make_dbt_project(tmp_path, schema=schema), spark, table_format, MODELS)


def as_text(people: People, table: str, names: list[str], condition: str) -> list[tuple[Any, ...]]:
    shown = ", ".join(f"cast({quoted(name)} as string)" for name in names)
    found = people.spark.sql(f"select {shown} from {people.name(table)} where {condition}")
    return sorted(map(tuple, found.collect()), key=repr)


def test_columns_with_names_that_are_code(people: People) -> None:
    columns = {**HEADERS, KEY: "string", **dict.fromkeys(NAMES, "string")}
    first = tuple(f"first of {name}" for name in NAMES)
    second = tuple(f"second of {name}" for name in NAMES)
    people.declare(key=[KEY])
    people.land(columns, [(seq(1), "I", "1", *first), (seq(2), "I", "2", *first)])
    people.dbt("build")
    people.append(columns, [(seq(3), "B", "1", *first), (seq(3), "U", "1", *second)])
    people.dbt("build")
    names = [KEY, *NAMES]
    closed = as_text(people, "history", names, "closed_by = 'U'")
    assert closed == [("1", *first)]
    assert as_text(people, "history", names, "is_current") == [("1", *second), ("2", *first)]
    assert as_text(people, "current", names, "true") == [("1", *second), ("2", *first)]
    fields = people.rows("field_changes", "column_name, old_value, new_value", "1")
    assert sorted(fields) == sorted(zip(NAMES, first, second, strict=True))


def test_values_at_the_edges_of_their_types(people: People) -> None:
    columns = {**HEADERS, "id": "string", **{name: edge[0] for name, edge in EDGES.items()}}
    least = tuple(edge[1] for edge in EDGES.values())
    greatest = tuple(edge[2] for edge in EDGES.values())
    people.land(columns, [(seq(1), "I", "1", *least), (seq(2), "I", "2", *greatest)])
    people.dbt("build")
    people.append(columns, [(seq(3), "B", "1", *least), (seq(3), "U", "1", *greatest)])
    people.dbt("build")
    names = ["id", *EDGES]
    raw = f"{people.dbt.schema}_raw.people__ct"
    shown = ", ".join(f"cast({quoted(name)} as string)" for name in names)
    landed = people.spark.sql(f"select {shown} from {raw} order by header__change_seq, 2")
    by_place = sorted({tuple(row) for row in landed.collect()}, key=repr)
    history = as_text(people, "history", names, "true")
    assert sorted(set(history), key=repr) == by_place
    assert len(history) == 3
    fields = people.rows("field_changes", "column_name", "1")
    assert [row[0] for row in fields] == sorted(EDGES)


def test_texts_as_keys_and_as_values(people: People) -> None:
    columns = {**HEADERS, "id": "string", "name": "string"}
    rows = [(seq(place), "I", text, text) for place, text in enumerate(TEXTS, 1)]
    people.land(columns, rows)
    people.dbt("build")
    last = len(TEXTS)
    for place, text in enumerate(TEXTS, last + 1):
        rows.append((seq(place), "B", text, text))
        rows.append((seq(place), "U", text, f"{text}!"))
    people.append(columns, rows[last:])
    people.dbt("build")
    assert sorted(as_text(people, "current", ["id", "name"], "true")) == sorted(
        (text, f"{text}!") for text in TEXTS
    )
    assert sorted(as_text(people, "history", ["id", "name"], "closed_by = 'U'")) == sorted(
        (text, text) for text in TEXTS
    )
    assert people.rows("changes_rejected", "count(*)", "1") == [(0,)]
