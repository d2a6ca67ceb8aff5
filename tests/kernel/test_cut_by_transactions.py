"""The cut that Debezium's transaction topic proves, on random transactions that landed in part."""

from __future__ import annotations

import json
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.macro_renderer import CompilationError, MacroRenderer
from tests.tiers import nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = ("accounts", "tellers")
CHANGE = (
    "change_seq string, transaction_id string, id int, before struct<id: int>, "
    "before_known_columns array<string>"
)
Event = tuple[int, str, int, int | None]
"""Place of the transaction, table, key, and the key before."""


def random_events(chooser: Random) -> list[Event]:
    """Some transactions; a change of a key counts as two events."""
    events: list[Event] = []
    for place in range(chooser.randint(1, 8)):
        for _ in range(chooser.randint(1, 3)):
            key = chooser.randint(1, 3)
            before = chooser.choice([None, None, key, key + 1])
            events.append((place, chooser.choice(TABLES), key, before))
    return events


class Topic:
    """Views of the landed topic and logs of `shop.public.<table>`, of PostgreSQL's ids."""

    def __init__(self, spark: SparkSession, events: list[Event], landed: set[int]) -> None:
        places = sorted({event[0] for event in events})
        messages: list[tuple[int, bytes]] = []
        for place in places:
            counts = {
                table: sum(
                    1 + (before not in (None, key))
                    for at, of, key, before in events
                    if (at, of) == (place, table)
                )
                for table in (*TABLES, "other")
            }
            listed = [
                {"data_collection": f"public.{table}", "event_count": count}
                for table, count in counts.items()
                if count or table == "other"
            ]
            given = {"id": f"{place}:9{place}", "ts_ms": 1}
            end = {**given, "status": "END", "event_count": 1, "data_collections": listed}
            for message in ({**given, "status": "BEGIN"}, end, end):
                content = {"schema": {}, "payload": message} if place % 2 else message
                messages.append((len(messages), json.dumps(content).encode()))
        spark.createDataFrame(messages, "`offset` bigint, value binary").createOrReplaceTempView(
            "transactions"
        )
        for table in TABLES:
            rows = [
                (self.seq(number), str(place), key, None if before is None else (before,), None)
                for number, (place, of, key, before) in enumerate(events)
                if of == table and number in landed
            ]
            spark.createDataFrame(rows, CHANGE).createOrReplaceTempView(f"{table}_changes")

    @staticmethod
    def seq(number: int) -> str:
        return f"{number:04X}"


def tables(*names: str) -> list[dict[str, Any]]:
    return [
        {
            "node": {"name": f"{log}_changes"},
            "changes": f"{log}_changes",
            "settings": {"key": ["id"], "source_table": f"shop.{name}"},
        }
        for log, name in zip(TABLES, names, strict=True)
    ]


def renderer(spark: SparkSession) -> MacroRenderer:
    return MacroRenderer(
        model=SimpleNamespace(name="afterimage_cuts"),
        adapter=SimpleNamespace(afterimage=SimpleNamespace(first_position=lambda settings: "0")),
        run_query=lambda sql: SimpleNamespace(rows=spark.sql(sql).collect()),
    )


def cut(spark: SparkSession, last: dict[str, Any], *names: str) -> Any:
    return renderer(spark)("_cut_by_transactions", tables(*names), "transactions", last)


def complete(events: list[Event], landed: set[int]) -> list[int]:
    """Places of the transactions before the first one of which something is missing."""
    places = []
    for place in sorted({event[0] for event in events}):
        if any(event[0] == place and at not in landed for at, event in enumerate(events)):
            break
        places.append(place)
    return places


@pytest.mark.parametrize("seed", [*range(2), *nightly(*range(2, 30))])
def test_a_cut_is_before_the_first_incomplete_transaction(spark: SparkSession, seed: int) -> None:
    chooser = Random(seed)
    events = random_events(chooser)
    everything = set(range(len(events)))
    missing = {chooser.randrange(len(events)) for _ in range(chooser.randint(0, 2))}
    last: dict[str, Any] = {}
    for landed in (everything - missing, everything):
        Topic(spark, events, landed)
        places = complete(events, landed)
        found = cut(spark, last, "Accounts", "tellers")
        if not places or (last and last["transaction_id"] == f"{places[-1]}:9{places[-1]}"):
            assert found is None or found["change_seq"] == "0"
            continue
        expected = max(at for at, event in enumerate(events) if event[0] == places[-1])
        assert found["change_seq"] == Topic.seq(expected)
        assert found["transaction_id"] == f"{places[-1]}:9{places[-1]}"
        assert (found["held_back_by"] is None) == (landed == everything)
        last = found


def test_a_table_that_no_transaction_names_stops_the_model(spark: SparkSession) -> None:
    Topic(spark, [(0, "accounts", 1, None)], {0})
    with pytest.raises(CompilationError) as caught:
        cut(spark, {}, "kontos", "tellers")
    message = str(caught.value)
    assert "accounts_changes has changes of the transaction 0:90" in message
    assert "whose END does not name kontos" in message
    assert "Fix" in message or "leave `transactions` out" in message


def test_transactions_are_found_by_their_id(spark: SparkSession) -> None:
    """Not each compared with each, which is quadratic in their number."""
    Topic(spark, [(0, "accounts", 1, None)], {0})
    sql = renderer(spark)("_proven_transactions_sql", tables(*TABLES), "transactions", {})
    rows: Any = spark.sql(sql)
    joins = str(rows._jdf.queryExecution().sparkPlan()).splitlines()
    compared = [line for line in joins if "NestedLoop" in line or "Cartesian" in line]
    assert compared  # of aggregates, which have one row
    assert not [line for line in compared if "transaction_id" in line]
