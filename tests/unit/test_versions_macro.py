"""The chain of CTEs that makes versions, in all its forms: nothing undefined, nothing hanging."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest

from tests.versions_sql import versions_sql

BASES: tuple[dict[str, str] | None, ...] = (None, {"kind": "frozen"}, {"kind": "live"})
SCOPES: tuple[list[str] | None, ...] = (None, [], ["name"])
MOVES = (None, "known", "blind")
FORMS = list(product(BASES, SCOPES, MOVES, ([], ["note"], ["name", "note"])))


def people_sql(**others: Any) -> str:
    return versions_sql(
        "people_changes",
        ["id", "name", "a note's end", "note"],
        ["id"],
        **{"tracked": ["name", "note"], **others},
    )


def ctes(sql: str) -> list[str]:
    return re.findall(r"^(\w+) as \($", sql, flags=re.MULTILINE)


@pytest.mark.parametrize(("base", "scopes", "moves", "carried"), FORMS)
@pytest.mark.parametrize("path", ["incremental", "replay", "replay from the beginning", "rebuild"])
def test_every_form_is_whole(
    base: dict[str, str] | None,
    scopes: list[str] | None,
    moves: str | None,
    carried: list[str],
    path: str,
) -> None:
    sql = people_sql(
        # a load never takes the incremental path
        base=None if path == "incremental" else base,
        has_ends=scopes is not None,
        scopes=scopes or [],
        has_moves=moves is not None,
        has_incomplete_key_changes=moves == "blind",
        carried=carried,
        where="recorded_at > x" if path == "incremental" else None,
        affected_keys=None if path == "rebuild" else "select id\n    from batch",
        seeds="select *\n    from people_history\n    left semi join affected_keys"
        if path in ("incremental", "replay")
        else None,
        replays=path == "replay",
    )
    sql = re.sub(r"--.*", "", sql)
    names = ctes(sql)
    assert len(set(names)) == len(names), "a CTE is there twice"
    assert names[-1] == "versions"
    # every CTE but the first is read by one after it, and none is read that is not there
    for name in names[:-1]:
        assert re.search(rf"\b(from|join) {name}\b", sql), f"nobody reads {name}"
    read = set(re.findall(r"\b(?:from|join) ([a-z_]+)\b", sql))
    assert read <= {*names, "people_changes", "people_history", "batch"}
    assert not re.search(r",\s*(from|\)|,)", sql), "a comma too many"
    assert sql.count("(") == sql.count(")")
    # a name with a quote in it, as a text and as a column
    if carried:
        assert "'note'" in sql
    assert "`a note's end`" in sql


def test_steps_are_left_out_for_what_the_log_does_not_hold() -> None:
    plain = ctes(people_sql())
    whole = ctes(
        people_sql(
            has_ends=True,
            has_moves=True,
            has_incomplete_key_changes=True,
            carried=["note"],
            base={"kind": "live"},
        )
    )
    assert {"rewound", "closed_touches", "kept_touches", "origins", "filled"} <= set(whole) - set(
        plain
    )


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("path", ["incremental", "replay", "rebuild"])
def test_a_table_whose_columns_are_all_key(base: dict[str, str] | None, path: str) -> None:
    sql = versions_sql(
        "people_changes",
        ["id", "tag"],
        ["id", "tag"],
        base=base if path == "rebuild" else None,
        has_ends=True,
        has_moves=True,
        affected_keys=None if path == "rebuild" else "select id, tag\n    from batch",
        seeds=None if path == "rebuild" else "select *\n    from people_history",
        replays=path == "replay",
    )
    assert not re.search(r",\s*(from|\)|,)", re.sub(r"--.*", "", sql)), "a comma too many"
    # Spark takes an array of nothing for one of nulls, which no table can have
    assert "then cast(array() as array<string>)" in sql
