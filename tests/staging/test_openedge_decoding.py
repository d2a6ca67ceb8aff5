"""The SQL that decodes OpenEdge's field maps, arrays and operations, on documented values."""

from __future__ import annotations

import random
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from tests.macro_renderer import MacroRenderer
from tests.openedge_staging import field_map, vectors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def names(count: int) -> list[str]:
    return [f"F{number}" for number in range(1, count + 1)]


@cache
def renderer() -> MacroRenderer:
    return MacroRenderer()


def decode(spark: SparkSession, macro: str, values: list[str], *arguments: Any) -> list[Any]:
    """A macro over SQL literals, in one query; Spark folds it, so that nothing is compiled."""
    sql = str(renderer()(macro, "given", *arguments))
    rows = ", ".join(f"({number}, {value})" for number, value in enumerate(values))
    query = f"select number, {sql} as decoded from values {rows} as given (number, given)"
    return [row["decoded"] for row in sorted(spark.sql(query).collect(), key=lambda row: row[0])]


@pytest.mark.parametrize("vector", vectors("field_maps"), ids=lambda vector: vector["map_hex"])
@pytest.mark.parametrize("map_type", ["binary", "string"])
def test_documented_field_maps(spark: SparkSession, vector: dict[str, str], map_type: str) -> None:
    stored, columns = vector["map_hex"], names(int(vector["fields"]))
    # as it is, with all of its 256 bytes, and lower case with a prefix where it is text
    forms = [stored, stored.ljust(512, "0")]
    texts = {
        "binary": [f"x'{form}'" for form in forms],
        "string": [f"'{form}'" for form in [*forms, f"0x{stored.lower()}"]],
    }[map_type]
    found = decode(spark, "openedge_field_map_columns", texts, columns, map_type)
    assert found == [vector["changed"].split(";")] * len(texts)


def test_field_maps_of_every_width(spark: SparkSession) -> None:
    chance = random.Random(7)
    for width in [*range(1, 34), 63, 64, 65, 127, 128, 129, 256, 257]:
        columns = names(width)
        subsets = [
            [],
            [width],
            [*range(1, width + 1)],
            sorted(chance.sample(range(1, width + 1), (width + 1) // 2)),
        ]
        maps = [f"x'{field_map(*subset).hex()}'" for subset in subsets]
        found = decode(spark, "openedge_field_map_columns", maps, columns)
        assert found == [[columns[field - 1] for field in subset] for subset in subsets], width


def test_field_maps_of_every_length(spark: SparkSession) -> None:
    """A short map leaves the other fields unchanged; a long one has nothing behind the last."""
    maps = [bytes([0x13]).ljust(length, b"\0") for length in range(1, 257)]
    found = decode(
        spark, "openedge_field_map_columns", [f"x'{stored.hex()}'" for stored in maps], names(20)
    )
    assert found == [["F1", "F2", "F5"]] * 256


def test_the_last_of_2048_fields(spark: SparkSession) -> None:
    found = decode(
        spark, "openedge_field_map_columns", [f"x'{field_map(2048).hex()}'"], names(2048)
    )
    assert found == [["F2048"]]


def test_a_field_map_that_is_not_there_says_nothing(spark: SparkSession) -> None:
    found = decode(spark, "openedge_field_map_columns", ["cast(null as binary)"], names(3))
    assert found == [None]


@pytest.mark.parametrize("vector", vectors("field_maps"), ids=lambda vector: vector["changed"])
def test_lists_of_names_say_the_same(spark: SparkSession, vector: dict[str, str]) -> None:
    columns, changed = names(int(vector["fields"])), vector["changed"]
    texts = [changed, changed.lower(), changed.replace(";", " ; "), f"gone;{changed}"]
    found = decode(spark, "openedge_changed_columns", [f"'{text}'" for text in texts], columns)
    assert found == [changed.split(";")] * len(texts)


def test_lists_of_names_with_hyphens_and_elements(spark: SparkSession) -> None:
    columns = ["cust-num", "ship_to", "days"]
    found = decode(
        spark,
        "openedge_changed_columns",
        ["'Cust-Num;Days[3]'", "'cust_num;ship-to'", "''", "cast(null as string)"],
        columns,
    )
    assert found == [["cust-num", "days"], ["cust-num", "ship_to"], [], None]


def test_documented_array_texts(spark: SparkSession) -> None:
    escaped = [vector["escaped"] for vector in vectors("array_texts")]
    elements = [vector["element"] for vector in vectors("array_texts")]
    texts = [f"'{text}'" for text in [*escaped, ";".join(["a", *escaped, "z"])]]
    found = decode(spark, "openedge_array", texts)
    assert found == [*[[element] for element in elements], ["a", *elements, "z"]]


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("'a;b;c'", ["a", "b", "c"]),
        ("'a'", ["a"]),
        ("''", [""]),
        ("';;'", ["", "", ""]),
        ("'a;?;'", ["a", None, ""]),
        ("'what?;~'", ["what?", "~"]),
        ("'~;;~~;;'", [";", "~;", ""]),
        # the one ambiguity: an element that ends in ~ is read as one that goes on with ;
        ("'a~;b'", ["a;b"]),
        ("cast(null as string)", None),
    ],
)
def test_array_texts(spark: SparkSession, text: str, elements: list[str] | None) -> None:
    assert decode(spark, "openedge_array", [text]) == [elements]


@pytest.mark.parametrize("count", [1, 2, 3, 10, 100, 1000])
def test_arrays_of_every_extent(spark: SparkSession, count: int) -> None:
    text = ";".join(f"e{number}" for number in range(count))
    assert decode(spark, "openedge_array", [f"'{text}'"]) == [
        [f"e{number}" for number in range(count)]
    ]
