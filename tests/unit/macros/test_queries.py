"""Macros that query a history, on DuckDB: their rows against simple scans of all versions."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from dbt_afterimage.settings import moment_kind
from tests.macro_renderer import CompilationError, MacroRenderer
from tests.temporal_joins import START, VERSION_COLUMNS, Relation, Version, random_histories

KEY = ("stream", "id")
HISTORY, FACTS = Relation("orders_history"), Relation("facts")
STREAMS = 200


def renderer(columns: Sequence[str] = VERSION_COLUMNS, **settings: Any) -> MacroRenderer:
    known = {
        "orders_history": ["orders_history_id", *columns],
        "facts": ["fact", *KEY, "at", "seq"],
    }
    known["orders_changes"] = [
        "change_seq",
        "transaction_id",
        *settings.get("optional_columns", {}),
    ]
    return MacroRenderer(
        adapter=SimpleNamespace(afterimage=SimpleNamespace(moment_kind=moment_kind)),
        _settings_of_relation=lambda table: {
            **{"system": "openedge", "key": list(KEY), "track": [], "ignore": [], "task": None},
            **{"change_seq_form": "19 digits", "optional_columns": {}, **settings},
        },
        _raw_columns=lambda table: [{"name": name} for name in known[str(table)]],
    )


@pytest.fixture(scope="module")
def versions() -> list[Version]:
    hours = timedelta(hours=5)
    streams = [random_histories(seed, seed, unit=hours)["orders"] for seed in range(STREAMS)]
    return [version for stream in streams for version in stream]


@pytest.fixture(scope="module")
def facts() -> list[dict[str, Any]]:
    chooser = random.Random(1)
    return [
        {
            **{"fact": number, "stream": chooser.randrange(STREAMS), "id": chooser.randint(1, 4)},
            "at": START + chooser.randint(-2, 45) * timedelta(hours=5),
            "seq": f"{chooser.randrange(50):04d}",
        }
        for number in range(5000)
    ]


@pytest.fixture(scope="module")
def database(
    versions: list[Version], facts: list[dict[str, Any]]
) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for name, rows in (("orders_history", versions), ("facts", facts)):
            connection.register(f"{name}_rows", pa.Table.from_pylist(rows))
            connection.execute(f"create table {name} as from {name}_rows")
        connection.execute("alter table orders_history add is_current boolean")
        connection.execute("update orders_history set is_current = valid_to_seq is null")
        yield connection


def valid_at(versions: Sequence[Version], at: datetime) -> dict[tuple[int, int], Version]:
    return {
        (version["stream"], version["id"]): version
        for version in versions
        if version["valid_from"] <= at and (version["valid_to"] is None or at < version["valid_to"])
    }


@pytest.mark.parametrize("by", ["time", "change_seq"])
@pytest.mark.parametrize("keep", [False, True])
def test_facts_find_the_version_of_their_time(
    database: duckdb.DuckDBPyConnection,
    versions: list[Version],
    facts: list[dict[str, Any]],
    by: str,
    keep: bool,
) -> None:
    at, kind = ("at", "") if by == "time" else ("seq", "_seq")
    statement = renderer()(
        "join_as_of",
        FACTS,
        at,
        HISTORY,
        {name: name for name in KEY},
        ["name"],
        "order_",
        keep_unmatched=keep,
        by=by,
    )
    names = "fact, stream, id, order_name"
    actual = database.execute(f"select {names} from {statement}").fetchall()
    wanted: list[tuple[Any, ...]] = []
    for fact in facts:
        found = [
            version["name"]
            for version in versions
            if (version["stream"], version["id"]) == (fact["stream"], fact["id"])
            and version[f"valid_from{kind}"] <= fact[at]
            and not (version[f"valid_to{kind}"] and version[f"valid_to{kind}"] <= fact[at])
        ]
        wanted += [
            (fact["fact"], fact["stream"], fact["id"], name)
            for name in found or ([None] if keep else [])
        ]
    assert sorted(actual, key=str) == sorted(wanted, key=str)


def test_net_changes_between_two_moments(
    database: duckdb.DuckDBPyConnection, versions: list[Version]
) -> None:
    first, second = START + timedelta(hours=13), START + timedelta(hours=60)
    statement = renderer(ignore=["name"])("changes_between", HISTORY, str(first), str(second))
    names = "stream, id, net_change, changed_columns, old_other_id, new_other_id"
    actual = database.execute(f"select {names} from {statement}").fetchall()
    before, after = valid_at(versions, first), valid_at(versions, second)
    wanted: list[tuple[Any, ...]] = []
    for key in {*before, *after}:
        old, new = (state[key]["other_id"] if key in state else None for state in (before, after))
        if key not in before:
            wanted.append((*key, "inserted", None, None, new))
        elif key not in after:
            wanted.append((*key, "deleted", None, old, None))
        elif old != new:
            wanted.append((*key, "changed", "other_id", old, new))
    assert sorted(actual, key=str) == sorted(wanted, key=str)
    assert {row[2] for row in wanted} == {"inserted", "deleted", "changed"}
    both = renderer()("changes_between", HISTORY, str(first), str(second))
    lists = database.execute(f"select distinct changed_columns from {both}").fetchall()
    assert set(lists) == {(None,), ("name",), ("other_id, name",)}


@pytest.mark.parametrize("dense", [True, False])
def test_versions_by_days(
    database: duckdb.DuckDBPyConnection, versions: list[Version], dense: bool
) -> None:
    days = [START + timedelta(days=number) for number in range(-1, 12)]
    ends = {day: valid_at(versions, day + timedelta(days=1, microseconds=-1)) for day in days}
    shown = {
        day: {version["orders_history_id"] for version in state.values()}
        for day, state in ends.items()
    }
    if dense:
        first, last = str(days[0].date()), str(days[-1].date())
        statement = renderer()("daily", HISTORY, first, last)
        rows = database.execute(f"select day, orders_history_id from {statement}").fetchall()
        assert sorted(rows) == sorted((day.date(), one) for day in days for one in shown[day])
        return
    statement = renderer()("daily", HISTORY, dense=False)
    sql = f"select day, until_day, orders_history_id from {statement} where day <= '{days[-1]}'"
    rows = database.execute(sql).fetchall()
    wanted: list[tuple[Any, ...]] = []
    for before, day in zip([None, *days], days, strict=False):
        for one in shown[day] - (shown[before] if before else set()):
            gone = [later for later in days if later > day and one not in shown[later]]
            wanted.append((day.date(), gone[0].date() if gone else None, one))
    cut = days[-1].date()
    found = [(day, end if end and end <= cut else None, one) for day, end, one in rows]
    assert sorted(found, key=str) == sorted(wanted, key=str)


def test_versions_beside_current_values(
    database: duckdb.DuckDBPyConnection, versions: list[Version]
) -> None:
    statement = renderer()("current_beside_history", HISTORY, ["name"])
    rows = database.execute(f"select orders_history_id, current_name from {statement}").fetchall()
    now = {(v["stream"], v["id"]): v["name"] for v in versions if v["valid_to"] is None}
    assert sorted(rows, key=str) == sorted(
        ((v["orders_history_id"], now.get((v["stream"], v["id"]))) for v in versions), key=str
    )


@pytest.mark.parametrize("name", ["current_beside_history", "dimension"])
def test_type_1_columns_show_the_newest_value_in_all_versions(
    database: duckdb.DuckDBPyConnection, versions: list[Version], name: str
) -> None:
    newest = {}
    for version in sorted(versions, key=lambda version: str(version["valid_from_seq"])):
        newest[version["stream"], version["id"]] = version["name"]
    wanted = [
        (v["orders_history_id"], v["other_id"], newest[v["stream"], v["id"]]) for v in versions
    ]
    # a correction in some, and a deleted key
    assert any(v["name"] != newest[v["stream"], v["id"]] for v in versions)
    ended = [v for v in versions if v["valid_to_seq"] is not None]
    assert {(v["stream"], v["id"]) for v in ended} - {
        (v["stream"], v["id"]) for v in versions if v["valid_to_seq"] is None
    }
    of_dimension = name == "dimension"
    given: dict[str, Any] = {"type_1": ["name"]} if of_dimension else {"replace": True}
    statement = renderer()(name, HISTORY, None if of_dimension else ["name"], **given)
    identity = "surrogate_key" if of_dimension else "orders_history_id"
    rows = database.execute(
        f"select {identity}, other_id, name from {statement} where {identity} <> '-1'"
    ).fetchall()
    assert sorted(rows, key=str) == sorted(wanted, key=str)


def test_a_history_with_replaced_columns_has_the_columns_of_the_history(
    database: duckdb.DuckDBPyConnection,
) -> None:
    statement = renderer()("current_beside_history", HISTORY, ["NAME"], replace=True)
    shown = database.execute(f"describe select * from {statement}").fetchall()
    stored = database.execute("describe orders_history").fetchall()
    assert [row[0] for row in shown] == [row[0] for row in stored if row[0] != "is_current"]


def test_a_dimension(database: duckdb.DuckDBPyConnection, versions: list[Version]) -> None:
    statement = renderer()("dimension", HISTORY, unknown={"name": "not known"})
    names = "surrogate_key, durable_key, stream, id, name, valid_to, is_current"
    rows = database.execute(f"select {names} from {statement}").fetchall()
    unknown = [row for row in rows if row[0] == "-1"]
    assert unknown == [("-1", "-1", None, None, "not known", None, True)]
    known = [row for row in rows if row[0] != "-1"]
    assert sorted(row[0] for row in known) == sorted(v["orders_history_id"] for v in versions)
    keys = {(row[2], row[3]) for row in known}
    assert len({row[1] for row in known}) == len(keys) == len({(*row[1:4],) for row in known})


def test_who_opened_and_closed_a_version() -> None:
    render = renderer(optional_columns={"source_user": "string"})
    statement = render("changed_by", HISTORY, Relation("orders_changes"))
    with duckdb.connect() as connection:
        connection.execute(
            """
            create table orders_history as from (values
                ('a', 0, 1, '01', '02', 'I', 't1', 'U', 't2'),
                ('b', 0, 1, '02', '03', 'U', 't2', 'T', 't3'),
                ('c', 0, 2, '00', null, 'L', null, null, null)
            ) as t (orders_history_id, stream, id, valid_from_seq, valid_to_seq, opened_by,
                transaction_id, closed_by, closed_by_transaction_id),
            (values (now(), now())) as times (valid_from, valid_to);
            create table orders_changes as from (values
                ('00', null), ('01', 'ann'), ('02', 'bob'), ('02', null), ('03', 'cy'), ('04', 'di')
            ) as t (change_seq, source_user)
            """
        )
        names = "transaction_id, source_user, closed_by_transaction_id, closed_by_source_user"
        rows = connection.execute(
            f"select orders_history_id, {names} from {statement} order by 1"
        ).fetchall()
    assert rows == [
        ("a", "t1", "ann", "t2", "bob"),
        ("b", "t2", "bob", "t3", "cy"),
        ("c", None, None, None, None),
    ]
    assert "authors" not in renderer()("changed_by", HISTORY, Relation("orders_changes"))


@pytest.mark.parametrize(
    ("name", "arguments", "parts"),
    [
        ("join_as_of", {"fact": "facts"}, ["`fact` is a relation", "facts", "Fix: "]),
        ("join_as_of", {"at": "when"}, ["`at` names the column 'when'", "Allowed: fact, stream"]),
        ("join_as_of", {"by": "day"}, ["`by` is 'day'", "Allowed: time, change_seq"]),
        ("join_as_of", {"on": {"id": "id"}}, ["`join_as_of`", "`on` lacks stream"]),
        ("join_as_of", {"prefix": "", "columns": ["id"]}, ["two columns `id`", "'prefix'"]),
        ("changes_between", {"columns": ["nam"]}, ["`columns` names the column 'nam'"]),
        ("changes_between", {"later_at": "then"}, ["`as_of` of orders_history", "'then'"]),
        ("daily", {"first_day": None}, ["a dense result needs `first_day`", "dense=false"]),
        ("daily", {"last_day": "2026-3-1"}, ["`last_day` is '2026-3-1'", "Allowed: a date"]),
        ("daily", {"dense": False}, ["`first_day` is '2026-03-01'", "only if the result is dense"]),
        ("current_beside_history", {"columns": "name"}, ["`columns` is a list", "name"]),
        (
            "current_beside_history",
            {"columns": ["id"], "replace": True},
            ["`columns` names the column 'id'", "Allowed: other_id, name"],
        ),
        ("dimension", {"type_1": ["valid_from"]}, ["`type_1` names the column 'valid_from'"]),
        ("dimension", {"unknown": {"nam": "?"}}, ["`unknown` names the column 'nam'"]),
        ("changed_by", {"changes": "orders_changes"}, ["`changes` is a relation", "Fix: "]),
    ],
)
def test_errors(name: str, arguments: dict[str, Any], parts: list[str]) -> None:
    of_history: dict[str, Any] = {"history": HISTORY}
    usual: dict[str, dict[str, Any]] = {
        "join_as_of": {"fact": FACTS, "at": "at", "on": dict(zip(KEY, KEY, strict=True))},
        "changes_between": {"earlier_at": "2026-03-02", "later_at": "2026-03-03"},
        "daily": {"first_day": "2026-03-01"},
        "current_beside_history": {"columns": ["name"]},
    }
    with pytest.raises(CompilationError) as caught:
        renderer()(name, **{**of_history, **usual.get(name, {}), **arguments})
    message = str(caught.value)
    assert [part for part in parts if part not in message] == [], message
